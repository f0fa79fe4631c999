package pipeline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// busy returns a fleet of n instances with a sample a second for as many ticks, a quarter of them new.
func busy(n, ticks int) (pipeline.Params, pipeline.Input) {
	p := defaults()
	p.Window = time.Duration(ticks) * time.Second
	r := newFleets(1)
	now := int64(1_700_000_000_000)
	in := at(now)
	for i := range n {
		instance := pipeline.Instance{ID: fmt.Sprintf("web-%02d", i), Start: now - 10*p.Window.Milliseconds()}
		if i%4 == 3 {
			instance.Start = now - 20_000
		}
		offset := r.Int64N(1000)
		for k := ticks; k >= 0; k-- {
			instance.Samples = append(instance.Samples, pipeline.Sample{T: now - int64(k)*1000 + offset - 500, V: r.Float64()})
		}
		in.Instances = append(in.Instances, instance)
	}
	return p, in
}

func BenchmarkRun(b *testing.B) {
	for _, ticks := range []int{90, 900} {
		b.Run(fmt.Sprintf("instances=20/ticks=%d", ticks), func(b *testing.B) {
			params, in := busy(20, ticks)
			p, err := pipeline.New(params)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Run(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSum is what BenchmarkRun is to be held against: the sum of the samples of each tick, and nothing else.
func BenchmarkSum(b *testing.B) {
	for _, ticks := range []int{90, 900} {
		b.Run(fmt.Sprintf("instances=20/ticks=%d", ticks), func(b *testing.B) {
			_, in := busy(20, ticks)
			sums := make([]float64, ticks)
			b.ReportAllocs()
			for b.Loop() {
				clear(sums)
				for _, instance := range in.Instances {
					for k, s := range instance.Samples[:ticks] {
						sums[k] += s.V
					}
				}
			}
		})
	}
}

// After its first run a pipeline allocates nothing, however long the window, also where samples are out of order.
func TestRunAllocatesNothing(t *testing.T) {
	for _, ticks := range []int{90, 900} {
		params, in := busy(20, ticks)
		for i := range 5 {
			s := in.Instances[i].Samples
			s[0], s[7] = s[7], s[0]
		}
		in.Demand = everySecond(in.Now-50_000, 1, 2, 3)
		p, err := pipeline.New(params)
		require.NoError(t, err)
		require.Zero(t, testing.AllocsPerRun(10, func() {
			if _, err := p.Run(in); err != nil {
				t.Error(err)
			}
		}), "%d ticks", ticks)
	}
}
