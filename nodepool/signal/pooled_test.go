package signal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/pipeline"
)

func TestPooledValues(t *testing.T) {
	unready := workers(4, 0)
	unready[3].Ready = false
	tests := map[string]struct {
		value     v1alpha1.PoolValue
		threshold string
		series    float64
		o         Observation
		want      plan.Signal // its Now, Predicted, Desired and Fits
	}{
		"a queue that is shared": {
			v1alpha1.PoolValueSum, "100", 450, Observation{Workers: workers(5, 0), Expected: 5},
			plan.Signal{Now: 90, Predicted: 90, Desired: 5, Fits: 6},
		},
		"a queue that is too long": {
			v1alpha1.PoolValueSum, "100", 650, Observation{Workers: workers(5, 0), Expected: 5},
			plan.Signal{Now: 130, Predicted: 130, Desired: 7, Fits: 9},
		},
		"joining workers": {
			v1alpha1.PoolValueSum, "100", 650, Observation{Workers: workers(5, 0), Expected: 8},
			plan.Signal{Now: 130, Predicted: 81.25, Desired: 8, Fits: 9},
		},
		"a worker that is not Ready": {
			v1alpha1.PoolValueSum, "100", 300, Observation{Workers: unready, Expected: 4},
			plan.Signal{Now: 100, Predicted: 75, Desired: 4, Fits: 4},
		},
		"unschedulable pods": {
			v1alpha1.PoolValueSum, "100", 450, Observation{Workers: workers(5, 0), Expected: 5, Demand: nodes(2)},
			plan.Signal{Now: 130, Predicted: 130, Desired: 7, Fits: 9},
		},
		"no workers": {
			v1alpha1.PoolValueSum, "100", 150, Observation{},
			plan.Signal{Now: 150, Predicted: 150, Desired: 2, Fits: 2},
		},
		"no load": {
			v1alpha1.PoolValueSum, "100", 0, Observation{Workers: workers(5, 0), Expected: 5},
			plan.Signal{Desired: 0, Fits: 0},
		},
		"a latency below": {
			v1alpha1.PoolValueLevel, "500", 300, Observation{Workers: workers(5, 0), Expected: 5, Demand: nodes(2)},
			plan.Signal{Now: 300, Predicted: 300, Desired: 4, Fits: 4},
		},
		"a latency near": {
			v1alpha1.PoolValueLevel, "500", 400, Observation{Workers: workers(5, 0), Expected: 6},
			plan.Signal{Now: 400, Predicted: 400, Desired: 6, Fits: 6},
		},
		"a latency above": {
			v1alpha1.PoolValueLevel, "500", 2000, Observation{Workers: workers(5, 0), Expected: 5},
			plan.Signal{Now: 2000, Predicted: 2000, Desired: 6, Fits: 5},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := &fakeProm{}
			f.set(load("", constant(test.series)))
			s := newSet(t, asking(f, "queue", v1alpha1.SignalQuery{Query: "sum(queue)", Value: test.value}, test.threshold))
			got := replay(t, s, "queue", 70, func(int, time.Time) Observation { return test.o })
			x := got[len(got)-1]
			require.True(t, x.Known, x.Err)
			assert.InDelta(t, test.want.Now, x.Now, 0.1)
			assert.InDelta(t, test.want.Predicted, x.Predicted, 0.1)
			assert.Equal(t, []int{test.want.Desired, test.want.Fits}, []int{x.Desired, x.Fits})
			assert.False(t, x.CPU || x.Memory || x.InformsOnly)
		})
	}
}

// A level needs the existing workers, without those that were launched to replace others.
func TestLevelNeedsExistingWorkers(t *testing.T) {
	for name, test := range map[string]struct {
		series              float64
		expected, replacing int
		want                int
	}{
		"near":                        {400, 6, 0, 6},
		"below":                       {300, 6, 0, 6},
		"above":                       {2000, 6, 0, 7},
		"near, two are replacements":  {400, 8, 6, 6},
		"below, two are replacements": {300, 8, 6, 6},
		"above, two are replacements": {2000, 8, 6, 9},
		"near, others were removed":   {400, 5, 6, 5},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeProm{}
			f.set(load("", constant(test.series)))
			s := newSet(t, asking(f, "latency", v1alpha1.SignalQuery{Query: "latency", Value: v1alpha1.PoolValueLevel}, "500"))
			got := replay(t, s, "latency", 70, func(int, time.Time) Observation {
				return Observation{Workers: workers(5, 0), Expected: test.expected, WorkersBeforeRollout: test.replacing}
			})
			require.True(t, got[len(got)-1].Known)
			assert.Equal(t, test.want, got[len(got)-1].Needs)
		})
	}
}

