package interruption

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"k8s.io/klog/v2"

	"github.com/foresail/foresail/nodepool/provider"
)

const (
	// pollTime is how long a call waits for messages: the maximum of SQS.
	pollTime = 20 * time.Second
	// visibility is how long a received message is hidden from other receivers. If this process dies, another one receives
	// it afterwards. A message that is not done by then is received again, which does no harm.
	visibility = 10 * time.Second
	// batch is the maximum number of messages in one answer of SQS.
	batch = 10
	// callTimeout bounds a call, in addition to the time that it waits for messages.
	callTimeout = 10 * time.Second
	// firstPause is the pause after a failed call. It doubles with each further failure, up to maxPause.
	firstPause, maxPause = time.Second, 30 * time.Second
	// excerpt is the number of logged bytes of a malformed message.
	excerpt = 200
)

// Options configure a [Receiver].
type Options struct {
	// Queue is the URL of the queue.
	Queue string
	// Region is the region of a queue whose URL has none; empty is the SDK's.
	Region string
	// Endpoint is the URL of the SQS API; empty is that of the region, or the host of a queue that is not AWS's.
	Endpoint string

	// Load changes the SDK's configuration; by default credentials come from the AWS default chain.
	Load []func(*config.LoadOptions) error
	Now  func() time.Time // nil is time.Now
	Rand *rand.Rand       // of the jitter; nil is a random seed
}

// queue is the part of SQS that is used.
type queue interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	DeleteMessageBatch(
		context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options),
	) (*sqs.DeleteMessageBatchOutput, error)
}

// Receiver receives the messages of one queue. Its methods may be called from any goroutine.
type Receiver struct {
	options Options
	queue   queue

	mu       sync.Mutex
	failures int // in a row
	notUntil time.Time
}

var _ provider.Notices = (*Receiver)(nil)

// New returns a receiver. It makes no call.
func New(ctx context.Context, o Options) (*Receiver, error) {
	address, err := url.Parse(o.Queue)
	if err != nil || address.Host == "" {
		return nil, fmt.Errorf("interruptionQueue: %q: must be the URL of an SQS queue, such as "+
			"https://sqs.eu-central-1.amazonaws.com/123456789012/workers", o.Queue)
	}
	load := o.Load
	if region := regionOf(o, address); region != "" {
		load = append([]func(*config.LoadOptions) error{config.WithRegion(region)}, load...)
	}
	loaded, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("set up the AWS SDK: %w", err)
	}
	client := sqs.NewFromConfig(loaded, func(c *sqs.Options) {
		if endpoint := endpointOf(o, address); endpoint != "" {
			c.BaseEndpoint = aws.String(endpoint)
		}
		c.Retryer = retry.NewStandard(func(s *retry.StandardOptions) { s.MaxAttempts, s.MaxBackoff = 2, time.Second })
	})
	return newReceiver(o, client), nil
}

func newReceiver(o Options, q queue) *Receiver {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) //nolint:gosec // spreads calls
	}
	return &Receiver{options: o, queue: q}
}

// regionOf returns the region of a queue; "" if unknown.
func regionOf(o Options, queue *url.URL) string {
	if parts := strings.Split(queue.Hostname(), "."); public(parts) {
		return parts[1]
	}
	return o.Region
}

// endpointOf returns the endpoint of a private endpoint or another service; "" is the region's.
func endpointOf(o Options, queue *url.URL) string {
	if o.Endpoint != "" || public(strings.Split(queue.Hostname(), ".")) {
		return o.Endpoint
	}
	return queue.Scheme + "://" + queue.Host
}

// public reports whether the parts of a host name are SQS's public endpoint: sqs.<region>.amazonaws.com, or .com.cn in
// China.
func public(host []string) bool { return len(host) >= 4 && host[0] == "sqs" && host[2] == "amazonaws" }

// Receive waits up to 20 seconds for messages that concern a pool. Messages that are not done are received again.
// After an error the next call waits first, longer after each consecutive error.
func (r *Receiver) Receive(ctx context.Context) ([]provider.Message, error) {
	if err := r.pause(ctx); err != nil {
		return nil, err
	}
	until := r.options.Now().Add(pollTime)
	for {
		left := until.Sub(r.options.Now())
		messages, err := r.poll(ctx, max(0, left))
		r.record(ctx, err)
		if err != nil || len(messages) > 0 || left <= 0 {
			return messages, err
		}
	}
}

