package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

var start = time.Date(2026, 5, 4, 20, 0, 0, 0, time.UTC)

// harness is a reporter with its receivers.
type harness struct {
	reporter *Reporter
	client   client.Client
	events   *events.FakeRecorder
	registry *prometheus.Registry
	metrics  *Metrics
}

func newHarness(t *testing.T, change ...func(*Options)) *harness {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	pool := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: "workers", Generation: 3}}
	pool.Status.Journal = &runtime.RawExtension{Raw: []byte(`{"version":7}`)}
	h := &harness{
		client:   fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool).WithStatusSubresource(pool).Build(),
		events:   events.NewFakeRecorder(100),
		registry: prometheus.NewRegistry(),
	}
	h.metrics = NewMetrics(h.registry)
	o := Options{Client: h.client, Events: h.events, Metrics: h.metrics}
	for _, f := range change {
		f(&o)
	}
	h.reporter = New("workers", o)
	return h
}

func (h *harness) status(t *testing.T) v1alpha1.WorkerPoolStatus {
	t.Helper()
	var pool v1alpha1.WorkerPool
	require.NoError(t, h.client.Get(t.Context(), client.ObjectKey{Name: "workers"}, &pool))
	return pool.Status
}

// recorded returns the Events since the last call.
func (h *harness) recorded() []string {
	var out []string
	for {
		select {
		case e := <-h.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func hold(at time.Time, reason plan.Reason, message string) nodepool.CycleReport {
	return nodepool.CycleReport{
		Pool: "workers", Generation: 3, At: at, Leading: true, StartupTime: 90 * time.Second,
		Decision: plan.Decision{At: at, Step: plan.Hold, Reason: reason, Message: message, Workers: 2, Desired: 2,
			Recommendations: []plan.Recommendation{
				{Signal: "requests", Nodes: 2, Known: true}, {Signal: "cpu", Reason: "no answer"},
			}},
		Snapshot: plan.Snapshot{
			Now: at,
			Instances: []plan.Instance{
				{
					Instance: fleet.Instance{ID: "i-1", Placement: fleet.Placement{Zone: "a", Market: fleet.Spot}},
					Worker:   true, Node: plan.Node{Name: "a", Ready: true},
				},
				{Instance: fleet.Instance{ID: "i-2"}, Worker: true},
				{Instance: fleet.Instance{ID: "i-3"}, Worker: true, Failed: true},
			},
			Pending: plan.Pending{Known: true, Pods: 5},
			Signals: []plan.Signal{
				{Name: "requests", Known: true, Now: 0.5, Predicted: 0.61, Threshold: 0.7, Desired: 2, Horizon: time.Minute},
				{Name: "cpu", Err: "no answer"},
			},
		},
	}
}

func TestStatusHasKnownValuesAndKeepsTheJournal(t *testing.T) {
	h := newHarness(t)
	h.reporter.Report(t.Context(), hold(start, plan.NothingToDo, "2 workers are enough"))
	s := h.status(t)
	assert.JSONEq(t, `{"version":7}`, string(s.Journal.Raw))
	assert.Equal(t, int64(3), s.ObservedGeneration)
	assert.Equal(t, []int32{2, 1, 2, 5}, []int32{*s.Workers, *s.ReadyWorkers, *s.Desired, *s.PendingPods})
	assert.Equal(t, 90*time.Second, s.StartupTime.Duration)
	require.Len(t, s.Signals, 2)
	assert.Equal(t, "610m", s.Signals[0].Predicted.String())
	assert.Equal(t, v1alpha1.PoolSignalStatus{Name: "cpu", Error: "no answer"}, s.Signals[1])
	assert.True(t, meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionHealthy))
	assert.True(t, meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionForecasting))
	require.Len(t, s.Decisions, 1)
	assert.Nil(t, s.Decisions[0].Recommendations[1].Workers, "an unknown recommendation is no number")
}

// The spec may have changed since the cycle began, or the new one may be invalid.
func TestStatusHasTheGenerationOfTheCycle(t *testing.T) {
	h := newHarness(t)
	cycle := hold(start, plan.NothingToDo, "2 workers are enough")
	cycle.Generation = 2
	cycle.Decision.Rollout = plan.Rollout{Unknown: 2, Message: "no permission"}
	cycle.Deletion = &nodepool.Deletion{Nodes: 1}
	h.reporter.Report(t.Context(), cycle)
	s := h.status(t)
	assert.EqualValues(t, 2, s.ObservedGeneration)
	assert.Equal(t, &v1alpha1.PoolRollout{Unknown: 2, Message: "no permission"}, s.Rollout)
	for _, c := range s.Conditions {
		assert.EqualValues(t, 2, c.ObservedGeneration, c.Type)
	}
}

func TestUnknownValuesAreAbsent(t *testing.T) {
	h := newHarness(t)
	cycle := hold(start, plan.WorkersUnknown, "EC2 cannot be read")
	cycle.Snapshot.WorkersErr, cycle.Snapshot.Pending.Known = "EC2 cannot be read", false
	cycle.Health = errors.New("EC2 cannot\nbe read")
	h.reporter.Report(t.Context(), cycle)
	s := h.status(t)
	assert.Nil(t, s.Workers)
	assert.Nil(t, s.ReadyWorkers)
	assert.Nil(t, s.PendingPods)
	assert.Equal(t, "EC2 cannot be read", meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionHealthy).Message)
	count, err := testutil.GatherAndCount(h.registry, "foresail_nodepool_workers", "foresail_nodepool_pending_pods")
	require.NoError(t, err)
	assert.Zero(t, count)
}