func TestPooledAnswersThatAreRejected(t *testing.T) {
	f := &fakeProm{}
	s := newSet(t, asking(f, "queue", v1alpha1.SignalQuery{Query: "queue"}, "100"))
	observe := func(i int) plan.Signal {
		return named(
			t,
			s.Observe(
				t.Context(),
				Observation{Now: start.Add(time.Duration(i) * interval), Workers: workers(1, 0), Expected: 1},
			),
			"queue",
		)
	}
	assert.ErrorContains(
		t,
		errorOf(observe(0)),
		`http://prometheus:9090: query "queue" returns no series: must return one: `,
	)
	f.set(load("a", constant(1)), load("b", constant(1)))
	assert.ErrorContains(
		t,
		errorOf(observe(1)),
		`query "queue" returns {node="a"} and {node="b"} at once: must be one series, or nodeLabel must be given`,
	)
	f.set(load("a", constant(50)).Until(start), load("b", constant(50)).Since(start))
	got := observe(2)
	assert.True(t, got.Known, got.Err)
}

// Many exporters report -1 for an unknown value, which is no load that could cancel another.
func TestNegativeValuesAreUnknown(t *testing.T) {
	f := &fakeProm{}
	s := newSet(t, asking(f, "queue", v1alpha1.SignalQuery{Query: "queue"}, "100"))
	f.set(load("a", constant(50)).Until(start), load("a", constant(-1)).Since(start.Add(interval)))
	for i := range 3 {
		o := Observation{Now: start.Add(time.Duration(i) * interval), Workers: workers(1, 0), Expected: 1}
		got := named(t, s.Observe(t.Context(), o), "queue")
		assert.True(t, got.Known, got.Err)
		assert.GreaterOrEqual(t, got.Now, 0.49, "observation %d", i)
	}
}

func TestRoundingOfZeroIsKnown(t *testing.T) {
	got := extend(samples.Series{{T: 1, V: 1e9}}, []pipeline.Sample{{T: 2, V: -1.1920928955078125e-07}, {T: 3, V: -1}})
	assert.Len(t, got, 2)
	assert.Len(t, extend(nil, []pipeline.Sample{{T: 2, V: -1e-15}, {T: 3, V: -1e-6}}), 1)
}

type text string

func (t text) Error() string { return string(t) }

func errorOf(s plan.Signal) error {
	if s.Known {
		return nil
	}
	return text(s.Err)
}

// The idle rule reads CPU and memory from the signals with these names, or else from requests.
func TestSignalsOfTheIdleRule(t *testing.T) {
	f := &fakeProm{}
	f.set(same(2, constant(0.4))...)
	list := workers(3, 1000)
	list[2].Ready = false
	o := Observation{Now: start, Workers: list, Leaving: []cluster.Node{worker("x", start, 4000)}, Expected: 3}
	all := cpuOf(t, f).Observe(t.Context(), o)
	require.Len(t, all, 2)
	assert.True(t, all[0].CPU && !all[0].Memory && !all[0].InformsOnly)
	memory := named(t, all, "requests/memory")
	assert.True(t, memory.Known && memory.Memory && memory.InformsOnly && !memory.CPU)
	assert.InDelta(t, float64(1000<<10)/float64(16<<30-200<<10), memory.Now, 1e-12)

	all = newSet(t, defaults()).Observe(t.Context(), o)
	require.Len(t, all, 3)
	assert.Equal(
		t,
		plan.Signal{Name: "requests/cpu", Known: true, Now: 0.25, Predicted: 0.25, CPU: true, InformsOnly: true},
		all[1],
	)

	all = newSet(t, defaults()).Observe(t.Context(), Observation{Now: start})
	assert.Equal(t, plan.Signal{Name: "requests/cpu", Err: "no worker is Ready", CPU: true, InformsOnly: true}, all[1])
}
