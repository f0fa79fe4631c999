package prometheus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// gateway is a pod that carries a part of a load. Times are in seconds.
type gateway struct {
	created, ready, leaves, gone int     // gone after it leaves; math.MaxInt: never
	phase, apart                 int     // of scrapes
	taken                        float64 // by its counter
	line                         timeline
}

func (g *gateway) serves(t int) bool { return g.ready <= t && t < g.leaves }

func (g *gateway) state(t int) podtracker.PodState {
	switch {
	case t < g.created || t >= g.gone:
		return podtracker.PodAbsent
	case t >= g.leaves:
		return podtracker.PodLeaving
	case t < g.ready:
		return podtracker.PodStarting
	}
	return podtracker.PodReady
}

// fleetOfGateways is gateways that share a load equally, each second.
type fleetOfGateways struct {
	as   source.Type
	load func(t int) float64
	all  []*gateway
	dark bool // nothing is known of pods
}

// run lets time pass and returns the sums by second, and when each was given.
func (f *fleetOfGateways) run(seconds, interval int) (sums map[int]float64, given map[int]int) {
	w := &whole{as: f.as, label: "pod", pods: func(string) podtracker.PodState { return podtracker.PodUnknown }}
	sums, given = map[int]float64{}, map[int]int{}
	for now := range seconds {
		serving := 0
		for _, g := range f.all {
			if g.serves(now) {
				serving++
			}
		}
		for _, g := range f.all {
			f.scrape(g, now, f.load(now)/float64(max(1, serving)))
		}
		if now < 60 || now%interval != 0 {
			continue
		}
		if !f.dark {
			w.pods = func(name string) podtracker.PodState { return f.all[name[0]-'a'].state(now) }
		}
		for _, x := range f.ask(w, now, 130) {
			second := int(x.T/1000 - 1000)
			sums[second], given[second] = x.V, now
		}
	}
	return sums, given
}

func (f *fleetOfGateways) scrape(g *gateway, now int, share float64) {
	value := 0.0
	if g.serves(now) {
		value = share
	}
	g.taken += value
	if f.as == source.Counter {
		value = 1e6 + g.taken
	}
	if now >= g.created && now < g.gone && now%g.apart == g.phase {
		g.line.readings = append(g.line.readings, [2]float64{float64(now), value})
	}
}

