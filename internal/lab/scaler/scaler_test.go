package scaler

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab"
)

var bounds = []string{"clairvoyant", "instant", "instant/hpa-defaults"}

func TestEveryScalerHasATitle(t *testing.T) {
	seen := map[string]bool{"": true}
	for _, name := range AllNames() {
		assert.False(t, seen[Title(name)], "%s: %q", name, Title(name))
		seen[Title(name)] = true
	}
}

func TestEveryScalerFollowsARamp(t *testing.T) {
	load := ramp(200, 1000, 70_000, 220_000)
	for _, name := range AllNames() {
		r := play(t, name, testSetup(load), need(200), 5*time.Minute)
		last := r.Seconds[len(r.Seconds)-1]
		assert.GreaterOrEqual(t, last.Ready, need(1000)-1, "%s: within the HPA's tolerance", name)
		assert.LessOrEqual(t, last.Ready, need(1000)+4, name)
		again := play(t, name, testSetup(load), need(200), 5*time.Minute)
		require.Equal(t, r, again, "%s: a run is a function of its seed", name)
	}
}

func TestNoScalerActsOnASteadyLoad(t *testing.T) {
	for _, name := range AllNames() {
		for _, rate := range []float64{200, 262, 350} { // 3 pods, just below 3, exactly 4
			r := play(t, name, testSetup(ramp(rate, rate, 0, 1)), need(rate), 15*time.Minute)
			assert.Empty(t, r.Changes, "%s at %v requests/s", name, rate)
		}
	}
}

func TestEveryScalerScalesDown(t *testing.T) {
	for _, name := range AllNames() {
		r := play(t, name, testSetup(ramp(1000, 200, 70_000, 100_000)), need(1000), 20*time.Minute)
		last := r.Seconds[len(r.Seconds)-1]
		assert.LessOrEqual(t, last.Ready, need(200)+2, name)
		assert.GreaterOrEqual(t, last.Ready, need(200), name)
		if !slices.Contains(bounds, name) {
			assert.Empty(t, slices.DeleteFunc(r.Changes, func(c lab.Change) bool { return c.To < c.From }),
				"%s scaled up under a falling load", name)
		}
	}
}

// What a scaler asks for before a time cannot depend on what comes after it.
func TestScalersDoNotKnowTheFuture(t *testing.T) {
	const parting = 150_000
	rises, falls := ramp(300, 900, 70_000, 230_000), ramp(300, 900, 70_000, 230_000)
	other := loadOf(func(t int64) float64 {
		if t >= parting {
			return 50
		}
		return falls(t)
	})
	until := func(r *lab.Record) []lab.Change {
		return slices.DeleteFunc(r.Changes, func(c lab.Change) bool { return c.T >= parting })
	}
	for _, name := range AllNames() {
		a := until(play(t, name, testSetup(rises), 4, 5*time.Minute))
		b := until(play(t, name, testSetup(other), 4, 5*time.Minute))
		if name == "clairvoyant" {
			assert.NotEqual(t, a, b, "it does know")
			continue
		}
		assert.Equal(t, a, b, name)
		assert.NotEmpty(t, a, name)
	}
}

func TestScalersDoNotReadTheLoad(t *testing.T) {
	seen := ramp(200, 1000, 70_000, 220_000)
	for _, name := range AllNames() {
		if slices.Contains(bounds, name) {
			continue
		}
		s := testSetup(seen)
		s.Load = loadOf(func(int64) float64 { panic(name + " asks for the load") })
		made, err := New(name, s)
		require.NoError(t, err)
		lab.Run(newWorld(seen, need(200)), made, lab.Span{Length: 4 * time.Minute}, nil)
	}
}

// Paired runs must not differ by when an HPA happens to look.
func TestHPAsOfOneSeedActTogether(t *testing.T) {
	first := func(name string, seed uint64) int64 {
		s := testSetup(ramp(1, 1, 0, 1))
		s.Seed = seed
		made, err := New(name, s)
		require.NoError(t, err)
		return made.Next()
	}
	times := map[int64]bool{}
	for seed := range uint64(50) {
		want := first("keda", seed)
		times[want] = true
		assert.GreaterOrEqual(t, want, int64(0))
		assert.Less(t, want, hpaPeriod.Milliseconds())
		for _, name := range append([]string{"hpa-cpu", "foresail-total", "foresail-load", "foresail-replicas"},
			Variations()...) {
			assert.Equal(t, want, first(name, seed), name)
		}
	}
	assert.Greater(t, len(times), 45, "seeds differ")
}

