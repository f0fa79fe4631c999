package podtracker

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scheduledAt is a pod that was bound to a node at s.
func scheduledAt(s float64, node string) change {
	return func(p *corev1.Pod) {
		p.Spec.NodeName = node
		others := slices.DeleteFunc(p.Status.Conditions,
			func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
		scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(at(s))}
		p.Status.Conditions = append([]corev1.PodCondition{scheduled}, others...)
	}
}

func TestWaitsOfPods(t *testing.T) {
	tracker := NewTracker(Options{})
	gated := podWith(named("gated"), scheduledAt(90, ""))
	gated.Status.Conditions[0].Status = corev1.ConditionFalse
	for _, p := range []*corev1.Pod{
		podWith(named("at-once"), scheduledAt(1, "node-1")),
		podWith(named("unbound")),
		gated,
		podWith(named("late"), created(50), scheduledAt(170, "node-2")),
		podWith(named("early"), scheduledAt(100, "node-3")),
	} {
		tracker.Update(p)
		tracker.Update(p)
	}
	want := []Wait{{Node: "node-3", Created: at(0), Scheduled: at(100)},
		{Node: "node-2", Created: at(50), Scheduled: at(170)}}
	assert.Equal(t, want, tracker.Waits(), "each once, in order of time")
	tracker.Delete(podWith(named("late"), created(50), scheduledAt(170, "node-2")))
	assert.Equal(t, want, tracker.Waits(), "a pod that has gone has waited all the same")
}

func TestWaitsAreBounded(t *testing.T) {
	tracker := NewTracker(Options{})
	for i := range 2 * waitsKept {
		tracker.Update(podWith(named(fmt.Sprint(i)), scheduledAt(float64(10+i), "node")))
	}
	tracker.Update(podWith(named("old"), scheduledAt(9, "node")))
	waits := tracker.Waits()
	require.Len(t, waits, waitsKept)
	assert.Equal(t, at(10+waitsKept), waits[0].Scheduled)
	assert.Equal(t, at(10+2*waitsKept-1), waits[waitsKept-1].Scheduled)
}
