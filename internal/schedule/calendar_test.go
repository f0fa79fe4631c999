package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

var usual = pipeline.Bounds{Min: 2, Max: 20, Lateness: 0.01}

const begins = "2026-11-27T08:00:00Z"

// on returns an entry whose window is an hour, some time after begins.
func on(t testing.TB, after time.Duration, name string, fewest, most int) Entry {
	start := at(t, begins).Add(after)
	e := Entry{Name: name, Window: Once(start, start.Add(time.Hour))}
	if fewest >= 0 {
		e.Min = &fewest
	}
	if most >= 0 {
		e.Max = &most
	}
	return e
}

func TestNoSchedulesHaveNoBounds(t *testing.T) {
	c := New(usual, nil)
	bounds, names := c.At(at(t, begins), time.Minute, time.Minute)
	assert.Nil(t, bounds)
	assert.Empty(t, names)
	assert.False(t, c.Unlearned(0))
}

func TestLargerBoundsHoldAheadAndSmallerOnesFromTheBeginning(t *testing.T) {
	const ahead = 40 * time.Second
	larger := on(t, 0, "larger", 10, 100)
	larger.Lateness = 0.001
	smaller := on(t, 0, "smaller", 1, 5)
	smaller.Lateness = 0.05
	for _, c := range []struct {
		entry    Entry
		at       time.Duration // from the beginning
		min, max int
		lateness float64
		active   bool
	}{
		{larger, -41 * time.Second, 2, 20, 0.01, false},
		{larger, -40 * time.Second, 10, 100, 0.001, true},
		{larger, 0, 10, 100, 0.001, true},
		{larger, time.Hour - time.Second, 10, 100, 0.001, true},
		{larger, time.Hour, 2, 20, 0.01, false},
		{smaller, -time.Second, 2, 20, 0.01, true},
		{smaller, 0, 1, 5, 0.05, true},
		{smaller, time.Hour - 41*time.Second, 1, 5, 0.05, true},
		{smaller, time.Hour - 40*time.Second, 2, 5, 0.01, true}, // pods for what comes then, within the maximum of now
		{smaller, time.Hour - time.Second, 2, 5, 0.01, true},
		{smaller, time.Hour, 2, 20, 0.01, false},
	} {
		bounds, names := New(usual, []Entry{c.entry}).At(at(t, begins).Add(c.at), ahead, 0)
		want := &pipeline.Bounds{Min: c.min, Max: c.max, Lateness: c.lateness, NodeMin: c.min, NodeMax: c.max}
		assert.Equal(t, want, bounds, "%s at %s", c.entry.Name, c.at)
		assert.Equal(t, c.active, len(names) == 1, "%s at %s", c.entry.Name, c.at)
	}
}

func TestFartherBoundsReachFarther(t *testing.T) {
	c := New(usual, []Entry{on(t, 0, "larger", 10, 100)})
	bounds, names := c.At(at(t, begins).Add(-3*time.Minute), time.Minute, 4*time.Minute)
	assert.Equal(t, &pipeline.Bounds{Min: 2, Max: 20, Lateness: 0.01, NodeMin: 10, NodeMax: 100}, bounds)
	assert.Empty(t, names, "no bounds of it hold")
}

func TestWindowsThatOverlap(t *testing.T) {
	now := at(t, begins).Add(30 * time.Minute)
	for _, c := range []struct {
		entries  []Entry
		min, max int
	}{
		{[]Entry{on(t, 0, "a", 5, -1), on(t, 0, "b", 8, -1), on(t, 0, "c", 6, -1)}, 8, 20},
		{[]Entry{on(t, 0, "a", 1, -1), on(t, 0, "b", 0, -1)}, 1, 20}, // in place of the usual one, though both are less
		{[]Entry{on(t, 0, "a", -1, 50), on(t, 0, "b", -1, 30), on(t, 0, "c", -1, 40)}, 2, 30},
		{[]Entry{on(t, 0, "a", 12, -1), on(t, 0, "b", -1, 4)}, 12, 12}, // the minimum wins
		{[]Entry{on(t, 0, "a", -1, 4), on(t, 31*time.Minute, "b", 12, 90)}, 2, 4},
		{[]Entry{on(t, 0, "a", -1, 4), on(t, 30*time.Minute+20*time.Second, "b", 12, 90)}, 12, 12}, // ahead as well
	} {
		bounds, _ := New(usual, c.entries).At(now, 40*time.Second, 0)
		assert.Equal(t, []int{c.min, c.max}, []int{bounds.Min, bounds.Max}, "%+v", c.entries)
	}
}

