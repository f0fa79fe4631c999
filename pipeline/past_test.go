package pipeline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// follow lets a past see a load for some seconds.
func follow(past *pipeline.Learned, p pipeline.Params, from, to int64, load secondly) {
	for s := from; s < to; s++ {
		past.Add((midnight+s)*1000, load(s), p.LearnOptions())
	}
}

// foretell forecasts a load of one instance at a second.
func foretell(t testing.TB, p pipeline.Params, past *pipeline.Learned, second int64, load secondly) pipeline.Forecast {
	t.Helper()
	return run(t, p, inputOf(past, second, load))
}

// inputOf returns the input that foretell forecasts from.
func inputOf(past *pipeline.Learned, second int64, load secondly) pipeline.Input {
	in := at((midnight + second) * 1000)
	in.Learned = past
	in.StartupTime = 25 * time.Second
	var samples []pipeline.Sample
	for s := second - 320; s <= second; s++ {
		samples = append(samples, pipeline.Sample{T: (midnight + s) * 1000, V: load(s)})
	}
	in.Instances = []pipeline.Instance{{ID: "a", Start: midnight - 30*ofDay, Samples: samples}}
	return in
}

func learningParams() pipeline.Params {
	p := adaptive()
	p.Max = 100
	return p
}

// A past of which too little is known changes nothing.
func TestAnEmptyPastChangesNothing(t *testing.T) {
	p := learningParams()
	load := noisy(1, func(s int64) float64 { return 3 + float64(s%600)/200 })
	past := pipeline.NewLearned(&p)
	for _, s := range []int64{0, 300} {
		follow(past, p, 0, s, load)
		require.Equal(t, foretell(t, p, nil, s+1, load), foretell(t, p, past, s+1, load))
	}
}

// What comes within a minute is known after five minutes, what comes later after ten.
func TestNearIsKnownSooner(t *testing.T) {
	load := noisy(4, func(int64) float64 { return 5 })
	knownAfter := func(reaction time.Duration) int64 {
		p := learningParams()
		p.ReactionDelay = reaction
		past := pipeline.NewLearned(&p)
		for s := int64(0); s < 3600; s += 15 {
			follow(past, p, s, s+15, load)
			if foretell(t, p, past, s+15, load).Total != foretell(t, p, nil, s+15, load).Total {
				return s + 15
			}
		}
		return -1
	}
	// The first look at what comes in a minute is a minute after the first that can be described,
	// which takes a minute as well.
	assert.InDelta(t, 7*60, knownAfter(15*time.Second), 60)
	assert.InDelta(t, 14*60, knownAfter(95*time.Second), 90)
}

// Bursts that last three minutes have ended after four: the present load does not predict that,
// but the learned state does.
func TestWhatFollowsIsLearned(t *testing.T) {
	p := learningParams()
	p.ReactionDelay = 215 * time.Second // four minutes ahead
	load := noisy(2, bursts(2, 1800))
	past := pipeline.NewLearned(&p)
	follow(past, p, 0, ofDay, load)
	ours, present := 0.0, 0.0
	for s := ofDay; s < ofDay+2*3600; s += 15 {
		follow(past, p, s-15, s, load)
		f := foretell(t, p, past, s, load)
		came := bursts(2, 1800)(s + 240)
		ours += math.Abs(f.Total - came)
		present += math.Abs(f.Level - came)
	}
	assert.Less(t, ours, 0.7*present)
}

// A load that does each hour what it did the hour before is known minutes ahead.
func TestWhatRecursIsKnown(t *testing.T) {
	p := learningParams()
	p.ReactionDelay = 455 * time.Second
	shape := func(s int64) float64 { return 4 + 3*math.Sin(float64(s%3600)/3600*6*math.Pi) + 2*float64(s%3600/1200) }
	past := pipeline.NewLearned(&p)
	follow(past, p, 0, 6*3600, shape)
	ours, present := 0.0, 0.0
	for s := int64(6 * 3600); s < 8*3600; s += 30 {
		follow(past, p, s-30, s, shape)
		f := foretell(t, p, past, s, shape)
		ours += math.Abs(f.Total - shape(s+480))
		present += math.Abs(f.Level - shape(s+480))
	}
	assert.Less(t, ours, 0.35*present)
}

// Without a margin of its own a past only raises what is planned for.
func TestWhatIsLearnedOnlyRaises(t *testing.T) {
	p := learningParams()
	p.Lateness = 0
	load := noisy(3, bursts(3, 1200))
	past := pipeline.NewLearned(&p)
	raised := 0
	for s := int64(0); s < 6*3600; s += 45 {
		follow(past, p, s-45, s, load)
		with, without := foretell(t, p, past, s, load), foretell(t, p, nil, s, load)
		require.GreaterOrEqual(t, with.PlannedLoad, without.PlannedLoad, "at second %d", s)
		if with.PlannedLoad > without.PlannedLoad {
			raised++
		}
	}
	assert.Positive(t, raised)
}