// TestUnreadJournalHasNoMetrics: without the journal it is unknown whether an action is open.
func TestUnreadJournalHasNoMetrics(t *testing.T) {
	h := newHarness(t)
	names := []string{
		"foresail_nodepool_failed_scale_ups", "foresail_nodepool_startup_time_seconds",
	}
	exposed := func() int {
		count, err := testutil.GatherAndCount(h.registry, names...)
		require.NoError(t, err)
		return count
	}
	cycle := hold(start, plan.ActionOpen, "a scale-up is open")
	cycle.Record = state.Record{Failures: 2, Action: &state.Action{Kind: state.ActionUp}}
	cycle.Snapshot.Pool.Max = 5
	h.reporter.Report(t.Context(), cycle)
	require.Equal(t, 2, exposed())

	unread := hold(start, nodepool.NotDecided, "the table does not answer")
	unread.Leading, unread.Health = false, errors.New("the table does not answer")
	h.reporter.Report(t.Context(), unread)
	assert.Zero(t, exposed())

	blind := nodepool.CycleReport{
		Pool: "workers", At: start, Decision: plan.Decision{At: start, Step: plan.Hold, Reason: nodepool.NotDecided},
	}
	h.reporter.Report(t.Context(), cycle)
	h.reporter.Report(t.Context(), blind)
	assert.Zero(t, exposed())
	workers, err := testutil.GatherAndCount(
		h.registry, "foresail_nodepool_workers", "foresail_nodepool_spot_target_workers",
	)
	require.NoError(t, err)
	assert.Zero(t, workers)
	assert.Equal(t, 5.0, testutil.ToFloat64(h.metrics.limits.WithLabelValues("workers", "max")))
}

// TestUnknownNumbersAreNotLogged: a 0 would look like a known value.
func TestUnknownNumbersAreNotLogged(t *testing.T) {
	h := newHarness(t)
	var lines []string
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	h.reporter.Report(ctx, hold(start, plan.NothingToDo, "2 workers are enough"))
	cycle := hold(start, plan.WorkersUnknown, "EC2 cannot be read")
	cycle.Snapshot.WorkersErr, cycle.Snapshot.Pending.Known = "EC2 cannot be read", false
	h.reporter.Report(ctx, cycle)
	require.Len(t, lines, 3)
	assert.Contains(t, lines[1], `"workers"=2 "desired"=2 "pending"=5`)
	for _, field := range []string{`"workers"=`, `"desired"=`, `"pending"=`} {
		assert.NotContains(t, lines[2], field)
	}
}

