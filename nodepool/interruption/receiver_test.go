package interruption

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/provider"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// fixture is a queue of a cloud with a receiver.
type fixture struct {
	*awstest.Cloud
	url string
	*Receiver
}

func setUp(t *testing.T, m *awstest.Moto) fixture {
	t.Helper()
	c := m.Cloud(t)
	f := fixture{Cloud: c, url: c.Queue(t, "workers", time.Minute)}
	f.Receiver = f.receiver(t)
	return f
}

func (f fixture) receiver(t *testing.T) *Receiver {
	t.Helper()
	r, err := New(t.Context(), Options{
		Queue: f.url, Region: awstest.Region,
		Load: []func(*config.LoadOptions) error{config.WithCredentialsProvider(f.Config().Credentials)},
	})
	require.NoError(t, err)
	return r
}

// receive returns the next messages, with and without their handles.
func (f fixture) receive(t *testing.T) (messages, bare []provider.Message) {
	t.Helper()
	messages, err := f.Receive(t.Context())
	require.NoError(t, err)
	for _, m := range messages {
		require.NotEmpty(t, m.Handle)
		m.Handle = ""
		bare = append(bare, m)
	}
	return messages, bare
}

// left returns how many messages of the queue are visible and hidden.
func (f fixture) left(t *testing.T) string {
	t.Helper()
	output, err := sqs.NewFromConfig(f.Direct()).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(f.url), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	require.NoError(t, err)
	const visible = "ApproximateNumberOfMessages"
	return output.Attributes[visible] + "+" + output.Attributes[visible+"NotVisible"]
}

func TestReceiver(t *testing.T) {
	m := awstest.StartMoto(t)
	for name, test := range map[string]func(*testing.T, fixture){
		"events become messages":           testEvents,
		"a message stays until it is done": testDone,
		"irrelevant messages are deleted":  testIrrelevant,
		"the queue fails and recovers":     testRecovers,
		"a failed deletion":                testUndeletable,
		"a poll ends with its context":     testContext,
	} {
		t.Run(name, func(t *testing.T) { test(t, setUp(t, m)) })
	}
}

func testEvents(t *testing.T, f fixture) {
	at := time.Now().UTC().Truncate(time.Second)
	f.Send(t, f.url, f.SpotInterruption("i-spot", at))
	f.Send(t, f.url, f.RebalanceRecommendation("i-advised", at))
	f.Send(t, f.url, f.StateChange("i-gone", "shutting-down", at))
	f.Send(t, f.url, f.SpotInterruption("i-spot", at)) // EventBridge delivers at least once
	messages, bare := f.receive(t)
	require.Equal(t, []provider.Message{
		{InstanceID: "i-spot", Kind: provider.MessageInterruption, Deadline: at.Add(2 * time.Minute)},
		{InstanceID: "i-advised", Kind: provider.MessageRebalance},
		{InstanceID: "i-gone", Kind: provider.MessageStateChange},
		{InstanceID: "i-spot", Kind: provider.MessageInterruption, Deadline: at.Add(2 * time.Minute)},
	}, bare)
	for _, m := range messages {
		require.NoError(t, f.Done(t.Context(), m))
	}
	require.Equal(t, "0+0", f.left(t))
}

func testDone(t *testing.T, f fixture) {
	f.Send(t, f.url, f.SpotInterruption("i-spot", time.Now()))
	messages, _ := f.receive(t)
	require.Len(t, messages, 1)
	require.Equal(t, "0+1", f.left(t), "it is hidden, not deleted")

	// SQS delivers it again, as after a crash of the receiver.
	_, err := sqs.NewFromConfig(f.Direct()).ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{
		QueueUrl: aws.String(f.url), ReceiptHandle: aws.String(messages[0].Handle), VisibilityTimeout: 0,
	})
	require.NoError(t, err)
	other := f
	other.Receiver = f.receiver(t)
	again, _ := other.receive(t)
	require.Len(t, again, 1)
	require.Equal(t, messages[0].InstanceID, again[0].InstanceID)

	f.Inject(awstest.Fault{Service: awstest.SQS, Operation: "DeleteMessage", Times: 2})
	require.Error(t, other.Done(t.Context(), again[0]))
	require.Equal(t, "0+1", f.left(t))
	require.NoError(t, other.Done(t.Context(), again[0]))
	require.Equal(t, "0+0", f.left(t))
	require.NoError(t, other.Done(t.Context(), again[0]), "it is deleted")
	require.NoError(t, f.Done(t.Context(), messages[0]), "its handle has expired")
	require.NoError(t, f.Done(t.Context(), provider.Message{Handle: "made up"}))
}

