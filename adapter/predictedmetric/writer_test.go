package predictedmetric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/adapter/keep/keeptest"
	"github.com/foresail/foresail/api/v1alpha1"
)

// newWriter is a Writer that has been started.
func newWriter(c client.Client, metrics keep.Metrics, clock func() time.Time) *Writer {
	return &Writer{
		Client: c, Metrics: metrics, Events: events.NewFakeRecorder(10), Now: clock,
		Reconciler: &Reconciler{Forecaster: forecaster.New(clock, prometheus.NewRegistry(), forecaster.Options{})},
		written:    map[types.UID]time.Time{}, reports: map[types.UID]*reports{},
	}
}

// reporting is a Writer and the condition Ready of one PredictedMetric.
type reporting struct {
	*Writer
	recorder *events.FakeRecorder
	pm       *v1alpha1.PredictedMetric
	now      time.Time
}

func newReporting() *reporting {
	recorder := events.NewFakeRecorder(100)
	return &reporting{
		Writer:   &Writer{Events: recorder, reports: map[types.UID]*reports{}},
		recorder: recorder, now: now,
		pm: &v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{UID: "uid", Generation: 1}},
	}
}

// last keeps Ready at a reason for a time, "" for a forecast that is served.
func (r *reporting) last(reason snapshot.Reason, d time.Duration) {
	for end := r.now.Add(d); r.now.Before(end); r.now = r.now.Add(checkPeriod) {
		s := healthy()
		s.NewestSample, s.At = r.now, r.now
		if reason != "" {
			s.Err = &snapshot.Unavailable{Reason: reason, Message: "why"}
		}
		status := statusOf(r.pm, problem{}, s, true, r.now)
		r.report(r.pm, &status, r.now)
		r.pm.Status = status
	}
}

func (r *reporting) sent() []string { return keeptest.Sent(r.recorder) }

const forecastServed = "Normal ForecastServed a forecast is served"

func TestHealthyStartWarnsOfNothing(t *testing.T) {
	r := newReporting()
	r.last(snapshot.NoReadyPods, 5*time.Minute) // the pods wait for nodes
	r.last(snapshot.WaitingForSamples, 10*time.Second)
	r.last(snapshot.WarmingUp, 20*time.Second)
	r.last("", time.Hour)
	assert.Equal(t, []string{forecastServed}, r.sent())
}

func TestFaultsThatPassWarnOfNothing(t *testing.T) {
	r := newReporting()
	r.last("", time.Minute)
	r.last(snapshot.PodsUnreadable, faultGrace-checkPeriod)
	r.last("", time.Minute)
	assert.Equal(t, []string{forecastServed}, r.sent())
}

func TestEachCauseWarnsOnce(t *testing.T) {
	for _, c := range []struct {
		reason snapshot.Reason
		after  time.Duration
	}{
		{snapshot.InvalidSpec, 0}, {snapshot.SourceFailing, 0}, {snapshot.Stale, 0}, {snapshot.BadSamples, 0},
		{snapshot.PodsUnreadable, faultGrace},
		{snapshot.WaitingForSamples, startGrace}, {snapshot.WarmingUp, startGrace},
	} {
		t.Run(string(c.reason), func(t *testing.T) {
			r := newReporting()
			warning := "Warning " + string(c.reason) + " why"
			r.last(c.reason, c.after)
			assert.Empty(t, r.sent())
			r.last(c.reason, 3*time.Hour)
			assert.Equal(t, []string{warning}, r.sent())

			for range 5 { // comes and goes
				r.last("", 10*time.Second)
				r.last(c.reason, c.after+10*time.Second)
			}
			assert.LessOrEqual(t, len(r.sent()), 3, "the forecast that is served again, and at most one more Warning")
			r.last("", 2*repeatPeriod)
			r.sent()
			r.last(c.reason, c.after+checkPeriod)
			assert.Equal(t, []string{warning}, r.sent(), "a later fault is another one")
		})
	}
}

func TestNewLeaderDoesNotRepeatEvents(t *testing.T) {
	r := newReporting()
	r.last(snapshot.PodsUnreadable, 5*time.Minute)
	require.Len(t, r.sent(), 1)
	r.reports = map[types.UID]*reports{}
	r.last(snapshot.PodsUnreadable, 5*time.Minute)
	assert.Empty(t, r.sent())
	r.last("", time.Minute)
	assert.Equal(t, []string{forecastServed}, r.sent())
	r.reports = map[types.UID]*reports{}
	r.last("", time.Minute)
	assert.Empty(t, r.sent())
}

