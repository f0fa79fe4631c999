package pipeline_test

import (
	"fmt"
	"math"
	"slices"
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

// workload is a fleet to measure runs with, and the sum they are held against. Its name starts with
// the method, then come a dash and what is special about it.
type workload struct {
	name   string
	params pipeline.Params
	in     pipeline.Input
	sums   []float64
}

func newWorkload(method string, instances, ticks int) workload {
	params, in := busy(instances, ticks)
	return workload{fmt.Sprintf("%s/instances=%d/ticks=%d", method, instances, ticks), params, in, make([]float64, ticks)}
}

// adapting returns a workload as the adaptive method has it: a window of five minutes.
func adapting(name string, in func(*pipeline.Params, *pipeline.Input)) workload {
	w := newWorkload(name, 20, 300)
	p := adaptive()
	p.Window = w.params.Window
	w.params = p
	in(&w.params, &w.in)
	return w
}

// clip has the instances read at most a half, so that the fleet is clipped now and then.
func clip(p *pipeline.Params, in *pipeline.Input) {
	p.Threshold, p.Saturation = 0.4, pipeline.Saturation{Enabled: true, Max: 0.5}
	for _, i := range in.Instances {
		for k := range i.Samples {
			i.Samples[k].V = min(0.5, i.Samples[k].V*(0.6+0.4*math.Abs(math.Sin(float64(k)/40)))+0.2)
		}
	}
}

// bent returns a fleet of 20 over 90 ticks, every instance of which bend has changed.
func bent(name string, bend func(r fleets, now int64, instance *pipeline.Instance)) workload {
	w := newWorkload(name, 20, 90)
	r := newFleets(2)
	for i := range w.in.Instances {
		bend(r, w.in.Now, &w.in.Instances[i])
	}
	return w
}

// irregular moves the samples by some milliseconds, as answers to scrapes take.
func irregular(r fleets, _ int64, i *pipeline.Instance) {
	for k := range i.Samples {
		i.Samples[k].T += r.Span(-10, 10)
	}
}

func workloads() []workload {
	return []workload{
		newWorkload("holt", 20, 90), newWorkload("holt", 20, 900), newWorkload("holt", 200, 90), newWorkload("holt", 20, 300),
		adapting("adaptive", func(*pipeline.Params, *pipeline.Input) {}), adapting("adaptive-clipped", clip),
		adapting("adaptive-learned", func(p *pipeline.Params, in *pipeline.Input) { in.Learned = learnedUntil(in.Now, p) }),
		adapting("adaptive-farther", func(_ *pipeline.Params, in *pipeline.Input) { in.NodeStartupTime = 3 * time.Minute }),
		adapting("adaptive-irregular", func(_ *pipeline.Params, in *pipeline.Input) {
			r := newFleets(2)
			for _, i := range in.Instances {
				irregular(r, 0, &i)
			}
		}),
		bent("holt-settled", func(_ fleets, now int64, i *pipeline.Instance) { i.Start = now - 900_000 }),
		bent("holt-joining", func(r fleets, now int64, i *pipeline.Instance) { i.Start = now - r.Span(0, 90_000) }),
		bent("holt-rollout", func(r fleets, now int64, i *pipeline.Instance) { i.Start = now - 1000*r.Span(0, 90) }),
		bent("holt-irregular", irregular),
		bent("holt-disordered", func(r fleets, _ int64, i *pipeline.Instance) {
			a, b := r.IntN(90), r.IntN(90)
			i.Samples[a], i.Samples[b] = i.Samples[b], i.Samples[a]
		}),
		bent("holt-silent", func(_ fleets, now int64, i *pipeline.Instance) {
			if i.Start > now-900_000 { // the new ones
				i.Samples = i.Samples[:0]
			}
		}),
	}
}

// learnedUntil returns what a day of a load has taught.
func learnedUntil(now int64, p *pipeline.Params) *pipeline.Learned {
	past := pipeline.NewLearned(p)
	for t := now - 24*3600_000; t < now-15_000; t += 1000 {
		past.Add(t, 10+float64(t/1000%900)/100, p.LearnOptions())
	}
	return past
}

// BenchmarkLearn measures learning from one second of a load; every 15 s each horizon is evaluated.
func BenchmarkLearn(b *testing.B) {
	p := adaptive()
	past := learnedUntil(0, &p)
	t := int64(0)
	for b.Loop() {
		past.Add(t, 10+float64(t/1000%900)/100, p.LearnOptions())
		t += 1000
	}
}

// run returns a function that makes one forecast.
func (w *workload) run(b *testing.B) func() {
	p, err := pipeline.New(w.params)
	require.NoError(b, err)
	return func() {
		if _, err := p.Run(w.in); err != nil {
			b.Fatal(err)
		}
	}
}

// sum adds up the samples of each tick, and does nothing else: the least that whatever reads the
// window can cost. Its inner loop is so small that it takes almost twice as long where it lies
// across two lines of the cache. Written like this it does not, wherever the linker puts it (Go
// 1.26 on amd64).
func (w *workload) sum() {
	sums := w.sums
	clear(sums)
	for _, instance := range w.in.Instances {
		if samples := instance.Samples; len(samples) > 0 {
			for k, s := range samples[:min(len(sums), len(samples))] {
				sums[k] += s.V
			}
		}
	}
}

func BenchmarkRun(b *testing.B) {
	for _, w := range workloads() {
		b.Run(w.name, func(b *testing.B) {
			run := w.run(b)
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}

// BenchmarkSum is the reference for BenchmarkRun.
func BenchmarkSum(b *testing.B) {
	for _, w := range workloads()[:4] {
		b.Run(w.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.sum()
			}
		})
	}
}

// BenchmarkRunAgainstSum reports how many plain sums a run costs. Runs and sums take turns within a
// millisecond or so, so that a machine that slows down slows both; medians over all turns are
// reported. Both methods with their default windows, of 90 and 300 ticks:
//
//	go test ./pipeline -run '^$' -bench 'AgainstSum/^(holt|adaptive)$/=20$/=(90|300)$'
func BenchmarkRunAgainstSum(b *testing.B) {
	for _, w := range workloads() {
		b.Run(w.name, func(b *testing.B) {
			run := w.run(b)
			run() // it allocates the memory of those that follow
			var runs, sums, ratios []float64
			for b.Loop() {
				run, sum := perCall(20, run), perCall(200, w.sum)
				runs, sums, ratios = append(runs, run), append(sums, sum), append(ratios, run/sum)
			}
			b.ReportMetric(median(runs), "ns/run")
			b.ReportMetric(median(sums), "ns/sum")
			b.ReportMetric(median(ratios), "x-sum")
			b.ReportMetric(0, "ns/op") // it would be that of a turn
		})
	}
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// perCall returns how long one of n calls takes, in ns.
func perCall(n int, call func()) float64 {
	start := time.Now()
	for range n {
		call()
	}
	return float64(time.Since(start)) / float64(n)
}

// After its first run a pipeline allocates nothing, however long the window, also where samples are out of order.
func TestRunAllocatesNothing(t *testing.T) {
	for _, method := range methods {
		for _, ticks := range []int{90, 300, 900} {
			t.Run(fmt.Sprintf("%s/%d ticks", method, ticks), func(t *testing.T) { allocatesNothing(t, method, ticks) })
		}
	}
}

func allocatesNothing(t *testing.T, method pipeline.Method, ticks int) {
	for _, bend := range []func(*pipeline.Params, *pipeline.Input){func(*pipeline.Params, *pipeline.Input) {}, clip} {
		params, in := busy(20, ticks)
		params.Method = method
		bend(&params, &in)
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
		}))
	}
}