func testIrrelevant(t *testing.T, f fixture) {
	now := time.Now()
	for _, m := range []struct {
		body string
		want verdict
	}{
		{"garbage", malformed}, {`{"detail-type":7}`, malformed}, {`{}`, malformed}, {`"a string"`, malformed},
		{strings.Replace(f.SpotInterruption("i-1", now), "instance-id", "some-id", 1), malformed},
		{f.StateChange("i-1", "running", now), ignored},
		{strings.Replace(f.SpotInterruption("i-1", now), "aws.ec2", "com.example", 1), ignored},
		{strings.Replace(f.SpotInterruption("i-1", now), spotWarning, "EC2 Fleet Instance Change", 1), ignored},
		{f.SpotInterruption("i-late", now.Add(-time.Hour)), late},
	} {
		_, got, _ := read(m.body, now)
		require.Equal(t, m.want, got, m.body)
		f.Send(t, f.url, m.body)
	}
	// A warning past its deadline, by a clock that may be wrong.
	f.Send(t, f.url, f.SpotInterruption("i-2", now.Add(-5*time.Minute)))
	messages, _ := f.receive(t)
	require.Len(t, messages, 1)
	require.Equal(t, "i-2", messages[0].InstanceID)
	require.Equal(t, "0+1", f.left(t))
}

// testUndeletable fails to delete an irrelevant message: it is received again, and relevant ones are passed on.
func testUndeletable(t *testing.T, f fixture) {
	f.Send(t, f.url, "garbage")
	f.Send(t, f.url, f.RebalanceRecommendation("i-1", time.Now()))
	f.Inject(awstest.Fault{Service: awstest.SQS, Operation: "DeleteMessageBatch", Do: awstest.Drop})
	messages, _ := f.receive(t)
	require.Len(t, messages, 1)
	require.Equal(t, "0+2", f.left(t))
}

func testRecovers(t *testing.T, f fixture) {
	f.Send(t, f.url, f.SpotInterruption("i-1", time.Now()))
	f.Inject(awstest.Fault{Service: awstest.SQS, Times: 1, Do: awstest.Throttle})
	_, err := f.Receive(t.Context())
	require.ErrorContains(t, err, f.url)
	messages, _ := f.receive(t)
	require.Len(t, messages, 1)
}

func testContext(t *testing.T, f fixture) {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(f.Calls("ReceiveMessage")) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err := f.Receive(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, string(f.Calls("ReceiveMessage")[0].Body), `"WaitTimeSeconds":20`)
}

// fakeQueue is an SQS queue that may be down.
type fakeQueue struct {
	down     bool
	messages []string
	calls    []time.Time
	deleted  int
}

var errDown = errors.New("down")

func (q *fakeQueue) ReceiveMessage(
	ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options),
) (*sqs.ReceiveMessageOutput, error) {
	q.calls = append(q.calls, time.Now())
	if q.down {
		return nil, errDown
	}
	if len(q.messages) == 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(in.WaitTimeSeconds) * time.Second):
			return &sqs.ReceiveMessageOutput{}, nil
		}
	}
	var out []types.Message
	for i, body := range q.messages[:min(len(q.messages), int(in.MaxNumberOfMessages))] {
		out = append(out, types.Message{Body: aws.String(body), ReceiptHandle: aws.String(fmt.Sprint(i))})
	}
	q.messages = q.messages[len(out):]
	return &sqs.ReceiveMessageOutput{Messages: out}, nil
}

func (q *fakeQueue) DeleteMessage(
	context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options),
) (*sqs.DeleteMessageOutput, error) {
	q.deleted++
	return &sqs.DeleteMessageOutput{}, nil
}

func (q *fakeQueue) DeleteMessageBatch(
	_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.DeleteMessageBatchOutput, error) {
	q.deleted += len(in.Entries)
	return &sqs.DeleteMessageBatchOutput{}, nil
}