// The age of a row of kubectl get is that of updateTime.
func TestWriterWritesStatus(t *testing.T) {
	pm := predictedMetric()
	pm.UID = "uid"
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pm).WithStatusSubresource(pm).Build()
	at := now
	clock := func() time.Time { return at }
	w := newWriter(c, keeptest.Metrics(t, c), clock)
	write := func() v1alpha1.PredictedMetricStatus {
		t.Helper()
		require.NoError(t, w.writeDueStatuses(t.Context(), atOnce))
		var stored v1alpha1.PredictedMetric
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(pm), &stored))
		return stored.Status
	}
	assert.Equal(t, "Unknown Pending", conditionsOf(write())["Ready"])
	w.Reconciler.Forecaster.Reject(client.ObjectKeyFromObject(pm), forecaster.Config{},
		errors.New("spec.threshold: 0: must be above 0"))
	w.Reconciler.problems.m.Store(client.ObjectKeyFromObject(pm),
		problem{err: errors.New("spec.threshold: 0: must be above 0")})
	at = at.Add(checkPeriod)
	status := write()
	assert.Equal(t, "False InvalidSpec", conditionsOf(status)["Ready"], "a changed condition is urgent")
	assert.True(t, status.UpdateTime.Time.Equal(at))
	at = at.Add(2 * refreshPeriod)
	assert.False(t, write().UpdateTime.Time.Equal(at), "nothing has changed")
}

// Statuses are checked in parts, and none any more once the lease is lost.
func TestWriterPausesBetweenParts(t *testing.T) {
	var many []*v1alpha1.PredictedMetric
	for i := range 40 {
		pm := predictedMetric()
		pm.Name, pm.UID = fmt.Sprint("m", i), types.UID(fmt.Sprint(i))
		many = append(many, pm)
	}
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	w := newWriter(fake.NewClientBuilder().WithScheme(scheme).Build(),
		func() ([]*v1alpha1.PredictedMetric, error) { return many, nil }, time.Now)
	var shares []float64
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, w.writeDueStatuses(ctx,
		func(share float64) time.Duration { shares = append(shares, share); return 0 }))
	assert.Equal(t, []float64{0, 0.4, 0.8}, shares)
	cancel()
	assert.ErrorIs(t, w.writeDueStatuses(ctx, atOnce), context.Canceled)
}

// Numbers alone are refreshed evenly: also where all became known in one moment, where a write
// takes long, and where some are refused.
func TestWriterRefreshesEvenly(t *testing.T) {
	for name, c := range map[string]struct {
		metrics, refused int
		takes            time.Duration
		each             time.Duration // between two refreshes of one, at most
	}{
		"few":     {10, 0, 0, refreshPeriod + checkPeriod},
		"many":    {1000, 0, 0, 102 * time.Second},
		"slow":    {200, 0, time.Second, 200 * time.Second}, // 20 in a check
		"refused": {1000, 500, 0, 102 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			begun := now
			at := begun
			scheme := runtime.NewScheme()
			require.NoError(t, v1alpha1.AddToScheme(scheme))
			refreshed := map[string]time.Time{} // of those that are not refused
			inCheck := 0
			patch := func(_ context.Context, _ client.Client, _ string, o client.Object, _ client.Patch,
				_ ...client.SubResourcePatchOption) error {
				inCheck++
				at = at.Add(c.takes)
				if _, taken := refreshed[o.GetName()]; !taken {
					return errors.New("refused")
				}
				refreshed[o.GetName()] = at
				return nil
			}
			var present []*v1alpha1.PredictedMetric
			w := newWriter(fake.NewClientBuilder().WithScheme(
				scheme).WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: patch}).Build(),
				func() ([]*v1alpha1.PredictedMetric,
					error) {
					return slices.Clone(present), nil
				}, func() time.Time { return at })
			for i := range c.metrics {
				pm := predictedMetric()
				pm.Name, pm.UID = fmt.Sprint("m", i), types.UID(fmt.Sprint(i))
				s, known := w.Reconciler.Forecaster.Get(client.ObjectKeyFromObject(pm))
				pm.Status = statusOf(pm, problem{}, s, known, at)
				pm.Status.Source = "another"
				present = append(present, pm)
				if i >= c.refused {
					refreshed[pm.Name] = begun
				}
			}
			for at.Sub(begun) < 10*time.Minute {
				inCheck = 0
				next := at.Add(checkPeriod)
				if err := w.writeDueStatuses(t.Context(), atOnce); c.refused == 0 {
					require.NoError(t, err)
				}
				require.LessOrEqual(t, inCheck, max(2, refreshesPerSecond*int(checkPeriod/time.Second)))
				for name, last := range refreshed {
					require.LessOrEqual(t, at.Sub(last), c.each, name)
				}
				if at.Before(next) {
					at = next
				}
			}
		})
	}
}

