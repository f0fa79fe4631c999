package extender

import (
	"testing"
	"time"
	"unique"
	"unsafe"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// noon is now in the tests of what is watched.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func since(kind corev1.PodConditionType, status corev1.ConditionStatus, at time.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(at)}
}

func TestBoundAt(t *testing.T) {
	created := noon.Add(-time.Hour)
	for name, c := range map[string]struct {
		conditions []corev1.PodCondition
		want       time.Time
	}{
		"as the API says": {[]corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue,
			noon.Add(-time.Minute))}, noon.Add(-time.Minute)},
		"at once": {[]corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue, created)},
			created},
		"in the same moment": {[]corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue, noon)}, noon},
		"never told":         {nil, noon},
		"in the future": {[]corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue,
			noon.Add(time.Second))}, noon},
		"before it was made": {[]corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue,
			created.Add(-time.Second))}, noon},
		"without a time": {[]corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}, noon},
		"not, but bound by hand": {[]corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionFalse,
			noon.Add(-time.Minute))}, noon},
		"of another condition": {[]corev1.PodCondition{since(corev1.PodReady, corev1.ConditionTrue,
			noon.Add(-time.Minute))}, noon},
		"as one of several tells": {[]corev1.PodCondition{since(corev1.PodReady, corev1.ConditionTrue, noon),
			since(corev1.PodScheduled, corev1.ConditionTrue, noon.Add(-time.Minute))}, noon.Add(-time.Minute)},
	} {
		p := podOf()
		p.CreationTimestamp, p.Status.Conditions = metav1.NewTime(created), c.conditions
		assert.Equal(t, c.want, boundAt(p, noon), name)
	}
}

func TestPodRecord(t *testing.T) {
	p := podOf(declared("a", "1", "2", "100Mi", ""))
	r, ok := recordOf(p, nil, noon)
	assert.True(t, ok, "it may be bound soon")
	assert.Equal(t, record{}, r)
	assert.False(t, r.isBound())

	p.Spec.NodeName = "n"
	p.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
	p.Status.Conditions = []corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue,
		noon.Add(-time.Minute))}
	want := record{node: unique.Make("n"), requests: use{1000, 100 * mib}, estimate: use{1700, 70 * mib},
		bound: noon.Add(-time.Minute).UnixNano()}
	r, ok = recordOf(p, nil, noon)
	assert.True(t, ok)
	assert.Equal(t, want, r)
	assert.True(t, r.startedAt().IsZero())

	p.Status.ContainerStatuses = []corev1.ContainerStatus{ranSince(noon.Add(-time.Second))}
	r, _ = recordOf(p, nil, noon)
	assert.True(t, r.startedAt().Equal(noon.Add(-time.Second)))
	r, _ = recordOf(p, nil, noon.Add(assumedLife))
	assert.Equal(t, use{}, r.estimate, "the assumed does not need it any more")

	for _, end := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		p.Status.Phase = end
		_, ok = recordOf(p, nil, noon)
		assert.False(t, ok, end)
	}
}

func TestStartedAt(t *testing.T) {
	early, late := noon.Add(-time.Minute), noon.Add(-time.Second)
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(late)}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	for name, c := range map[string]struct {
		containers []corev1.ContainerStatus
		want       time.Time // zero: not yet
	}{
		"no kubelet has told": {nil, time.Time{}},
		"one of two":          {[]corev1.ContainerStatus{ranSince(early), {State: waiting}}, time.Time{}},
		"both":                {[]corev1.ContainerStatus{ranSince(late), ranSince(early)}, late},
		"one has ended":       {[]corev1.ContainerStatus{ranSince(early), {State: ended}}, late},
		"one waits to run again": {[]corev1.ContainerStatus{ranSince(early),
			{State: waiting, LastTerminationState: ended}},
			late},
	} {
		p := podOf()
		p.Status.ContainerStatuses = c.containers
		got := record{started: startedAt(p)}.startedAt()
		assert.True(t, c.want.Equal(got), "%s: %s", name, got)
	}
}

// With its key, in a map that is two thirds full, a pod takes some 120 bytes.
func TestPodRecordSize(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(record{})+unsafe.Sizeof(podID{}), uintptr(80))
}