// The share of the time with too few ordered instances is the requested one within a quarter of it, even if a part of
// the load cannot be forecast: for decisions, and behind an HPA that keeps the highest count of half a minute.
func TestLatenessIsKept(t *testing.T) {
	for _, lateness := range []float64{0.01, 0.02} {
		p := learningParams()
		p.Lateness = lateness
		mean := func(s int64) float64 {
			return (14 + bursts(4, 1200)(s)) * (3 + 2*math.Sin(2*math.Pi*float64(s)/float64(ofDay))) / 4
		}
		load := noisy(4, mean)
		past := pipeline.NewLearned(&p) // learning does not depend on the ordered count
		follow(past, p, 0, ofDay/2, load)
		forecast := runs(t, p)
		cases := [...]struct {
			behindHPA            bool
			late, target, before int
		}{{target: 1}, {behindHPA: true, target: 1, before: 1}}
		judged := 0
		for s := ofDay / 2; s < 2*ofDay; s += 15 {
			follow(past, p, s-15, s, load)
			in := inputOf(past, s, load)
			rate := 0.0
			for k := s + 31; k <= s+50; k++ { // around the horizon of 40 s
				rate += load(k) / 20
			}
			judged++
			for i := range cases {
				c := &cases[i]
				in.Target = c.target
				f := forecast(in)
				c.target = f.Decision.Desired
				holds := f.Holds
				if c.behindHPA {
					c.target = max(c.target, c.before)
					holds *= float64(c.target) / float64(f.Decision.Desired)
					c.before = f.Decision.Desired
				}
				if rate > holds {
					c.late++
				}
			}
		}
		for _, c := range cases {
			late := float64(c.late) / float64(judged)
			assert.InEpsilon(t, lateness, late, 0.25, "%v of the time, behind an HPA: %v", late, c.behindHPA)
		}
	}
}

// followMornings adds a load to a past from nine to eleven on some days. The loads of daily jump at ten.
func followMornings(past *pipeline.Learned, p pipeline.Params, from, to int64, load secondly) {
	for day := from; day < to; day++ {
		follow(past, p, day*ofDay+9*3600, day*ofDay+11*3600, load)
	}
}

// A jump that came on three of the last seven days is planned for when instances must be ordered
// for it, and not before.
func TestJumpsThatRecurArePlannedFor(t *testing.T) {
	const tenOClock = 10 * 3600
	p := learningParams()
	calm := daily(func(int64) bool { return false })
	planned := func(past *pipeline.Learned, day, clock int64) float64 {
		p := past.Clone()
		params := learningParams()
		follow(p, params, day*ofDay+9*3600, day*ofDay+clock, calm)
		f := foretell(t, params, p, day*ofDay+clock, calm)
		assert.Equal(t, f.PlannedLoad >= 10, f.Need.Basis == pipeline.FromJump)
		return f.PlannedLoad
	}
	past := pipeline.NewLearned(&p)
	const most = 4.0
	for day := range int64(14) {
		came := day == 0 || day == 1 || day == 3
		at := planned(past, day, tenOClock+110)
		switch expected := day >= 4 && day <= 7; expected {
		case true:
			assert.GreaterOrEqual(t, at, 10.0, "day %d", day)
			assert.Less(t, planned(past, day, tenOClock+30), most, "day %d, too early", day)
			assert.Less(t, planned(past, day, tenOClock+4*60), most, "day %d, too late", day)
		case false:
			assert.Less(t, at, most, "day %d", day)
		}
		followMornings(past, p, day, day+1, daily(func(int64) bool { return came }))
	}
}

// The unit of a load does not change the learned state in any bit.
func TestUnitsDoNotMatterToAPast(t *testing.T) {
	const c = 4096 // the roots of its root are whole
	p := learningParams()
	larger := p
	larger.Threshold *= c
	load := noisy(5, bursts(5, 900))
	times := func(s int64) float64 { return c * load(s) }
	past, largerPast := pipeline.NewLearned(&p), pipeline.NewLearned(&larger)
	follow(past, p, 0, 3*3600, load)
	follow(largerPast, larger, 0, 3*3600, times)
	for s := int64(3 * 3600); s < 3*3600+1200; s += 60 {
		want, got := foretell(t, p, past, s, load), foretell(t, larger, largerPast, s, times)
		require.Equal(t, []float64{c * want.Total, c * want.PlannedLoad}, []float64{got.Total, got.PlannedLoad})
	}
}

