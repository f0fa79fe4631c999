package pipeline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

func TestTrace(t *testing.T) {
	params := adaptive()
	in := at(6000,
		pipeline.Instance{ID: "b", Start: 2000, Samples: everySecond(3000, 0.2, 0.2)},
		pipeline.Instance{ID: "a", Samples: everySecond(0, 0.5, 0.7, 0.5, 0.5, 0.5, 0.5, 0.5)},
		pipeline.Instance{ID: "c", End: 3000, Samples: everySecond(0, 0.1, 0.1, 0.1)},
	)
	p, err := pipeline.New(params)
	require.NoError(t, err)
	_, trace, err := p.Trace(&pipeline.Memory{}, in, 10)
	require.NoError(t, err)
	assert.Equal(t, int64(0), trace.First)
	assert.Equal(t, time.Second, trace.Interval)
	require.Len(t, trace.Instances, 3)
	a, b, c := trace.Instances[0], trace.Instances[1], trace.Instances[2]
	assert.Equal(t, pipeline.TracedInstance{ID: "a", Values: []float64{0.5, 0.7, 0.5, 0.5, 0.5, 0.5, 0.5},
		AlignedFrom: 0, AlignedTo: 7}, a)
	assert.Equal(t, "b", b.ID)
	assert.Equal(t, []int{3, 5}, []int{b.AlignedFrom, b.AlignedTo})
	assert.True(t, math.IsNaN(b.Values[0]) && math.IsNaN(b.Values[1]), "it has not started")
	assert.Equal(t, []float64{0.2, 0.2}, b.Values[3:5])
	assert.Equal(t, []int{0, 3}, []int{c.AlignedFrom, c.AlignedTo})
	assert.True(t, math.IsNaN(c.Values[3]), "it has ended")
	assert.InDelta(t, 0.7, trace.Sum[4], 1e-12)
	assert.Len(t, trace.Load, 7)
	assert.Equal(t, make([]bool, 7), trace.Clipped)

	newest := trace.Newest(3)
	assert.Equal(t, int64(4000), newest.First)
	assert.Equal(t, trace.Load[4:], newest.Load)
	assert.Equal(t, pipeline.TracedInstance{ID: "a", Values: []float64{0.5, 0.5, 0.5}, AlignedFrom: 0, AlignedTo: 3},
		newest.Instances[0])
	assert.Equal(t, []int{0, 1}, []int{newest.Instances[1].AlignedFrom, newest.Instances[1].AlignedTo})
	assert.Equal(t, []int{3, 5}, []int{b.AlignedFrom, b.AlignedTo}, "the whole trace stays as it is")

	_, trace, err = p.Trace(&pipeline.Memory{}, in, 1)
	require.NoError(t, err)
	assert.Len(t, trace.Instances, 1)
	assert.InDelta(t, 0.7, trace.Sum[4], 1e-12, "the sum is that of all")
}

// A trace has what the stages made, and the forecast is that of a run without it. What failed has none.
func TestTraceAgreesWithRuns(t *testing.T) {
	traced := 0
	for seed := range uint64(500) {
		r := newFleets(seed)
		params := r.params()
		if seed%2 == 0 {
			params.Method = pipeline.Adaptive
		}
		in := r.input(params)
		p, err := pipeline.New(params)
		require.NoError(t, err)
		want, wantErr := p.Run(in)
		got, trace, err := p.Trace(&pipeline.Memory{}, in, len(in.Instances))
		if wantErr != nil {
			require.EqualError(t, err, wantErr.Error(), "seed %d", seed)
			require.Zero(t, trace, "seed %d", seed)
			continue
		}
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, want, got, "seed %d", seed)
		s := stagesOf(t, p, in, want)
		require.Equal(t, s.First, trace.First, "seed %d", seed)
		require.Equal(t, s.Effective, trace.Load, "seed %d", seed)
		require.Equal(t, s.Clipped, trace.Clipped, "seed %d", seed)
		require.Len(t, trace.Instances, len(in.Instances), "seed %d", seed)
		for i := range trace.Instances {
			require.Len(t, trace.Instances[i].Values, len(trace.Load), "seed %d", seed)
			for k, v := range trace.Instances[i].Values {
				if !math.IsNaN(v) {
					require.Equal(t, s.Imputed[k][i], v, "seed %d, instance %d, tick %d", seed, i, k)
				}
			}
		}
		if params.Method == pipeline.Holt {
			near(t, s.Raw, trace.Sum, "sum")
		}
		traced++
	}
	require.Greater(t, traced, 200)
}
