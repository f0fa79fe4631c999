package signal

import (
	"fmt"
	"testing"

	"github.com/foresail/foresail/api/v1alpha1"
)

// BenchmarkObserve is a tick of a pool whose window is full: with requests alone, and with the CPU that Prometheus tells
// as well, whose answer has three samples of each node.
func BenchmarkObserve(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		list := workers(n, 2000)
		tick := func(b *testing.B, s *Set) {
			now := began
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