// TestEventNotesAreClipped: the API server rejects an Event whose note is too long.
func TestEventNotesAreClipped(t *testing.T) {
	h := newHarness(t)
	long := strings.Repeat("ä ", 1000)
	cycle := hold(start, plan.NoRemovableNode, long)
	cycle.Events = []journal.Event{{Reason: journal.EventDrainFailed, Message: long}}
	h.reporter.Report(t.Context(), cycle)
	got := h.recorded()
	require.Len(t, got, 2)
	for i, prefix := range []string{"Normal NoRemovableNode ", "Normal DrainFailed "} {
		note := strings.TrimPrefix(got[i], prefix)
		assert.LessOrEqual(t, len(note), 1024)
		assert.Greater(t, len(note), 1000)
		assert.True(t, utf8.ValidString(note))
	}
}

func TestMetricsOfPodsWithRoom(t *testing.T) {
	h := newHarness(t)
	cycle := hold(start, plan.NothingToDo, "")
	cycle.Snapshot.Pending.Room, cycle.Snapshot.Pending.BackingOff = 2, 3
	h.reporter.Report(t.Context(), cycle)
	assert.Equal(t, 3.0, testutil.ToFloat64(h.metrics.pending.WithLabelValues("workers", "NotHelped")))
	assert.Equal(t, 2.0, testutil.ToFloat64(h.metrics.pending.WithLabelValues("workers", "HasRoom")))
	cycle.Snapshot.Pending = plan.Pending{}
	h.reporter.Report(t.Context(), cycle)
	count, err := testutil.GatherAndCount(h.registry, "foresail_nodepool_pending_pods")
	require.NoError(t, err)
	assert.Zero(t, count)
}

func TestEqualDecisionsAreOneEntry(t *testing.T) {
	h := newHarness(t)
	for i := range 40 {
		h.reporter.Report(
			t.Context(), hold(start.Add(time.Duration(i)*15*time.Second), plan.NothingToDo, "2 workers are enough"),
		)
	}
	up := hold(start.Add(10*time.Minute), plan.PodsPending, "5 pods need 2 nodes")
	up.Decision.Step, up.Decision.Desired = plan.ScaleUp, 4
	h.reporter.Report(t.Context(), up)
	trail := h.status(t).Decisions
	require.Len(t, trail, 2)
	assert.Equal(t, "ScaleUp", trail[0].Step)
	assert.Equal(t, int32(40), trail[1].Count)
	assert.True(t, trail[1].Time.Time.Equal(start))
	assert.True(t, trail[1].Last.Time.Equal(start.Add(39*15*time.Second)))
	assert.Equal(
		t, []string{"Normal NothingToDo 2 workers are enough", "Normal PodsPending 5 pods need 2 nodes"}, h.recorded(),
	)
	assert.Equal(t, 40.0, testutil.ToFloat64(h.metrics.decisions.WithLabelValues("workers", "Hold", "NothingToDo")))
}

// TestRepeatedDecisionIsOneEntryUntilAnActionBegins: a dry run, or a scale-up that waits for a scale-down, has the same
// decision at each tick.
func TestRepeatedDecisionIsOneEntryUntilAnActionBegins(t *testing.T) {
	h := newHarness(t)
	decide := func(tick int, events ...journal.Event) {
		up := hold(start.Add(time.Duration(tick)*15*time.Second), plan.PodsPending, "5 pods need 2 nodes")
		up.Decision.Step, up.Decision.Desired, up.Events = plan.ScaleUp, 4, events
		h.reporter.Report(t.Context(), up)
	}
	for i := range 40 {
		decide(i)
	}
	require.Len(t, h.status(t).Decisions, 1)
	assert.Equal(t, []string{"Normal PodsPending 5 pods need 2 nodes"}, h.recorded())

	decide(40, journal.Event{Reason: journal.EventScaleUpStarted, Message: "up-1", Action: "up-1"})
	decide(41, journal.Event{Reason: journal.EventScaleUpStarted, Message: "up-2", Action: "up-2"})
	trail := h.status(t).Decisions
	require.Len(t, trail, 3)
	assert.Equal(t, []int32{1, 1, 40}, []int32{trail[0].Count, trail[1].Count, trail[2].Count})
	assert.Equal(t, []string{
		"Normal PodsPending 5 pods need 2 nodes", "Normal ScaleUpStarted up-1", "Normal PodsPending 5 pods need 2 nodes",
		"Normal ScaleUpStarted up-2",
	}, h.recorded())
}