// Loads that are not known, and clocks that are set, teach nothing wrong.
func TestAnyTimesAndLoads(t *testing.T) {
	for seed := range uint64(20) {
		r := newFleets(seed)
		p := learningParams()
		past := pipeline.NewLearned(&p)
		load := noisy(seed, bursts(seed, 600))
		now := int64(0)
		for range 4000 {
			switch {
			case r.Chance(0.01):
				now += r.Span(-3*ofDay, 9*ofDay)
			case r.Chance(0.1):
				now += r.Span(-30, 900)
			default:
				now += r.Span(1, 9)
			}
			past.Add((midnight+now)*1000,
				pick(r, load(now), load(now), load(now), math.NaN(), math.Inf(1), 0, 1e300), p.LearnOptions())
		}
		f := foretell(t, p, past, now, load)
		for _, x := range []float64{f.Total, f.PlannedLoad, f.Required, f.ServedLoad} {
			require.False(t, math.IsNaN(x) || math.IsInf(x, 0) || x < 0, "seed %d: %+v", seed, f)
		}
	}
}

// Loads in another unit are another load; another threshold or lateness is not.
func TestAnotherLoadKeyStartsOver(t *testing.T) {
	p := learningParams()
	load := noisy(6, bursts(6, 900))
	past := pipeline.NewLearned(&p)
	follow(past, p, 0, 3600, load)
	known := past.Known()
	require.Greater(t, known, 50*time.Minute)
	p.Threshold, p.Lateness = 2*p.Threshold, 0.2
	follow(past, p, 3600, 3700, load)
	require.Greater(t, past.Known(), known)
	p.Model.Kind = pipeline.Quadratic
	require.Equal(t, foretell(t, p, nil, 3700, load), foretell(t, p, past, 3700, load), "it is of no use to another")
	follow(past, p, 3700, 3701, load)
	require.Zero(t, past.Known())
}

// A shifted history has the same loads at other times.
func TestShiftedPasts(t *testing.T) {
	p := learningParams()
	load := noisy(7, bursts(7, 900))
	past := pipeline.NewLearned(&p)
	follow(past, p, 0, 2*3600, load)
	const by = 5 * 3600
	shifted := past.Shifted(by * time.Second)
	earlier := func(s int64) float64 { return load(s + by) }
	follow(shifted, p, 2*3600-by, 3*3600-by, earlier)
	follow(past, p, 2*3600, 3*3600, load)
	want, got := foretell(t, p, past, 3*3600, load), foretell(t, p, shifted, 3*3600-by, earlier)
	require.Equal(t, []float64{want.Total, want.PlannedLoad}, []float64{got.Total, got.PlannedLoad})
}

// A copy learns on its own.
func TestCopiesOfPasts(t *testing.T) {
	p := learningParams()
	load := noisy(8, bursts(8, 900))
	past := pipeline.NewLearned(&p)
	follow(past, p, 0, 7200, load)
	want := foretell(t, p, past, 7200, load)
	follow(past.Clone(), p, 7200, 9000, func(int64) float64 { return 50 })
	require.Equal(t, want, foretell(t, p, past, 7200, load))
}

// What is learned from the loads of runs is learned from those that do not change any more, once each.
func TestRunsTeach(t *testing.T) {
	p := learningParams()
	load := noisy(9, bursts(9, 900))
	byHand, byRuns := pipeline.NewLearned(&p), pipeline.NewLearned(&p)
	made, err := pipeline.New(p)
	require.NoError(t, err)
	var m pipeline.Memory
	var samples []pipeline.Sample
	for s := range int64(3600) {
		samples = append(samples, pipeline.Sample{T: (midnight + s) * 1000, V: load(s)})
		if s < 20 {
			continue
		}
		in := at((midnight + s) * 1000)
		in.Learned = byRuns
		in.Instances = []pipeline.Instance{{ID: "a", Start: midnight - 30*ofDay, Samples: samples[max(0, len(samples)-400):]}}
		_, err := made.RunIn(&m, in)
		require.NoError(t, err)
		byRuns.Learn(m.Loads(), p.LearnOptions(), nil)
	}
	follow(byHand, p, 0, 3600-16, load)
	require.Equal(t, byHand.Newest(), byRuns.Newest())
	require.Equal(t, foretell(t, p, byHand, 3600, load), foretell(t, p, byRuns, 3600, load))
}

func TestRunsWithAPastAllocateNothing(t *testing.T) {
	params, in := busy(20, 300)
	params.Method = pipeline.Adaptive
	past := learnedUntil(in.Now, &params)
	p, err := pipeline.New(params)
	require.NoError(t, err)
	without, err := p.Run(in)
	require.NoError(t, err)
	in.Learned = past
	with, err := p.Run(in)
	require.NoError(t, err)
	require.NotEqual(t, without.Total, with.Total)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		if _, err := p.Run(in); err != nil {
			t.Error(err)
		}
	}))
}