// ask returns the sums of an answer that reaches so many seconds back.
func (f *fleetOfGateways) ask(w *whole, now, reach int) []pipeline.Sample {
	var all []*series
	longest := int64(0)
	for i, g := range f.all {
		s := &series{labels: model.Metric{"pod": model.LabelValue(rune('a' + i))}}
		for _, x := range g.line.readings {
			if t := int(x[0]); t > now-reach {
				s.samples = append(s.samples, pipeline.Sample{T: 1_000_000 + int64(t)*1000, V: x[1]})
			}
		}
		if len(s.samples) > 1 {
			s.spacing = int64(g.apart) * 1000
		}
		longest = max(longest, s.spacing)
		if len(s.samples) > 0 {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil
	}
	w.forget(time.Unix(int64(now-240), 0))
	return w.take(all, longest, time.Unix(int64(now), 0))
}

const never = math.MaxInt

func steadily(load float64) func(int) float64 { return func(int) float64 { return load } }

// A gateway is replaced as by a rolling update: the next one is ready before it leaves, and it is
// scraped until it is gone.
func TestRollingUpdateOfAGatewayCountsOnce(t *testing.T) {
	for _, as := range []source.Type{source.Gauge, source.Counter} {
		for phase := range 15 {
			f := &fleetOfGateways{as: as, load: steadily(1000), all: []*gateway{
				{created: 0, ready: 0, leaves: 200 + phase, gone: 210 + phase, phase: 3, apart: 15},
				{created: 180, ready: 195 + phase/2, leaves: never, gone: never, phase: phase, apart: 15},
			}}
			sums, _ := f.run(400, 5)
			require.Greater(t, len(sums), 20)
			for at, v := range sums {
				require.InDelta(t, 1000, v, 150, "%s, phase %d, at %d", as, phase, at)
			}
		}
	}
}

// A series that is read once a minute keeps those of the gateways neither from being handed over nor from
// being read.
func TestASlowSeriesDelaysNoHandOver(t *testing.T) {
	f := &fleetOfGateways{as: source.Gauge, load: steadily(1000), all: []*gateway{
		{created: 0, ready: 0, leaves: never, gone: never, phase: 20, apart: 60},
		{created: 0, ready: 0, leaves: 205, gone: 215, phase: 3, apart: 15},
		{created: 180, ready: 195, leaves: never, gone: never, phase: 9, apart: 15},
	}}
	sums, given := f.run(600, 5)
	for at, v := range sums {
		require.InDelta(t, 1000, v, 400, "at %d: half of it is read once a minute", at)
	}
	assertFresh(t, given, 120, 600, 25)
}

// assertFresh asserts that at no second the newest sum is older than a limit.
func assertFresh(t *testing.T, given map[int]int, from, to, limit int) {
	t.Helper()
	for now := from; now < to; now++ {
		newest := 0
		for at, when := range given {
			if when <= now {
				newest = max(newest, at)
			}
		}
		require.LessOrEqual(t, now-newest, limit, "at %d", now)
	}
}

// While new counters keep coming, each of which has a rate after its second reading only, there are sums.
func TestNewCountersThatKeepComingWithholdNoSums(t *testing.T) {
	f := &fleetOfGateways{as: source.Counter, load: steadily(1000)}
	for i := range 10 {
		f.all = append(f.all,
			&gateway{leaves: 200 + 14*i, gone: 215 + 14*i, phase: i, apart: 15},
			&gateway{created: 190 + 14*i, ready: 195 + 14*i, leaves: never, gone: never, phase: 14 - i, apart: 15})
	}
	sums, given := f.run(500, 5)
	for at, v := range sums {
		require.InDelta(t, 1000, v, 150, "at %d", at)
	}
	assertFresh(t, given, 120, 500, 30)
}

// Nothing is known of the pods, as of gateways of another namespace: a load may count twice until the series
// of the old one is overdue, and no longer.
func TestHandOverOfUnknownGateways(t *testing.T) {
	f := &fleetOfGateways{as: source.Gauge, load: steadily(1000), dark: true, all: []*gateway{
		{leaves: 205, gone: 206, phase: 3, apart: 15},
		{created: 180, ready: 195, leaves: never, gone: never, phase: 9, apart: 15},
	}}
	sums, _ := f.run(400, 5)
	for at, v := range sums {
		assert.GreaterOrEqual(t, v, 990.0, "at %d", at)
		if at < 195 || at > 205+20 {
			assert.InDelta(t, 1000, v, 10, "at %d", at)
		}
	}
}

// Gateways come, go and are replaced in any order, with series that are read at any time, while the load
// changes. No sum is far from what the load was within the time in which each series is read.
func TestSumsOfUnluckyGateways(t *testing.T) { testUnluckyGateways(t, 0, 150) }

func testUnluckyGateways(t *testing.T, from, to uint64) {
	for seed := from; seed < to; seed++ {
		r := rand.New(rand.NewPCG(seed, 35))
		f := unluckyGateways(r)
		sums, given := f.run(600, 5)
		spacing := 0
		for _, g := range f.all {
			spacing = max(spacing, g.apart)
		}
		for at, v := range sums {
			least, most := math.Inf(1), 0.0
			for t := max(0, at-3*spacing); t <= at; t++ {
				least, most = min(least, f.load(t)), max(most, f.load(t))
			}
			require.GreaterOrEqual(t, v, 0.65*least, "seed %d, %s, at %d", seed, f.as, at)
			require.LessOrEqual(t, v, 1.35*most, "seed %d, %s, at %d", seed, f.as, at)
		}
		assertFresh(t, given, 150, 600, 2*spacing+10)
	}
}

// unluckyGateways returns up to twenty gateways, some of which are replaced, and a load that changes slowly.
func unluckyGateways(r *rand.Rand) *fleetOfGateways {
	apart := []int{5, 10, 15}[r.IntN(3)]
	period, depth := 200+r.Float64()*600, r.Float64()*0.5
	f := &fleetOfGateways{as: []source.Type{source.Gauge, source.Counter}[r.IntN(2)], load: func(t int) float64 {
		return 1000 * (1 + depth*math.Sin(float64(t)/period*2*math.Pi))
	}}
	for range 1 + r.IntN(8) {
		f.all = append(f.all, &gateway{leaves: never, gone: never, phase: r.IntN(apart), apart: apart})
	}
	replaced := len(f.all)
	at := 150
	for i := range replaced {
		old := f.all[i]
		if r.IntN(4) == 0 && i > 0 {
			continue
		}
		next := &gateway{created: at, ready: at + apart + r.IntN(40), phase: r.IntN(apart), apart: apart}
		next.leaves, next.gone = never, never
		old.leaves = next.ready + r.IntN(30)
		old.gone = old.leaves + r.IntN(35)
		f.all = append(f.all, next)
		at += r.IntN(60)
	}
	return f
}

func TestPodsOfAWholeTargetAreNamedByTheirLabel(t *testing.T) {
	c := wholeOf(source.Gauge)
	c.PodLabel = "gateway"
	c.normalize()
	assert.Equal(t, "gateway", c.OwnerLabel)
	c.normalize()
	assert.Equal(t, "gateway", c.OwnerLabel)
	assert.Empty(t, c.PodLabel)
}

// replacedPod is a pod whose series is replaced by one with other labels. Times are in seconds.
type replacedPod struct {
	state func(now int) podtracker.PodState
	as    source.Type
	lines []timeline
	end   int
}

// sums returns what answers every some seconds lead to.
func (f *replacedPod) sums(interval int) map[int]float64 {
	now := 0
	w := &whole{as: f.as, label: "pod", pods: func(string) podtracker.PodState { return f.state(now) }}
	var all []*series
	for _, line := range f.lines {
		all = append(all, line.series(model.Metric{"pod": "gw-0", "instance": model.LabelValue(line.name)}))
	}
	got := map[int]float64{}
	for now = -30; now <= f.end; now += interval {
		for _, x := range w.take(cut(all, now-60, now), 15_000, time.Unix(int64(now), 0)) {
			got[int(x.T/1000-1000)] = x.V
		}
	}
	return got
}

// A pod of a StatefulSet comes again by the same name and another address, a container is restarted, and so is
// one that is restarted again. Whatever is known of the pod, and whenever answers come, its load counts once.
func TestReplacedSeriesOfOnePodCountOnce(t *testing.T) {
	ready := func(int) podtracker.PodState { return podtracker.PodReady }
	restarted := func(leaves int) func(int) podtracker.PodState {
		return func(now int) podtracker.PodState {
			switch {
			case now < leaves:
				return podtracker.PodReady
			case now < 5:
				return podtracker.PodLeaving
			}
			return podtracker.PodStarting
		}
	}
	const load = 500
	for name, f := range map[string]replacedPod{
		"pod comes again":         {state: restarted(5)},
		"pod leaves, comes again": {state: restarted(-10)},
		"label changes":           {state: ready},
	} {
		for _, as := range []source.Type{source.Gauge, source.Counter} {
			for _, interval := range []int{1, 3, 5, 15, 30} {
				f.as, f.end = as, 120
				f.lines = []timeline{every("old", -90, 0, 15, load, as), every("new", 15, 120, 15, load, as)}
				got := f.sums(interval)
				require.NotEmpty(t, got)
				for at, v := range got {
					require.InDelta(t, load, v, 1e-6, "%s, %s, each %d s, at %d", name, as, interval, at)
				}
				f.lines = []timeline{every("old", -90, 0, 15, load, as), every("new", 15, 45, 15, load, as),
					every("newest", 60, 240, 15, load, as)}
				f.end = 240
				for at, v := range f.sums(interval) {
					require.InDelta(t, load, v, 1e-6, "%s, %s, each %d s, twice, at %d", name, as, interval, at)
				}
			}
		}
	}
}

// Labels of pods, known or not, change at any time, as often as they like, and answers come at any time. Each pod
// carries 100 throughout.
func TestLabelsThatChangeMakeNoDifference(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 36))
		as := []source.Type{source.Gauge, source.Counter}[r.IntN(2)]
		interval := []int{1, 5, 10, 15, 30}[r.IntN(5)]
		state := []podtracker.PodState{podtracker.PodUnknown, podtracker.PodReady}[r.IntN(2)]
		w := &whole{as: as, label: "pod", pods: func(string) podtracker.PodState { return state }}
		var all []*series
		pods := 1 + r.IntN(5)
		for i := range pods {
			all = append(all, changingSeries(r, as, fmt.Sprint(i))...)
		}
		for now := 60; now < 500; now += interval {
			for _, x := range w.take(cut(all, now-60-interval, now), 15_000, time.Unix(int64(now), 0)) {
				require.InDelta(t, 100*pods, x.V, 1e-6, "seed %d, %s, at %d", seed, as, x.T/1000-1000)
			}
		}
	}
}