func TestTrailIsBounded(t *testing.T) {
	var trail []v1alpha1.PoolDecision
	for i := range 3 * maxTrail {
		d := hold(start, plan.NothingToDo, "").Decision
		d.Desired = i
		trail = recordDecision(trail, d, false)
	}
	require.Len(t, trail, maxTrail)
	assert.Equal(t, int32(3*maxTrail-1), trail[0].Desired)
}

func TestOnlyTheLeaderReports(t *testing.T) {
	h := newHarness(t)
	cycle := hold(start, plan.NothingToDo, "2 workers are enough")
	cycle.Leading = false
	h.reporter.Report(t.Context(), cycle)
	assert.Empty(t, h.recorded())
	assert.Empty(t, h.status(t).Decisions)
}

func TestStatusOfAnAction(t *testing.T) {
	h := newHarness(t)
	cycle := hold(start, plan.ActionOpen, "a scale-up is open")
	cycle.Record.Failures = 3
	cycle.Record.Action = &state.Action{ID: "up-1", Kind: state.ActionUp, Started: start, Slots: []state.Slot{
		{State: state.SlotReady, InstanceID: "i-1"}, {
			State: state.SlotLaunched, InstanceID: "i-2",
		}, {State: state.SlotPlanned},
	}}
	cycle.Events = []journal.Event{
		{Reason: journal.EventLaunchFailed, Message: "no capacity in a", Warning: true, Action: "up-1"},
	}
	h.reporter.Report(t.Context(), cycle)
	s := h.status(t)
	assert.Equal(t, "1 Ready (i-1), 1 Launched (i-2), 1 Planned", s.Action.Progress)
	assert.Equal(t, "LaunchesFail", meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionHealthy).Reason)
	assert.Contains(t, h.recorded(), "Warning LaunchFailed no capacity in a")
}

// A pool with Spot instances and no queue has a condition with the consequences and what to set.
func TestSpotWithoutAnInterruptionQueue(t *testing.T) {
	half, none := resource.MustParse("500m"), resource.MustParse("0")
	for name, c := range map[string]struct {
		provider v1alpha1.PoolProvider
		market   v1alpha1.MarketPolicy
		want     metav1.ConditionStatus // "" = no condition
	}{
		"Spot without a queue": {
			v1alpha1.PoolProvider{EC2: &v1alpha1.EC2Provider{}}, v1alpha1.MarketPolicy{SpotRatio: &half},
			metav1.ConditionFalse,
		},
		"Spot with a queue": {
			v1alpha1.PoolProvider{EC2: &v1alpha1.EC2Provider{InterruptionQueue: "https://queue"}},
			v1alpha1.MarketPolicy{SpotRatio: &half}, metav1.ConditionTrue,
		},
		"simulated Spot": {
			v1alpha1.PoolProvider{Simulated: &v1alpha1.SimulatedProvider{}}, v1alpha1.MarketPolicy{SpotRatio: &half},
			metav1.ConditionTrue,
		},
		"On-Demand": {
			v1alpha1.PoolProvider{EC2: &v1alpha1.EC2Provider{}}, v1alpha1.MarketPolicy{SpotRatio: &none}, "",
		},
		"On-Demand base of all": {
			v1alpha1.PoolProvider{EC2: &v1alpha1.EC2Provider{}}, v1alpha1.MarketPolicy{SpotRatio: &half, OnDemandBase: 5}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool := &v1alpha1.WorkerPool{Spec: v1alpha1.WorkerPoolSpec{Max: 5, Provider: c.provider, Market: c.market}}
			old := v1alpha1.WorkerPoolStatus{Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionInterruptionsReceived, Status: metav1.ConditionUnknown},
			}}
			status := statusOf(old, pool, hold(start, plan.NothingToDo, ""))
			got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionInterruptionsReceived)
			if c.want == "" {
				assert.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			assert.Equal(t, c.want, got.Status)
			if c.want == metav1.ConditionFalse {
				assert.Equal(t, "NoInterruptionQueue", got.Reason)
				for _, text := range []string{
					"the two-minute warning", "its pods are not evicted",
					"Set provider.ec2.interruptionQueue, or market.spotRatio to 0",
				} {
					assert.Contains(t, got.Message, text)
				}
			}
		})
	}
}

