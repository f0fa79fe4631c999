package nodepool

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// The replacement of a reclaimed node is one that the pods of that node can run on.
func TestReplacementsAreWhereTheEvictedPodsCanRun(t *testing.T) {
	for _, open := range []bool{false, true} {
		t.Run(fmt.Sprint("with an open scale-up: ", open), func(t *testing.T) {
			r := newRig(t)
			r.world.add(3)
			r.spec.Plan.Min = 0
			for id, zone := range map[string]string{"i-old0": "a", "i-old1": "b", "i-old2": "b"} {
				r.world.instances[id].Zone = zone
				r.world.nodes["node-"+id].object.Labels[corev1.LabelTopologyZone] = zone
			}
			s := r.world.play(
				&workload{app: "web", replicas: 2, template: selectingCPU("1500m", corev1.LabelTopologyZone, "b")},
				&workload{app: "db", replicas: 1, template: selectingCPU("1500m", corev1.LabelTopologyZone, "a")},
			)
			r.settled(s)
			launches := 1
			if open {
				s.all[1].replicas = 2
				r.until("a scale-up is open", 2*time.Minute, func() bool { return r.record().Action != nil })
				launches = 2
			}
			require.Len(t, s.on("node-i-old1"), 1)
			r.take("i-old1")
			r.until("all pods have a node", 5*time.Minute, func() bool {
				return len(r.world.terminated) > 0 && s.waiting() == 0
			})
			r.pass(time.Minute)
			assert.Equal(t, launches, r.world.launches)
			assert.Equal(t, "b", r.world.instances[fmt.Sprint("i-", launches)].Zone)
		})
	}
}

func selectingCPU(cpu, key, value string) corev1.PodSpec {
	out := plain(cpu)
	out.NodeSelector = map[string]string{key: value}
	return out
}
