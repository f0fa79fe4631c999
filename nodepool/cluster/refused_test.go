package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
)

// The messages are put as the FitError of the scheduler does.
func TestRefusedForLoad(t *testing.T) {
	const tail = " preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
	for name, test := range map[string]struct {
		message string
		since   time.Time
		want    bool
	}{
		"by all nodes": {"0/5 nodes are available: 5 " + v1alpha1.FilteredForLoad + "." + tail, epoch, true},
		"by those that fit": {"0/5 nodes are available: 2 Insufficient cpu, 3 " +
			v1alpha1.FilteredForLoad + "." + tail, epoch, true},
		"by the one there is": {"0/1 nodes are available: 1 " + v1alpha1.FilteredForLoad + ".", epoch, true},
		"for removal":         {"0/5 nodes are available: 5 " + v1alpha1.FilteredForRemoval + "." + tail, epoch, false},
		"as others have room": {"0/500 nodes are available: 100 " + v1alpha1.FilteredElsewhere + ".", epoch, false},
		"by requests":         {"0/5 nodes are available: 5 Insufficient cpu." + tail, epoch, false},
		"without a word":      {"", epoch, false},
		"by a clock ahead of ours": {"0/5 nodes are available: 5 " + v1alpha1.FilteredForLoad + ".",
			epoch.Add(time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := onNode("p", unschedulable(test.since), func(p *corev1.Pod) { p.Status.Conditions[0].Message = test.message })
			pending := see(nodeNamed("n"), []*corev1.Pod{pod}).Pending
			require.Len(t, pending, 1)
			assert.Equal(t, test.want, pending[0].Filtered)
		})
	}
}

func TestJoined(t *testing.T) {
	made := epoch.Add(-time.Hour)
	for name, test := range map[string]struct {
		made, ready time.Time // ready is zero if it is not
		want        time.Time
	}{
		"a minute after it was made": {made, made.Add(time.Minute), made.Add(time.Minute)},
		"out of touch for a while":   {made, made.Add(50 * time.Minute), made.Add(joinsWithin)},
		"by a clock behind":          {made, made.Add(-time.Hour), made},
		"not Ready":                  {made, time.Time{}, time.Time{}},
		"made at an unknown time":    {time.Time{}, epoch, epoch},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodeNamed("n")
			n.CreationTimestamp = metav1.NewTime(test.made)
			if !test.ready.IsZero() {
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
					LastTransitionTime: metav1.NewTime(test.ready)}}
			}
			assert.True(t, test.want.Equal(see(n, nil).Nodes[0].Joined))
		})
	}
}