// TestDeletedPoolsHaveNoMetrics: they would look like the metrics of an idle pool.
func TestDeletedPoolsHaveNoMetrics(t *testing.T) {
	h := newHarness(t)
	h.reporter.Report(t.Context(), hold(start, plan.NothingToDo, ""))
	before, err := testutil.GatherAndCount(h.registry)
	require.NoError(t, err)
	require.Greater(t, before, 10)
	h.metrics.Forget("workers")
	after, err := testutil.GatherAndCount(h.registry)
	require.NoError(t, err)
	assert.Equal(t, 3, after, "the counter of each receiver of notifications has no pool")
}

func TestWebhookReceivesImportantEvents(t *testing.T) {
	got := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Text string }
		content, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.NoError(t, json.Unmarshal(content, &body))
		got <- body.Text
		w.WriteHeader(http.StatusOK)
	}))
	defer receiver.Close()
	h := newHarness(t, func(o *Options) { o.Webhook = &Webhook{URL: receiver.URL, Client: receiver.Client()} })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.reporter.Run(ctx) }()
	cycle := hold(start, plan.AtMaximum, "10 workers of 10")
	cycle.Events = []journal.Event{
		{Reason: journal.EventLaunched, Message: "not notified"},
		{Reason: journal.EventDrainFailed, Message: "the node a takes pods again"},
	}
	h.reporter.Report(t.Context(), cycle)
	assert.Equal(t, "Worker pool workers is at its maximum: 10 workers of 10", <-got)
	assert.Equal(t, "Worker pool workers, a drain failed: the node a takes pods again", <-got)
	cancel()
	assert.NoError(t, <-ended)
}

func TestFailingWebhookBlocksNothingAndKeepsItsURLSecret(t *testing.T) {
	down := Webhook{URL: "http://127.0.0.1:1/secret", Client: http.DefaultClient}
	err := down.post(t.Context(), "hello")
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "secret")
	bad := Webhook{URL: "://secret", Client: http.DefaultClient}
	assert.EqualError(t, bad.post(t.Context(), "hello"), "the URL of the webhook is no URL")

	h := newHarness(t) // without a reader of the queue
	cycle := hold(start, plan.NothingToDo, "")
	cycle.Events = []journal.Event{{Reason: journal.EventDrainFailed, Message: "x"}}
	for range backlog + 3 {
		h.reporter.Report(t.Context(), cycle)
	}
	assert.Equal(t, 3.0, testutil.ToFloat64(h.metrics.failed.WithLabelValues("webhook")))
}

// putter records what is sent to CloudWatch.
type putter struct {
	sent []*cloudwatch.PutMetricDataInput
}

func (p *putter) PutMetricData(
	_ context.Context, in *cloudwatch.PutMetricDataInput, _ ...func(*cloudwatch.Options),
) (*cloudwatch.PutMetricDataOutput, error) {
	p.sent = append(p.sent, in)
	return &cloudwatch.PutMetricDataOutput{}, nil
}

func TestCloudWatchReceivesKnownValuesOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &putter{}
		h := newHarness(t, func(o *Options) { o.CloudWatch = &CloudWatch{Client: to, Namespace: "Foresail"} })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.reporter.Run(ctx) }()
		for i := range 9 {
			h.reporter.Report(t.Context(), hold(start.Add(time.Duration(i)*15*time.Second), plan.NothingToDo, ""))
			synctest.Wait()
		}
		cancel()
		require.NoError(t, <-ended)
		require.Len(t, to.sent, 3)
		values := map[string]float64{}
		for _, d := range to.sent[0].MetricData {
			values[*d.MetricName] = *d.Value
		}
		assert.Equal(t, map[string]float64{"PendingPods": 5, "Nodes": 2, "ReadyNodes": 1}, values)
	})
}

