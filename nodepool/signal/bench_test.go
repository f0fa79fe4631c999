package signal

import (
	"fmt"
	"testing"

	"github.com/foresail/foresail/api/v1alpha1"
)

// BenchmarkObserve runs a tick of a pool with a full window: with requests alone, and with CPU from Prometheus, whose
// answers have three samples of each node.
func BenchmarkObserve(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		list := workers(n, 2000)
		tick := func(b *testing.B, s *Set) {
			now := start
			observe := func() {
				now = now.Add(interval)
				s.Observe(b.Context(), Observation{Now: now, Workers: list, Expected: n, Demand: nodes(3)})
			}
			for range 65 {
				observe()
			}
			b.ReportAllocs()
			for b.Loop() {
				observe()
			}
		}
		b.Run(fmt.Sprintf("requests/nodes=%d", n), func(b *testing.B) { tick(b, newSet(b, defaults())) })
		b.Run(fmt.Sprintf("cpu/nodes=%d", n), func(b *testing.B) {
			f := &fakeProm{}
			f.set(same(n, constant(0.5))...)
			o := asking(f, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m")
			o.Servers = large(f)
			tick(b, newSet(b, o))
		})
	}
}