// changingSeries returns the series of a pod, one after the other, each read every 15 s.
func changingSeries(r *rand.Rand, as source.Type, pod string) (all []*series) {
	least := 0
	if as == source.Counter {
		least = 40 // so that each has a rate
	}
	for at, until := r.IntN(15), 100+r.IntN(200); at < 500; until = at + least + r.IntN(200) {
		name := fmt.Sprint(len(all))
		last := at + max(0, until-at)/15*15
		line := every(name, at, last, 15, 100, as)
		all = append(all, line.series(model.Metric{"pod": model.LabelValue(pod), "id": model.LabelValue(name)}))
		at = last + 1 + r.IntN(25)
	}
	return all
}

// series returns the readings as those of a series with these labels.
func (l *timeline) series(labels model.Metric) *series {
	s := &series{labels: labels}
	for _, x := range l.readings {
		s.samples = append(s.samples, pipeline.Sample{T: 1_000_000 + int64(x[0])*1000, V: x[1]})
	}
	return s
}

// cut returns what an answer has of some series: the readings after one second up to another.
func cut(all []*series, after, end int) (answer []*series) {
	for _, s := range all {
		part := &series{labels: s.labels}
		for _, x := range s.samples {
			if second := int(x.T/1000 - 1000); second > after && second <= end {
				part.samples = append(part.samples, x)
			}
		}
		if len(part.samples) > 1 {
			part.spacing = 15_000
		}
		if len(part.samples) > 0 {
			answer = append(answer, part)
		}
	}
	return answer
}

