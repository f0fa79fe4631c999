package scheduling

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

// sizes are offers in two zones of types with so many CPUs each, and what they cost.
func sizes(costs map[string]float64) (offers []provider.Offer, usd map[fleet.Offer]float64) {
	usd = map[fleet.Offer]float64{}
	for _, kind := range []struct{ name, cpu, memory string }{{"small", "2", "4Gi"}, {"large", "16", "32Gi"},
		{"lean", "16", "8Gi"}, {"wide", "2", "64Gi"}} {
		for _, zone := range []string{"a", "b"} {
			o := offer(zone, kind.name, "cpu", kind.cpu, "memory", kind.memory, "pods", "110")
			offers = append(offers, o)
			if v, ok := costs[kind.name]; ok {
				usd[o.Offer] = v
			}
		}
	}
	return offers, usd
}

// opened returns the types of the new nodes, in the order in which they were added.
func opened(in Input) []string {
	p := packed(in)
	var out []string
	for _, at := range p.nodes.open {
		if at.kind == added {
			out = append(out, p.nodes.catalog.shapes[at.shape].offer.Zone+" "+
				p.nodes.catalog.shapes[at.shape].offer.InstanceType)
		}
	}
	return out
}

func TestNewNodesAreTheCheapestForTheirPods(t *testing.T) {
	all := map[string]float64{"small": 0.1, "large": 0.6, "lean": 0.5, "wide": 0.4}
	for _, c := range []struct {
		name   string
		costs  map[string]float64
		change func(*Input)
		want   []string
	}{
		{"as many as fill a large one", all, func(in *Input) { in.Pods = pods("app", 16) }, []string{"a large"}},
		{"few", all, func(in *Input) { in.Pods = pods("app", 3) }, []string{"a small", "b small"}},
		{"a large one and the rest", all, func(in *Input) { in.Pods = pods("app", 18) }, []string{"a large", "b small"}},
		{"little memory", all, func(in *Input) { in.Pods = pods("app", 16, requests("cpu", "1", "memory", "512Mi")) },
			[]string{"a lean"}},
		{"much memory", all, func(in *Input) { in.Pods = pods("app", 4, requests("cpu", "100m", "memory", "12Gi")) },
			[]string{"a wide"}},
		{"what fills up with others counts",
			map[string]float64{"large": 0.6, "lean": 0.5, "wide": 0.4, "small": 0.4}, func(in *Input) {
				in.Pods = slices.Concat(pods("cpus", 8, requests("cpu", "1", "memory", "256Mi")),
					pods("memory", 4, requests("cpu", "500m", "memory", "6Gi")))
			}, []string{"a large"}},
		{"what cannot be launched comes last", all, func(in *Input) {
			in.Pods = pods("app", 16)
			in.Cooling = map[fleet.Offer]bool{in.Offers[2].Offer: true, in.Offers[3].Offer: true}
		}, []string{"a small", "b small", "a small", "b small", "a small", "b small", "a small", "b small"}},
		{"one zone of it can be launched", all, func(in *Input) {
			in.Pods = pods("app", 16)
			in.Cooling = map[fleet.Offer]bool{in.Offers[2].Offer: true}
		}, []string{"b large"}},
		{"what is not known comes last", map[string]float64{"large": 100},
			func(in *Input) { in.Pods = pods("app", 2) }, []string{"a large"}},
		{"what alone would do has no price", map[string]float64{"small": 0.1},
			func(in *Input) { in.Pods = pods("app", 1, requests("memory", "60Gi")) }, []string{"a wide"}},
		{"nothing is known: in their order", nil, func(in *Input) { in.Pods = pods("app", 5) },
			[]string{"a small", "b small", "a small"}},
		{"pods that keep apart do not fill a large one", all,
			func(in *Input) { in.Pods = pods("app", 3, awayFrom("app", host)) }, []string{"a small", "b small", "a small"}},
		{"the same price: in their order", map[string]float64{"small": 0.1, "large": 0.8},
			func(in *Input) { in.Pods = pods("app", 16) },
			[]string{"a small", "b small", "a small", "b small", "a small", "b small", "a small", "b small"}},
	} {
		var in Input
		in.Offers, in.Costs = sizes(c.costs)
		c.change(&in)
		assert.Equal(t, c.want, opened(in), c.name)
	}
}

