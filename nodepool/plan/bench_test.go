package plan_test

import (
	"fmt"
	"testing"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/plan"
)

// large is a pool of n workers in three zones, with 64 offers and 8 signals.
func large(n int, from func() plan.Snapshot) plan.Snapshot {
	s := from()
	zones := make([]string, n)
	for i := range zones {
		zones[i] = []string{"a", "b", "c"}[i%3]
	}
	s.Instances = workersIn(zones...)
	s.Pool.Max, s.Pool.MaxBatchUp, s.Pool.MaxBatchDown = 2*n, 0, 10
	for i := range 64 {
		s.Offers = append(s.Offers,
			fleet.Offer{Zone: []string{"a", "b", "c"}[i%3], InstanceType: fmt.Sprintf("m%d.large", i/3)})
	}
	for len(s.Signals) < 16 {
		signal := s.Signals[0]
		signal.Name = fmt.Sprintf("signal-%d", len(s.Signals))
		s.Signals = append(s.Signals, signal)
	}
	return s
}

func BenchmarkDecide(b *testing.B) {
	grow := large(1000, steady)
	pends(&grow, 1000)
	for name, s := range map[string]plan.Snapshot{
		"up 100 next to 1000": grow, "down 10 of 1000": large(1000, idle), "hold 1000": large(1000, steady),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plan.Decide(s)
			}
		})
	}
}