// TestHealthIsTheLastOutcome: a pool whose launches the cloud rejects or does not answer is not healthy in any
// cycle, and nothing is got to work that has not.
func TestHealthIsTheLastOutcome(t *testing.T) {
	const missing = "RunInstances: Invalid: InvalidSubnetID.NotFound"
	trying := &state.Action{
		Kind: state.ActionUp,
		Slots: []state.Slot{
			{State: state.SlotPlanned}, {State: state.SlotPlanned, Tries: 2, Error: "RunInstances: Unknown: 500"},
		},
	}
	for name, test := range map[string]struct {
		record  state.Record
		healthy bool
		message string
	}{
		"nothing was launched": {state.Record{}, true, "and nothing has been launched yet"},
		"launches join":        {state.Record{Joins: []state.Join{{}}}, true, "and launches join"},
		"one did not join": {
			state.Record{Joins: []state.Join{{}}, Failures: 1}, true, "and no node joined in the last scale-up",
		},
		"three did not": {state.Record{Failures: 3}, false, "no node joined in the last 3 scale-ups"},
		"one was rejected": {
			state.Record{Joins: []state.Join{{}}, Failures: 1, LaunchError: missing}, false,
			"no node joined in the last scale-up: " + missing,
		},
		"some were rejected": {
			state.Record{Joins: []state.Join{{}}, LaunchError: missing}, false,
			"some launches of the last scale-up failed: " + missing,
		},
		"one is tried again": {
			state.Record{Joins: []state.Join{{}}, Action: trying}, false,
			"a launch is retried: RunInstances: Unknown: 500",
		},
		"one has not been tried": {
			state.Record{Joins: []state.Join{{}}, Action: &state.Action{Slots: trying.Slots[:1]}}, true, "and launches join",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			cycle := hold(start, plan.NothingToDo, "")
			cycle.Record = test.record
			h.reporter.Report(t.Context(), cycle)
			c := meta.FindStatusCondition(h.status(t).Conditions, v1alpha1.ConditionHealthy)
			assert.Equal(t, test.healthy, c.Status == metav1.ConditionTrue)
			assert.Contains(t, c.Message, test.message)
			assert.Equal(t, oneIf(test.healthy), testutil.ToFloat64(h.metrics.healthy.WithLabelValues("workers")))
		})
	}
}

// TestEachInstanceIsInAnEvent: Kubernetes merges Events with the same reason and action, and keeps the first text.
func TestEachInstanceIsInAnEvent(t *testing.T) {
	var seen []string
	r := &noteRecorder{record: func(reason, action, note string) { seen = append(seen, reason+" "+action+" "+note) }}
	h := newHarness(t, func(o *Options) { o.Events = r })
	launched := func(id string) journal.Event {
		return journal.Event{Reason: journal.EventLaunched, Action: "up-1", Instance: id, Message: "Launched " + id}
	}
	cycle := hold(start, "", "")
	cycle.Events = []journal.Event{launched("i-1"), {Reason: journal.EventLeading, Message: "it leads"}, launched("i-2")}
	h.reporter.Report(t.Context(), cycle)
	cycle.Events = []journal.Event{launched("i-3")}
	h.reporter.Report(t.Context(), cycle)
	assert.Equal(
		t,
		[]string{
			"Launched up-1/i-1 2 times: Launched i-1; Launched i-2", "Leading Leading it leads",
			"Launched up-1/i-3 Launched i-3",
		},
		seen,
	)
}

// noteRecorder passes on what distinguishes Events.
type noteRecorder struct {
	record func(reason, action, note string)
}

func (r *noteRecorder) Eventf(_, _ runtime.Object, _, reason, action, note string, args ...any) {
	r.record(reason, action, fmt.Sprintf(note, args...))
}