// The demand of pods is the number of nodes that they get, of any size, so that a signal does not
// recommend more of them.
func TestEquivalentsAreOfTheNodesThatPodsGet(t *testing.T) {
	var in Input
	in.Offers, in.Costs = sizes(map[string]float64{"small": 0.1, "large": 0.6})
	in.Pods = slices.Concat(pods("app", 16), pods("far", 5, inZone("z")))
	r := Pack(in)
	assert.Equal(t, 1, r.Nodes)
	assert.InDelta(t, 1.0, r.CPU, 1e-9)
	assert.InDelta(t, 0.5, r.Memory, 1e-9)
	assert.InDelta(t, 16.0/110, r.Slots, 1e-9)

	// A pod with room on a node that is there is a share of that one.
	in.Pods = pods("app", 2)
	in.Nodes = []cluster.Node{node("n1", "a")} // of 4 CPUs
	in.Nodes[0].DaemonSets = list("cpu", "1")
	r = Pack(in)
	assert.Equal(t, 2, r.Room)
	assert.InDelta(t, 2.0/3, r.CPU, 1e-9)
	in.Nodes, in.OnTheWay = nil, []fleet.Placement{{Zone: "a", InstanceType: "large"}}
	assert.InDelta(t, 2.0/16, Pack(in).CPU, 1e-9, "on its way")
}

// Summed over many loads, new nodes chosen by cost are cheaper than nodes chosen in any fixed
// order.
func TestChoiceByCostIsCheaper(t *testing.T) {
	costs := map[string]float64{"small": 0.1, "large": 0.7, "lean": 0.5, "wide": 0.3}
	sum := func(byCost bool, order int) (total float64) {
		for seed := range uint64(200) {
			r := rand.New(rand.NewPCG(seed, 3))
			var in Input
			in.Offers, in.Costs = sizes(costs)
			for i := range 1 + r.IntN(5) {
				size := requests("cpu", []string{"250m", "500m", "1", "1500m"}[r.IntN(4)], "memory",
					[]string{"256Mi", "1Gi", "2Gi", "3500Mi"}[r.IntN(4)])
				in.Pods = append(in.Pods, pods(string(rune('a'+i)), 1+r.IntN(12), size)...)
			}
			if !byCost {
				in.Costs = nil
				in.Offers = slices.Concat(in.Offers[2*order:], in.Offers[:2*order])
			}
			for _, node := range opened(in) {
				total += costs[node[2:]]
			}
		}
		return total
	}
	byCost := sum(true, 0)
	for order := range 4 {
		assert.Less(t, byCost, sum(false, order), "order %d", order)
	}
}

// TestPodsWithoutCapacity: pods that only refused offers could run are counted apart, and others do not wait with them.
func TestPodsWithoutCapacity(t *testing.T) {
	small, large := offer("a", "small"), offer("a", "large", "cpu", "64", "memory", "256Gi")
	in := Input{Offers: []provider.Offer{small, large},
		Pods: append(pods("huge", 1, requests("cpu", "40")), pods("web", 2)...)}
	in.Refused = map[fleet.Offer]bool{large.Offer: true}
	for name, cooling := range map[string]map[fleet.Offer]bool{"cooling": in.Refused, "tried again": nil} {
		t.Run(name, func(t *testing.T) {
			in.Cooling = cooling
			r := Pack(in)
			assert.Equal(t, 3, r.Helped)
			assert.Equal(t, 1, r.NoCapacity)
			if cooling == nil {
				assert.Equal(t, []int{1, 0}, []int{r.Nodes, r.NoCapacityNodes}, "all are on the node that is tried")
			} else {
				assert.Equal(t, []int{2, 1}, []int{r.Nodes, r.NoCapacityNodes})
			}
			assert.InDelta(t, equivalents(2, 1000, small.Allocatable.Cpu().MilliValue()), r.CPU, 1e-9)
		})
	}
}