// A load that hardly varies, a sliver above what whole instances hold, does not wind the margin up:
// when it varies again, that is no more than its errors ask for.
func TestSliversDoNotRaiseTheMargin(t *testing.T) {
	p := learningParams()
	sliver := func(int64) float64 { return 7*tau + 0.05*tau }
	past := pipeline.NewLearned(&p)
	follow(past, p, 0, ofDay, sliver)
	varies := noisy(11, sliver)
	follow(past, p, ofDay, ofDay+2*3600, varies)
	f := foretell(t, p, past, ofDay+2*3600, varies)
	assert.Less(t, f.PlannedLoad, 1.35*f.Level)
}

// Loads of which a part may still be read are not learned from yet.
func TestLateReadingsAreWaitedFor(t *testing.T) {
	p := learningParams()
	made, err := pipeline.New(p)
	require.NoError(t, err)
	past := pipeline.NewLearned(&p)
	var m pipeline.Memory
	in := at((midnight + 600) * 1000)
	for i := range 4 {
		var samples []pipeline.Sample
		for s := int64(i) * 15; s < 600; s += 60 {
			samples = append(samples, pipeline.Sample{T: (midnight + s) * 1000, V: 1})
		}
		in.Instances = append(in.Instances, pipeline.Instance{ID: string(rune('a' + i)), Start: midnight, Samples: samples})
	}
	p.StaleAfter = 3 * time.Minute
	_, err = made.RunIn(&m, in)
	require.NoError(t, err)
	past.Learn(m.Loads(), p.LearnOptions(), nil)
	assert.LessOrEqual(t, past.Newest(), (midnight+600-120+15)*1000, "two readings of a minute ago")
}

// A load that is read once a minute is learned as well, and known for as long as it was looked at.
func TestRareReadingsAreLearned(t *testing.T) {
	p := learningParams()
	p.Interval, p.Window = time.Minute, 20*time.Minute
	p.StaleAfter = 3 * time.Minute
	past := pipeline.NewLearned(&p)
	load := bursts(12, 1800)
	for s := int64(0); s < ofDay; s += 60 {
		past.Add((midnight+s)*1000, load(s), p.LearnOptions())
	}
	assert.InDelta(t, 24, past.Known().Hours(), 0.2)
	data, err := past.MarshalBinary()
	require.NoError(t, err)
	require.NoError(t, pipeline.NewLearned(&p).UnmarshalBinary(data))
}

// Learning does not remove the instance that the line keeps.
func TestLearningRemovesNoInstance(t *testing.T) {
	p := learningParams()
	p.Whole, p.Min, p.Activation = true, 0, 41
	saw := func(s int64) float64 { return float64(s%600) / 15 }
	past := pipeline.NewLearned(&p)
	follow(past, p, 0, 6*3600, saw)
	kept := 0
	for s := int64(6 * 3600); s < 6*3600+1200; s += 6 {
		in := at((midnight + s) * 1000)
		in.Target, in.StartupTime = 1, 25*time.Second
		for k := s - 320; k <= s; k++ {
			in.Total = append(in.Total, pipeline.Sample{T: (midnight + k) * 1000, V: saw(k)})
		}
		without := run(t, p, in)
		in.Learned = past
		if with := run(t, p, in); !without.Idle {
			require.False(t, with.Idle, "at second %d", s)
			kept++
		}
	}
	assert.Positive(t, kept)
}

// One incident in the minute of a jump that recurs does not determine the planned load of the days
// after, and days without readings forget no jumps.
func TestOutliersAndGapsOfJumps(t *testing.T) {
	const tenOClock = 10 * 3600
	p := learningParams()
	past := pipeline.NewLearned(&p)
	all := daily(func(int64) bool { return true })
	incident := func(s int64) float64 {
		if v := all(s); v > 2 && s/ofDay == 4 {
			return 90
		}
		return all(s)
	}
	followMornings(past, p, 0, 5, incident)
	calm := daily(func(int64) bool { return false })
	planned := func(past *pipeline.Learned, day int64) float64 {
		known := past.Clone()
		follow(known, p, day*ofDay+9*3600, day*ofDay+tenOClock+110, calm)
		return foretell(t, p, known, day*ofDay+tenOClock+110, calm).PlannedLoad
	}
	assert.InDelta(t, 12.5, planned(past, 5), 1.5)
	assert.InDelta(t, 12.5, planned(past, 6), 1.5, "a day was not seen")
	assert.Less(t, planned(past, 13), 6.0, "all days were too long ago")
}