// The series of a pod that comes again by its name and address is one and the same: it counts again.
func TestASeriesThatGoesOnCountsAgain(t *testing.T) {
	f := &replacedPod{end: 240, as: source.Gauge, state: func(now int) podtracker.PodState {
		switch {
		case now < 5:
			return podtracker.PodReady
		case now < 40:
			return podtracker.PodLeaving
		}
		return podtracker.PodStarting
	}}
	f.lines = []timeline{every("old", -90, 30, 15, 500, f.as)}
	f.lines[0].readings = append(f.lines[0].readings, every("old", 60, 240, 15, 500, f.as).readings...)
	got := f.sums(5)
	for at := 75; at <= 240; at += 15 {
		require.InDelta(t, 500, got[at], 0, "at %d", at)
	}
}

// Series of a pod that are overdue have not been replaced by those of others, nor by those that were there before.
func TestOverdueSeriesOfAPodAreNotReplacedByOthers(t *testing.T) {
	w := &whole{as: source.Gauge, label: "pod", pods: func(string) podtracker.PodState { return podtracker.PodReady }}
	line := func(pod, id string, from, to int64) *series {
		s := &series{labels: model.Metric{"pod": model.LabelValue(pod), "id": model.LabelValue(id)}, spacing: 15_000}
		for at := from; at <= to; at += 15_000 {
			s.samples = append(s.samples, pipeline.Sample{T: 1_000_000 + at, V: 100})
		}
		return s
	}
	w.take([]*series{line("a", "1", 0, 60_000), line("a", "2", 0, 60_000)}, 15_000, time.Unix(60, 0))
	got := w.take([]*series{line("a", "1", 0, 60_000), line("a", "2", 0, 90_000), line("b", "1", 75_000, 90_000)},
		15_000, time.Unix(90, 0))
	require.NotEmpty(t, got)
	assert.InDelta(t, 300, got[len(got)-1].V, 0)
}
