package backtest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/world/workload"
	"github.com/foresail/foresail/pipeline"
)

// traceOf is a trace of n rates, so many seconds apart.
func traceOf(t *testing.T, seconds, n int, rate func(number int) float64) *workload.Trace {
	t.Helper()
	var trace strings.Builder
	trace.WriteString("unix_seconds,requests_per_second\n")
	for k := range n {
		fmt.Fprintf(&trace, "%d,%.2f\n", k*seconds, rate(k))
	}
	read, err := workload.ReadTrace("trace", strings.NewReader(trace.String()))
	require.NoError(t, err)
	return read
}

func optionsOf(trace *workload.Trace, capacity float64) *Options {
	return &Options{Trace: trace, Capacity: capacity, Threshold: 0.7, Params: scaler.RecommendedParams(),
		Seeds: []uint64{1}}
}

// What is known before a section is the same in whatever order sections are played, also of a trace
// that lasts for several epochs.
func TestPastsDoNotDependOnTheOrderOfSections(t *testing.T) {
	const hour = 3600 * second
	o := optionsOf(traceOf(t, 600, 28*6, func(n int) float64 { return 50 + 30*math.Sin(float64(n)/10) + float64(n%7) }),
		10)
	setting := o.setting("foresail-total")
	times := []int64{3 * hour, 6*hour + 1234*second, 13 * hour, 14 * hour, 25 * hour}
	all := map[int64]*pipeline.Learned{}
	forwards, backwards := newPlayer(o), newPlayer(o)
	forwards.pasts.epoch, backwards.pasts.epoch = 12*hour, 12*hour
	for _, at := range times {
		all[at] = forwards.pasts.of(&setting, at)
	}
	for i := range times {
		at := times[len(times)-1-i]
		require.Equal(t, all[at], backwards.pasts.of(&setting, at), "at %d", at)
	}
	assert.Equal(t, int64(-second), all[3*hour].Newest(), "as if it were 0")
	assert.Greater(t, all[13*hour].Known(), 12*time.Hour, "the epoch before is known")
	assert.Zero(t, forwards.pasts.of(&setting, -600*second).Known())
	setting.Params.Method = pipeline.Holt
	assert.Nil(t, forwards.pasts.of(&setting, 3*hour))
}

// What is learned of a rate is learned of the requests that it leads to, as pods measure them: of a
// rate alone even few requests would seem to be without chance.
func TestPastsAreOfWhatPodsMeasure(t *testing.T) {
	o := optionsOf(traceOf(t, 600, 24*6, func(int) float64 { return 4 }), 4)
	setting := o.setting("foresail-total")
	past := newPlayer(o).pasts.of(&setting, 12*3600*second)
	in := pipeline.Input{Learned: past, Now: 0, Target: 2,
		Instances: []pipeline.Instance{{ID: "a", Start: pipeline.Never}}}
	for s := int64(-320); s <= 0; s++ {
		in.Instances[0].Samples = append(in.Instances[0].Samples, pipeline.Sample{T: s * second, V: 1})
	}
	params := setting.Params
	params.Threshold, params.Min, params.Max = setting.Target, 1, 10
	p, err := pipeline.New(params)
	require.NoError(t, err)
	f, err := p.Run(in)
	require.NoError(t, err)
	require.True(t, f.MarginLearned)
	assert.InDelta(t, 1, f.Total, 0.05)
	assert.Greater(t, f.PlannedLoad, 1.17,
		"20 s of four requests each are 80, and 11% of these is chance; of the rate alone it was 1.15")
}

// A trace that counts the requests of each second has their chance.
func TestPastsOfCountsAreOfTheseCounts(t *testing.T) {
	counts := func(s int) float64 { return float64(3 + s%4) }
	o := optionsOf(traceOf(t, 1, 2*3600, counts), 4)
	setting := o.setting("foresail-total")
	p := newPlayer(o)
	params := setting.Params
	params.Threshold = setting.Target
	want := pipeline.NewLearned(&params)
	options := params.LearnOptions()
	for s := range 3600 {
		want.Add(int64(s)*second, counts(s)/4, options)
	}
	assert.Equal(t, want.Shifted(time.Hour), p.pasts.of(&setting, 3600*second))

	setting.Params.ScaleDownMargin += 0.1
	p.pasts.of(&setting, 3600*second)
	assert.Len(t, p.pasts.made, 2, "margins depend on how soon pods are given back")
}