// A namespace in which thousands of statuses change all the time does not put off that of another one.
func TestUrgentStatusesOfANamespaceHoldUpNoOther(t *testing.T) {
	at := now
	var all []*v1alpha1.PredictedMetric
	for i := range 5000 {
		pm := predictedMetric()
		pm.Namespace, pm.Name, pm.UID = "bank", fmt.Sprint("m", i), types.UID(fmt.Sprint(i))
		all = append(all, pm)
	}
	victim := predictedMetric()
	victim.UID = "victim"
	all = append(all, victim)
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	written := now
	patch := func(_ context.Context, _ client.Client, _ string, o client.Object, _ client.Patch,
		_ ...client.SubResourcePatchOption) error {
		at = at.Add(10 * time.Millisecond)
		if o.GetNamespace() == victim.Namespace {
			assert.LessOrEqual(t, at.Sub(written), maxCheck+checkPeriod)
			written = at
		}
		return nil // the objects stay as they are: each status is urgent again
	}
	w := newWriter(fake.NewClientBuilder().WithScheme(
		scheme).WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: patch}).Build(),
		func() ([]*v1alpha1.PredictedMetric, error) { return slices.Clone(all), nil }, func() time.Time { return at })
	w.Events = events.NewFakeRecorder(100_000)
	for range 20 {
		require.NoError(t, w.writeDueStatuses(t.Context(), atOnce))
		at = at.Add(checkPeriod)
	}
	assert.LessOrEqual(t, at.Sub(written), maxCheck+checkPeriod)
}

func TestEventsOfDecisionsNameDryRun(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	w := &Writer{Events: recorder}
	before, after := predictedMetric(), predictedMetric()
	after.Status.LastDecision = &v1alpha1.LastDecision{Action: "ScaleUp", Reason: "AboveThreshold", Desired: 6,
		Message: "6 replicas instead of 4"}
	w.record(t.Context(), before, after, 4)
	assert.Equal(t, "Normal AboveThreshold 6 replicas instead of 4", <-recorder.Events)
	after.Spec.DryRun = true
	w.record(t.Context(), before, after, 4)
	assert.Equal(t, "Normal AboveThreshold in dry run: 6 replicas instead of 4", <-recorder.Events)
}

// Of two replicas that take themselves for the leader, the one that has seen less writes nothing.
func TestWriterDoesNotOverwriteAnother(t *testing.T) {
	pm := predictedMetric()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pm).WithStatusSubresource(pm).Build()
	w := newWriter(c, keeptest.Metrics(t, c), time.Now)
	var seen, other v1alpha1.PredictedMetric
	require.NoError(t, c.Get(t.Context(), key, &seen))
	require.NoError(t, c.Get(t.Context(), key, &other))
	other.Status.Source = "written by the new leader"
	require.NoError(t, c.Status().Update(t.Context(), &other))

	tried, err := w.write(t.Context(), &seen, 0)
	require.NoError(t, err, "a conflict is no error: the next check sees what is there")
	assert.False(t, tried)
	require.NoError(t, c.Get(t.Context(), key, &seen))
	assert.Equal(t, "written by the new leader", seen.Status.Source)
	assert.Empty(t, seen.Status.Conditions)
}

// Parts that the status has of objects are written at once when they come or go.
func TestStatusOfObjectsIsUrgent(t *testing.T) {
	before := &v1alpha1.PredictedMetricStatus{
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionAutoscalerReady,
			Status: metav1.ConditionTrue, Reason: "AsRecommended"}},
	}
	assert.False(t, urgent(before, before.DeepCopy()))
	for _, change := range []func(*v1alpha1.PredictedMetricStatus){
		func(s *v1alpha1.PredictedMetricStatus) { s.Conditions = nil },
		func(s *v1alpha1.PredictedMetricStatus) { s.Conditions[0].Reason = "NameTaken" },
		func(s *v1alpha1.PredictedMetricStatus) { s.Autoscaler = "checkout" },
		func(s *v1alpha1.PredictedMetricStatus) { s.CapacityBuffer = &v1alpha1.CapacityBufferStatus{} },
	} {
		after := before.DeepCopy()
		change(after)
		assert.True(t, urgent(before, after))
	}
}

// kept is a keep.Runner that knows an object.
type kept struct{ name string }

func (kept) Start(context.Context) error { return nil }

func (k kept) AddStatus(_ *v1alpha1.PredictedMetric, status *v1alpha1.PredictedMetricStatus, _ time.Time) {
	status.Autoscaler = k.name
}

func TestStatusHasTheObjectsOfKeepers(t *testing.T) {
	pm := predictedMetric()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pm).WithStatusSubresource(pm).Build()
	w := newWriter(c, keeptest.Metrics(t, c), func() time.Time { return now })
	w.Keepers = []keep.Runner{kept{"checkout"}}
	require.NoError(t, w.writeDueStatuses(t.Context(), atOnce))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(pm), pm))
	assert.Equal(t, "checkout", pm.Status.Autoscaler)
}

// atOnce is a pause of no length between parts of the work.
func atOnce(float64) time.Duration { return 0 }