// What differs between a scaler and its variation is how the HPA behaves, and nothing else.
func TestVariationsDifferInTheBehaviourOfTheirHPAs(t *testing.T) {
	changes := func(name string, s Setup) []lab.Change {
		return play(t, name, s, need(1000), 10*time.Minute).Changes
	}
	none := testSetup(ramp(1000, 200, 70_000, 100_000)) // where it counts for how long an HPA keeps its pods
	behaves := none
	behaves.Behavior = RecommendedBehavior()
	for _, name := range Variations() {
		base, how, _ := strings.Cut(name, "/")
		assert.Equal(t, changes(base, none), changes(name, none), "%s where none is said", name)
		if how == "hpa-defaults" {
			assert.Equal(t, changes(name, none), changes(name, behaves), name)
		} else {
			assert.Equal(t, changes(base, none), changes(base, behaves), base)
			base = name
		}
		assert.NotEqual(t, changes(base, none), changes(base, behaves), base)
	}
}

func TestClairvoyantHasTheFewestPodsThatHoldTheThreshold(t *testing.T) {
	wave := loadOf(func(t int64) float64 { return 500 + 400*math.Sin(float64(t)/60_000) })
	for _, load := range []lab.Load{ramp(100, 1000, 70_000, 80_000), ramp(1000, 100, 70_000, 80_000), wave} {
		r := play(t, "clairvoyant", testSetup(load), need(load.Rate(0)), 10*time.Minute)
		for i, s := range r.Seconds {
			now := r.From + int64(i)*1000
			assert.GreaterOrEqual(t, s.Ready, need(load.Rate(now)), "at %d ms", now)
			most := 0
			for ahead := now; ahead <= now+testStartup.Milliseconds(); ahead += 1000 {
				most = max(most, need(load.Rate(ahead)))
			}
			assert.Equal(t, max(2, most), s.Target, "at %d ms", now)
		}
	}
}

func TestInstantSizesForThePresentLoad(t *testing.T) {
	load := ramp(100, 1000, 70_000, 100_000)
	r := play(t, "instant", testSetup(load), need(100), 2*time.Minute)
	short := 0
	for i, s := range r.Seconds {
		now := r.From + int64(i)*1000
		assert.Equal(t, need(load.Rate(now)), s.Target, "at %d ms", now)
		if s.Ready < s.Target {
			short++
		}
	}
	assert.Positive(t, short, "pods take their time")
}

// What an HPA adds to instant: it looks each 15 s, and keeps pods for five minutes.
func TestInstantThroughAnHPA(t *testing.T) {
	up := play(t, "instant/hpa-defaults", testSetup(ramp(100, 1000, 70_000, 70_001)), need(100), 2*time.Minute)
	require.GreaterOrEqual(t, len(up.Changes), 2)
	first, second := up.Changes[0], up.Changes[1]
	assert.Less(t, first.T, int64(85_000), "within a period")
	assert.Equal(t, lab.Change{T: first.T + hpaPeriod.Milliseconds(), From: 4, To: 8}, second,
		"twice as many at the most")
	down := play(t, "instant/hpa-defaults", testSetup(ramp(1000, 100, 70_000, 70_001)), need(1000), 10*time.Minute)
	assert.GreaterOrEqual(t, down.Changes[0].T, int64(370_000))
}

func TestRejectsUnusableSettings(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Setup)
		err    string
	}{
		{"best", func(*Setup) {}, `scaler: "best": must be one of hpa-cpu, keda, paper, foresail-total, foresail-load, foresail-replicas, foresail-direct, clairvoyant, instant`},
		{"keda", func(s *Setup) { s.Threshold = math.NaN() }, "keda: threshold: NaN: must be above 0 and at most 1"},
		{"keda", func(s *Setup) { s.Min = 0 }, "keda: min and max: 0 and 30: must be at least 1, and max at least min"},
		{"keda", func(s *Setup) { s.Sources = DefaultSources(1); s.Sources.KEDA.Period = 0 },
			"keda: sources.keda.period: 0s: must be whole seconds, at least 1s"},
		{"keda", func(s *Setup) { s.Sources = DefaultSources(1); s.Sources.Kubelet.Phase = time.Millisecond },
			"keda: sources.kubelet.phase: 1ms: must be whole seconds, at least 0s"},
		{"paper", func(s *Setup) { s.Paper.RiskFactor = 0 }, "paper: riskFactor: 0: must be finite and above 0"},
		{"foresail-load", func(s *Setup) { s.Params.Interval = 0 },
			"foresail-load: sampleInterval: 0s: must be a whole number of milliseconds, at least 100ms"},
		{"clairvoyant", func(s *Setup) { s.Startup = 0 }, "clairvoyant: startup: 0s: must be above 0s for clairvoyant"},
		{"instant", func(s *Setup) { s.Load = nil }, "instant: load: absent: must be given to a bound"},
		{"instant", func(s *Setup) { s.Cost = 0 }, "instant: cost: 0: must be above 0"},
		{"instant/hpa-defaults", func(s *Setup) { s.Load = nil },
			"instant/hpa-defaults: load: absent: must be given to a bound"},
	} {
		s := testSetup(ramp(1, 1, 0, 1))
		c.change(&s)
		made, err := New(c.name, s)
		require.Error(t, err)
		assert.Contains(t, err.Error(), c.err)
		assert.Nil(t, made)
	}
}