func TestUnlearnedIsWhileAnyOfThemSaysSo(t *testing.T) {
	holiday := Entry{Name: "holidays", Window: recurring(t, "0 0 25 12 *", "Europe/Berlin", 48*time.Hour),
		Unlearned: true}
	c := New(usual, []Entry{on(t, 0, "busy", 9, -1), holiday})
	for text, want := range map[string]bool{
		begins: false, "2026-12-24T22:59:59Z": false, "2026-12-24T23:00:00Z": true, "2026-12-26T22:59:59Z": true,
		"2026-12-26T23:00:00Z": false, "2024-12-25T12:00:00Z": true,
	} {
		assert.Equal(t, want, c.Unlearned(at(t, text).UnixMilli()), text)
	}
}

// A calendar that is asked each second, and after jumps of its clock both ways, says what one says
// that is new, and what follows from the bounds of each second of the time ahead.
func TestCalendarsKeepNothingThatMatters(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	maybe := func(n int) *int {
		if rnd.IntN(3) == 0 {
			return nil
		}
		return new(rnd.IntN(n))
	}
	for range 60 {
		var entries []Entry
		now := at(t, "2026-03-29T00:00:00Z").Add(time.Duration(rnd.IntN(7200)) * time.Second)
		for i := range 1 + rnd.IntN(4) {
			e := Entry{Name: fmt.Sprint(i), Min: maybe(30), Max: maybe(60), Lateness: float64(rnd.IntN(3)) / 100}
			if start := now.Add(time.Duration(rnd.IntN(1200)-600) * time.Second); rnd.IntN(2) == 0 {
				e.Window = Once(start, start.Add(time.Duration(1+rnd.IntN(900))*time.Second))
			} else {
				first := rnd.IntN(30) // twice an hour, more than the time ahead apart
				e.Window = recurring(t, fmt.Sprintf("%d,%d * * * *", first, first+30), "Europe/Berlin",
					time.Duration(1+rnd.IntN(25))*time.Minute)
			}
			entries = append(entries, e)
		}
		kept, ahead := New(usual, entries), time.Duration(rnd.IntN(150))*time.Second
		for range 40 {
			now = now.Add(time.Duration(rnd.IntN(90)-20) * time.Second)
			got, names := kept.At(now, ahead, 2*ahead)
			want, wantNames := New(usual, entries).At(now, ahead, 2*ahead)
			require.Equal(t, want, got)
			require.Equal(t, wantNames, names)
			require.Equal(t, naive(entries, now, ahead), *only(got), "%+v at %s, %s ahead", entries, now, ahead)
		}
	}
}

// only leaves out the farther bounds.
func only(b *pipeline.Bounds) *pipeline.Bounds {
	out := *b
	out.NodeMin, out.NodeMax = 0, 0
	return &out
}

// naive looks at each second from now on.
func naive(entries []Entry, now time.Time, ahead time.Duration) pipeline.Bounds {
	out := pipeline.Bounds{Min: math.MinInt, Max: math.MinInt, Lateness: 1}
	limited := false
	for d := time.Duration(0); d <= ahead; d += time.Second {
		fewest, most, late := math.MinInt, math.MaxInt, 1.0
		for _, e := range entries {
			if !e.Window.Active(now.Add(d)) {
				continue
			}
			if e.Min != nil {
				fewest = max(fewest, *e.Min)
			}
			if e.Max != nil {
				most = min(most, *e.Max)
			}
			if e.Lateness > 0 {
				late = min(late, e.Lateness)
			}
		}
		limited = limited || d == 0 && most != math.MaxInt
		if fewest == math.MinInt {
			fewest = usual.Min
		}
		if most == math.MaxInt {
			most = usual.Max
		}
		if late == 1 {
			late = usual.Lateness
		}
		out.Min, out.Lateness = max(out.Min, fewest), min(out.Lateness, late)
		if d == 0 || !limited {
			out.Max = max(out.Max, most)
		}
	}
	out.Max = max(out.Max, out.Min)
	return out
}

func BenchmarkAt(b *testing.B) {
	var entries []Entry
	for i := range 16 {
		entries = append(entries, Entry{Name: fmt.Sprint(i),
			Window: recurring(b, fmt.Sprintf("%d 8 24 12 *", i), "Europe/Berlin", 72*time.Hour), Min: &i})
	}
	c, now := New(usual, entries), at(b, begins)
	for b.Loop() {
		now = now.Add(time.Second)
		c.At(now, 40*time.Second, 4*time.Minute)
	}
}