func fakeReceiver(q *fakeQueue) *Receiver {
	return newReceiver(Options{Queue: "https://sqs.eu-central-1.amazonaws.com/1/q", Rand: rand.New(rand.NewPCG(1, 2))}, q)
}

func TestTenMinutesWithoutSQS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{down: true}
		r := fakeReceiver(q)
		start := time.Now()
		for time.Since(start) < 10*time.Minute {
			_, err := r.Receive(t.Context())
			require.ErrorIs(t, err, errDown)
		}
		// 0, then pauses of at most 1, 2, 4, 8, 16 and then 30 seconds, and of at least half of that.
		require.Greater(t, len(q.calls), 5+9*60/30)
		require.Less(t, len(q.calls), 7+10*60/15)
		pauses := map[time.Duration]bool{}
		for i := 1; i < len(q.calls); i++ {
			pause := q.calls[i].Sub(q.calls[i-1])
			limit := min(maxPause, firstPause<<(i-1))
			require.LessOrEqual(t, pause, limit)
			require.GreaterOrEqual(t, pause, limit/2)
			pauses[pause] = true
		}
		require.Greater(t, len(pauses), len(q.calls)/2, "they differ")

		q.down = false
		q.messages = []string{`{"detail-type":"` + rebalance + `","source":"aws.ec2","detail":{"instance-id":"i-1"}}`}
		back := time.Now()
		messages, err := r.Receive(t.Context())
		require.NoError(t, err)
		require.Len(t, messages, 1)
		require.LessOrEqual(t, time.Since(back), maxPause)

		// After a success, the pause after a failure is short again.
		q.down = true
		for range 2 {
			_, err = r.Receive(t.Context())
			require.ErrorIs(t, err, errDown)
		}
		last := len(q.calls) - 1
		require.LessOrEqual(t, q.calls[last].Sub(q.calls[last-1]), firstPause)
	})
}

func TestReceiveWaitsPastIrrelevantMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{messages: make([]string, 25)}
		r := fakeReceiver(q)
		start := time.Now()
		messages, err := r.Receive(t.Context())
		require.NoError(t, err)
		require.Empty(t, messages)
		require.Equal(t, pollTime, time.Since(start))
		require.Equal(t, 25, q.deleted)
	})
}

func TestPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fakeReceiver(&fakeQueue{down: true})
		_, err := r.Receive(t.Context())
		require.ErrorIs(t, err, errDown)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = r.Receive(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestWarningWithoutTime(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m, verdict, err := read(`{"detail-type":"`+spotWarning+`","source":"aws.ec2","detail":{"instance-id":"i-1"}}`, now)
	require.NoError(t, err)
	require.Equal(t, relevant, verdict)
	require.Equal(t, now.Add(2*time.Minute), m.Deadline)
}

func TestNewRejectsAnInvalidQueue(t *testing.T) {
	_, err := New(t.Context(), Options{Queue: "workers"})
	require.ErrorContains(t, err, `interruptionQueue: "workers": must be the URL`)
}

func TestRegionAndEndpointOfTheQueue(t *testing.T) {
	for _, row := range []struct {
		options          Options
		region, endpoint string
	}{
		{Options{Queue: "https://sqs.eu-central-1.amazonaws.com/1/q"}, "eu-central-1", ""},
		{Options{Queue: "https://sqs.eu-central-1.amazonaws.com/1/q", Region: "us-east-1"}, "eu-central-1", ""},
		{Options{Queue: "https://sqs.cn-north-1.amazonaws.com.cn/1/q"}, "cn-north-1", ""},
		{Options{Queue: "https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/1/q", Region: "eu-west-1"},
			"eu-west-1", "https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com"},
		{Options{Queue: "http://127.0.0.1:4566/1/q", Region: "eu-west-1"}, "eu-west-1", "http://127.0.0.1:4566"},
		{
			Options{Queue: "http://127.0.0.1:4566/1/q", Region: "eu-west-1", Endpoint: "http://127.0.0.1:1"}, "eu-west-1",
			"http://127.0.0.1:1",
		},
	} {
		r, err := New(t.Context(), row.options)
		require.NoError(t, err)
		client, ok := r.queue.(*sqs.Client)
		require.True(t, ok)
		require.Equal(t, row.region, client.Options().Region)
		require.Equal(t, row.endpoint, aws.ToString(client.Options().BaseEndpoint))
	}
}
