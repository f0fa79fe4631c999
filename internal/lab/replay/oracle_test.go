package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// evaluate is the second implementation that replays are held against: for each run it looks at
// every event again and gives the pipeline all that was received by then, in the order it was
// received.
func evaluate(t *testing.T, events []event, o Options) []Result {
	p, err := pipeline.New(o.Params)
	require.NoError(t, err)
	received := slices.Clone(events)
	slices.SortStableFunc(received, func(a, b event) int { return cmp.Compare(a.received, b.received) })
	var nows []int64
	for _, e := range events {
		if e.kind == run {
			nows = append(nows, e.at)
		}
	}
	slices.Sort(nows)
	history := pipeline.ScalingTimes{LastUp: pipeline.Never, LastDown: pipeline.Never}
	var results []Result
	for _, now := range nows {
		in := everything(received, now)
		plan(&in, events)
		r := Result{Now: now}
		r.Forecast, r.Err = p.Run(in)
		r.Decision = r.Forecast.Decision
		if o.Cooldowns && r.Err == nil {
			history.NewestStart = pipeline.Never
			for _, i := range in.Instances {
				history.NewestStart = max(history.NewestStart, i.Start)
			}
			r.Decision = o.Params.Cooldown.Apply(r.Decision, r.Forecast.Target, now, history)
			switch r.Decision.Action {
			case pipeline.ScaleUp:
				history.LastUp = now
			case pipeline.ScaleDown:
				history.LastDown = now
			}
		}
		results = append(results, r)
	}
	return results
}

// everything returns the input of a run, but for its target, from events in the order they were received.
func everything(received []event, now int64) pipeline.Input {
	in := pipeline.Input{Now: now, TargetRose: pipeline.Never}
	instances := map[string]*pipeline.Instance{}
	started := map[string]bool{}
	at := func(e event) *pipeline.Instance {
		id := string(e.instance)
		if instances[id] == nil {
			instances[id] = &pipeline.Instance{ID: id, Start: pipeline.Never}
		}
		return instances[id]
	}
	for _, e := range received {
		switch {
		case e.kind == lifecycle:
			if e.start != pipeline.Never {
				at(e).Start, started[string(e.instance)] = e.start, true
			}
			if e.end != pipeline.Never {
				at(e).End = e.end
			}
		case e.kind == sample && e.received <= now:
			at(e).Samples = append(at(e).Samples, pipeline.Sample{T: e.at, V: e.value})
		case e.kind == demand && e.received <= now:
			in.Demand = append(in.Demand, pipeline.Sample{T: e.at, V: e.value})
		}
	}
	for id, i := range instances {
		if !started[id] && len(i.Samples) > 0 {
			i.Start = slices.MinFunc(i.Samples, func(a, b pipeline.Sample) int { return cmp.Compare(a.T, b.T) }).T
		}
		if i.Start != pipeline.Never && i.Start <= now {
			in.Instances = append(in.Instances, *i)
		}
	}
	return in
}

// plan fills in the target of a run from the planned counts up to it.
func plan(in *pipeline.Input, events []event) {
	counts := map[int64]int{}
	for _, e := range events {
		if e.kind == target && e.at <= in.Now {
			counts[e.at] = e.count
		}
	}
	var times []int64
	for at := range counts {
		times = append(times, at)
	}
	slices.Sort(times)
	for n, at := range times {
		before := 0
		if n > 0 {
			before = counts[times[n-1]]
		} else {
			for _, i := range in.Instances {
				if i.Start <= at && (i.End == 0 || i.End > at) {
					before++
				}
			}
		}
		in.Target = max(1, counts[at])
		if counts[at] > before {
			in.TargetRose = at
		}
	}
}

