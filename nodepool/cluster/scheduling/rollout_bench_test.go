package scheduling

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
)

// outdatedPool is a cluster of n nodes in three zones, each of which runs pods of a tenth of its
// CPU, and the pool whose workers they are, all to be replaced at once.
func outdatedPool(b *testing.B, n, each int) (*cluster.Cluster, plan.Snapshot) {
	b.Helper()
	s := plan.Snapshot{
		Now: noon, Pool: plan.Pool{Min: 1, Max: 2 * n}, Pending: plan.Pending{Known: true},
		Disruption: plan.Disruption{Nodes: n, Why: "no budget is active"},
	}
	var objects []runtime.Object
	for i := range n {
		name, zone := fmt.Sprintf("n%05d", i), string(rune('a'+i%3))
		objects = append(objects, node(name, zone).Object)
		for j := range each {
			p := pods("app-"+strconv.Itoa(j), 1, requests("cpu", "400m"))[0].Pod
			p.Name, p.Spec.NodeName = fmt.Sprintf("p-%d-%d", i, j), name
			objects = append(objects, p)
		}
		s.Instances = append(s.Instances, plan.Instance{
			Instance: fleet.Instance{
				ID: "i-" + name, Placement: fleet.Placement{Zone: zone, InstanceType: "m", Market: fleet.OnDemand},
				Launched: noon.Add(-time.Hour), Outdated: "its image is old",
			},
			Worker: true, Node: plan.Node{Name: name, Ready: true}, Known: true,
		})
	}
	c, err := cluster.List(b.Context(), fake.NewClientset(objects...), noon)
	require.NoError(b, err)
	for i := range c.Nodes {
		c.Nodes[i].Ready = true
	}
	for _, zone := range []string{"a", "b", "c"} {
		s.Offers = append(s.Offers, fleet.Offer{Zone: zone, InstanceType: "m"})
	}
	return c, s
}

// counted counts the simulations, each of which costs a packing.
type counted struct {
	*Simulator
	examined int
}

func (c *counted) Without(nodes []string, mayWait bool, added ...fleet.Placement) string {
	c.examined++
	return c.Simulator.Without(nodes, mayWait, added...)
}

// BenchmarkRollOut measures a decision of a roll-out of a pool without budgets: of one whose other half
// has room for the first, and of one without room.
func BenchmarkRollOut(b *testing.B) {
	for _, each := range []int{5, 10} {
		b.Run(fmt.Sprintf("%d pods on each of 1000 nodes", each), func(b *testing.B) {
			c, s := outdatedPool(b, 1000, each)
			s.Signals = []plan.Signal{{Name: "requests", Known: true, Threshold: 0.7, Needs: 100 * each, Desired: 100 * each}}
			in := Input{}
			for _, o := range s.Offers {
				in.Offers = append(in.Offers,
					provider.Offer{Offer: o, Allocatable: list("cpu", "4", "memory", "8Gi", "pods", "10")})
			}
			var d plan.Decision
			examined := 0
			for b.Loop() {
				h := &counted{Simulator: NewSimulator(c, in)}
				s.Simulator = h
				d = plan.Decide(s)
				examined = h.examined
			}
			require.Equal(b, plan.Outdated, d.Reason, d.Message)
			b.ReportMetric(float64(examined), "packings")
			b.ReportMetric(float64(len(d.Targets)), "removed")
			b.ReportMetric(float64(len(d.Placements)), "launched")
		})
	}
}
