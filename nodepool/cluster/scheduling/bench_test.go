package scheduling

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

// full returns n nodes in three zones that run 30 pods each of 300 applications, and have little room.
func full(n int) []cluster.Node {
	kinds := make([]*cluster.Kind, 300)
	for i := range kinds {
		kinds[i] = bound("app-"+strconv.Itoa(i), "130m").Kind
	}
	var out []cluster.Node
	for i := range n {
		var runs []*cluster.Pod
		for j := range 30 {
			runs = append(runs, &cluster.Pod{Name: fmt.Sprintf("p-%d-%d", i, j), Kind: kinds[(i*30+j)%len(kinds)]})
		}
		at := node(fmt.Sprintf("n-%05d", i), string(rune('a'+i%3)), runs...)
		at.Object.Status.Allocatable = list("cpu", "4", "memory", "64Gi", "pods", "110")
		out = append(out, at)
	}
	return out
}

// inZones gives every pod a volume in one of three zones.
func inZones(in []cluster.Pending) []cluster.Pending {
	for i := range in {
		located(in[i:i+1], zone, string(rune('a'+i%3)))
	}
	return in
}

func BenchmarkPack(b *testing.B) {
	offers := []provider.Offer{offer("a", "m", "pods", "110"), offer("b", "m", "pods", "110"),
		offer("c", "m", "pods", "110")}
	many := func(apps, each int, changes ...change) []cluster.Pending {
		var out []cluster.Pending
		for i := range apps {
			size := requests("cpu", strconv.Itoa(100+7*i%900)+"m", "memory", "128Mi")
			out = append(out, pods("new-"+strconv.Itoa(i), each, append([]change{size}, changes...)...)...)
		}
		return out
	}
	own := func(rule func(app, key string) change, key string) change {
		return func(p *corev1.Pod) { rule(p.Labels["app"], key)(p) }
	}
	for _, test := range []struct {
		name string
		pods []cluster.Pending
	}{
		{"0 pods", nil},
		{"10 pods of 1", many(1, 10)},
		{"10000 pods of 1", many(1, 10000)},
		{"10000 pods of 100", many(100, 100)},
		{"10000 pods of 10000", many(10000, 1)},
		{"10000 pods of 100, apart", many(100, 100, own(awayFrom, host))},
		{"10000 pods of 1, apart", many(1, 10000, own(awayFrom, host))},
		{"10000 pods of 100, spread over zones", many(100, 100, spreadOver(zone, 1))},
		{"10000 pods of 100, spread over hosts", many(100, 100, spreadOver(host, 1))},
		{"10000 pods of 1, spread over hosts", many(1, 10000, spreadOver(host, 1))},
		{"10000 pods of 100, with volumes in zones", inZones(many(100, 100))},
	} {
		for _, nodes := range []int{100, 1000, 5000} {
			b.Run(fmt.Sprintf("%s, %d nodes", test.name, nodes), func(b *testing.B) {
				in := Input{Pods: test.pods, Nodes: full(nodes), Offers: offers}
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					n = Pack(in).Nodes
				}
				b.ReportMetric(float64(n), "nodes")
			})
		}
	}
}

// BenchmarkPackByCost packs onto as many types as requirements offer at most.
func BenchmarkPackByCost(b *testing.B) {
	var offers []provider.Offer
	costs := map[fleet.Offer]float64{}
	for i := range 60 {
		cores := 2 << (i % 6)
		for _, z := range []string{"a", "b", "c"} {
			o := offer(z, fmt.Sprintf("type-%d", i), "cpu", strconv.Itoa(cores), "memory",
				strconv.Itoa(cores*(2<<(i%3)))+"Gi", "pods", "110")
			offers = append(offers, o)
			costs[o.Offer] = float64(cores) * (0.04 + float64(i%7)/1000)
		}
	}
	for _, apps := range []int{1, 100, 10000} {
		var waiting []cluster.Pending
		for i := range apps {
			size := requests("cpu", strconv.Itoa(100+7*i%900)+"m", "memory", "128Mi")
			waiting = append(waiting, pods("new-"+strconv.Itoa(i), 10000/apps, size)...)
		}
		for _, test := range []struct {
			name  string
			costs map[fleet.Offer]float64
		}{{"in their order", nil}, {"by cost", costs}} {
			b.Run(fmt.Sprintf("10000 pods of %d, %s", apps, test.name), func(b *testing.B) {
				in := Input{Pods: waiting, Nodes: full(1000), Offers: offers, Costs: test.costs}
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					n = Pack(in).Nodes
				}
				b.ReportMetric(float64(n), "nodes")
			})
		}
	}
}