// fleetOf makes a random recording: instances that come and go, with and without a line on their
// start, that fall silent, report late, repeat themselves and measure nonsense; demand; target
// counts; runs.
func fleetOf(random *rand.Rand, model pipeline.ModelKind) []event {
	const span = 400_000
	between := func(low, high int64) int64 { return low + random.Int64N(high-low+1) }
	var events []event
	for i := range between(1, 25) {
		id := fmt.Appendf(nil, "pod-%d", i)
		start := between(-100_000, span)
		end := start + between(0, 200_000)
		if random.IntN(3) > 0 {
			events = append(events, event{kind: lifecycle, instance: id, start: start, end: pipeline.Never})
		}
		if random.IntN(3) > 0 {
			events = append(events, event{kind: lifecycle, instance: id, start: pipeline.Never, end: end})
		}
		silent := between(start, end)
		load := random.Float64()
		for at := max(start, 0) + between(-2000, 2000); at < min(end, span)+2000; at += between(900, 1100) {
			if at > silent && at < silent+30_000 {
				continue
			}
			load += 0.02 * random.NormFloat64()
			e := event{kind: sample, instance: id, at: at, received: at + between(0, 200), value: load}
			switch random.IntN(40) {
			case 0:
				e.received += between(0, 100_000) // late
			case 1:
				e.received -= between(0, 5_000) // from the future, by its clock
			case 2:
				e.value = -1
				if model == pipeline.Quadratic {
					e.received = at
				}
			case 3:
				again := e
				again.value, again.received = load/2, e.received+between(-3_000, 3_000)
				events = append(events, again)
			}
			events = append(events, e)
		}
	}
	if random.IntN(2) == 0 {
		for range 50 {
			at := between(0, span)
			events = append(events, event{kind: demand, at: at, received: at + between(0, 20_000),
				value: random.Float64()})
		}
	}
	if random.IntN(2) == 0 {
		for range between(1, 30) {
			events = append(events, event{kind: target, at: between(0, span), count: random.IntN(20)})
		}
	}
	for range 60 {
		events = append(events, event{kind: run, at: between(0, span)})
	}
	random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	return events
}

func paramsOf(random *rand.Rand, model pipeline.ModelKind) pipeline.Params {
	pick := func(of ...time.Duration) time.Duration { return of[random.IntN(len(of))] }
	p := pipeline.HoltParams()
	p.Model.Kind, p.Threshold, p.Max = model, 0.7, 30
	p.Interval = pick(time.Second, 3*time.Second, 250*time.Millisecond)
	p.Window = pick(10*time.Second, 90*time.Second, 31234*time.Millisecond)
	p.RedistributionTimeout = pick(0, 1, 5*time.Second, 30*time.Second, 100*time.Second)
	p.PendingExpiry = pick(0, 10*time.Second, time.Minute, 5*time.Minute)
	p.Cooldown.DownAfterUp = pick(0, 3*time.Minute, 10*time.Second)
	return p
}

func TestReplayMatchesThePipelineOnReceivedSamples(t *testing.T) {
	var decided, failed, rose int
	for seed := range uint64(120) {
		random := rand.New(rand.NewPCG(seed, 7))
		model := []pipeline.ModelKind{pipeline.Linear, pipeline.Quadratic, pipeline.Overhead}[seed%3]
		o := Options{Params: paramsOf(random, model), Cooldowns: seed%2 == 0}
		events := fleetOf(random, model)
		want := evaluate(t, events, o)
		got := replayed(t, recordingOf(t, events), o)
		require.Len(t, got, len(want))
		for i := range want {
			// Dropped counts samples before the window too, of which a replay forgets the refused ones.
			want[i].Forecast.Dropped, got[i].Forecast.Dropped = 0, 0
			require.Equal(t, want[i], got[i], "seed %d", seed)
			if want[i].Err != nil {
				failed++
			} else if want[i].Decision.Action != pipeline.Hold {
				decided++
			}
			if want[i].Decision.Reason == pipeline.ScaleUpPending {
				rose++
			}
		}
	}
	t.Logf("%d scaled, %d failed, %d held by a rise of the target", decided, failed, rose)
	for what, n := range map[string]int{"scaled": decided, "failed": failed, "held by a rise": rose} {
		assert.Greater(t, n, 50, "the recordings must have runs that %s", what)
	}
}

func TestTheOrderOfLinesChangesNothing(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 11))
		o := Options{Params: paramsOf(random, pipeline.Linear), Cooldowns: true}
		events := withoutTies(fleetOf(random, pipeline.Linear))
		want := output(t, events, o)
		for range 3 {
			random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
			require.Equal(t, want, output(t, events, o), "seed %d", seed)
		}
	}
}

// withoutTies leaves out what only the order of lines would decide on.
func withoutTies(events []event) []event {
	type key struct {
		kind         kind
		id           string
		at, received int64
	}
	seen := map[key]bool{}
	return slices.DeleteFunc(events, func(e event) bool {
		k := key{e.kind, string(e.instance), e.at, e.received}
		tie := e.kind != lifecycle && e.kind != run && seen[k]
		seen[k] = true
		return tie
	})
}