// poll makes one call and deletes the messages that do not concern a pool.
func (r *Receiver) poll(ctx context.Context, wait time.Duration) ([]provider.Message, error) {
	call, cancel := context.WithTimeout(ctx, wait+callTimeout)
	defer cancel()
	output, err := r.queue.ReceiveMessage(call, &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(r.options.Queue), MaxNumberOfMessages: batch,
		WaitTimeSeconds: seconds(wait), VisibilityTimeout: seconds(visibility),
	}, func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	if err != nil {
		return nil, fmt.Errorf("receive from %s: %w", r.options.Queue, err)
	}
	var messages []provider.Message
	var irrelevant []types.DeleteMessageBatchRequestEntry
	for i, raw := range output.Messages {
		m, verdict := r.read(ctx, aws.ToString(raw.Body))
		if verdict == relevant {
			m.Handle = aws.ToString(raw.ReceiptHandle)
			messages = append(messages, m)
			continue
		}
		irrelevant = append(irrelevant, types.DeleteMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: raw.ReceiptHandle,
		})
	}
	r.drop(call, irrelevant)
	return messages, nil
}

// seconds rounds up: SQS would not wait for 0 seconds.
func seconds(d time.Duration) int32 { return int32((d + time.Second - 1) / time.Second) }

// read reads a message, and logs why it is dropped unless it is an ordinary event of another kind.
func (r *Receiver) read(ctx context.Context, body string) (provider.Message, verdict) {
	m, verdict, err := read(body, r.options.Now())
	switch verdict {
	case late:
		klog.FromContext(ctx).Info("Dropped an interruption warning that arrived after its deadline",
			"instance", m.InstanceID, "deadline", m.Deadline)
	case malformed:
		klog.FromContext(ctx).Error(err, "Dropped a message that is not an EC2 event", "queue", r.options.Queue,
			"begins", body[:min(len(body), excerpt)])
	}
	return m, verdict
}

// drop deletes messages. Those that cannot be deleted now are received again.
func (r *Receiver) drop(ctx context.Context, irrelevant []types.DeleteMessageBatchRequestEntry) {
	if len(irrelevant) == 0 {
		return
	}
	output, err := r.queue.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{
		QueueUrl: aws.String(r.options.Queue), Entries: irrelevant,
	})
	if err == nil && len(output.Failed) > 0 {
		err = fmt.Errorf("%d of %d remain: %s", len(output.Failed), len(irrelevant), aws.ToString(output.Failed[0].Message))
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot delete irrelevant messages", "queue", r.options.Queue)
	}
}

// Done deletes a message, so that it is not received again. It succeeds if the message is gone, or if its handle has
// expired: the message is then received again with a new one.
func (r *Receiver) Done(ctx context.Context, m provider.Message) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := r.queue.DeleteMessage(ctx, &sqs.DeleteMessageInput{
		QueueUrl: aws.String(r.options.Queue), ReceiptHandle: aws.String(m.Handle),
	})
	if err == nil || errors.As(err, new(*types.ReceiptHandleIsInvalid)) || errors.As(err, new(*types.MessageNotInflight)) {
		return nil
	}
	return fmt.Errorf("delete from %s: %w", r.options.Queue, err)
}

// record records whether a call failed, and when the next may be made. A call that its caller cancelled has not failed.
func (r *Receiver) record(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.failures, r.notUntil = 0, time.Time{}
		return
	}
	if ctx.Err() != nil {
		return
	}
	pause := firstPause << min(r.failures, 10)
	pause = min(pause, maxPause)
	r.failures++
	// Between half of the pause and all of it, so that replicas do not call at the same time.
	r.notUntil = r.options.Now().Add(pause/2 + time.Duration(r.options.Rand.Int64N(int64(pause/2)+1)))
}

// pause waits until the next call may be made.
func (r *Receiver) pause(ctx context.Context) error {
	r.mu.Lock()
	wait := r.notUntil.Sub(r.options.Now())
	r.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
