package scaler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab"
)

// The names, and by how much they look back (ms).
var lookBack = map[string]int64{"keda/yesterday": day.Milliseconds(), "keda/last-week": 7 * day.Milliseconds()}

// burst is 1,000 requests/s for a minute, which are 8 pods' work, and before and after it 100.
func burst(from int64) loadOf {
	return func(t int64) float64 {
		if t >= from && t < from+60_000 {
			return 1000
		}
		return 100
	}
}

func withHistory(load lab.Load, from int64) Setup {
	s := testSetup(ramp(1, 1, 0, 1))
	s.History = History{Load: load, From: from}
	return s
}

func TestPodsAreThereHalfAnHourBeforeTheirTimeOfEarlier(t *testing.T) {
	const now = 400_000
	for name, ago := range lookBack {
		for _, c := range []struct {
			burst int64 // after the time that is as long ago
			want  int
		}{
			{-70_000, 6}, // it is over. Pods that are not needed go after five minutes
			{-40_000, 12},
			{0, 12},
			{1_750_000, 12},
			{1_800_000, 6}, // it has not begun
		} {
			s := withHistory(burst(now-ago+c.burst), -2*ago)
			assert.Equal(t, c.want, decideWith(t, name, s, steady(now, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2)), "%s: %d ms",
				name, c.burst)
			assert.Equal(t, 6, decideWith(t, "keda", s, steady(now, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2)))
		}
		s := withHistory(burst(now-ago), -2*ago)
		assert.Equal(t, 16, decideWith(t, name, s, steady(now, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)),
			"the larger of both: 11/0.7 pods")
	}
}

// Readings of a pod end at 1; those of all pods' load do not.
func TestEarlierLoadIsAllOfIt(t *testing.T) {
	const now = 400_000
	for name, ago := range lookBack {
		s := withHistory(loadOf(func(int64) float64 { return 1700 }), -2*ago)
		assert.Equal(t, 20, decideWith(t, name, s, steady(now, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)), "%s: 13.6 pods' work",
			name)
	}
}

// KEDA makes 0 of a query without a result, which keeps nobody from scaling down.
func TestNothingRecordedIsKEDA(t *testing.T) {
	load := ramp(1000, 200, 70_000, 100_000)
	for name, ago := range lookBack {
		want := play(t, "keda", testSetup(load), need(1000), 20*time.Minute)
		require.NotEmpty(t, want.Changes)
		for _, from := range []int64{0, 25*60_000 - ago + recurringRange.Milliseconds()} {
			s := testSetup(load)
			s.History = History{From: from, Load: loadOf(func(int64) float64 { panic("nothing was recorded then") })}
			assert.Equal(t, want, play(t, name, s, need(1000), 20*time.Minute), "%s, recorded from %d", name, from)
		}
	}
}

func TestPastPeakIsTheLargestReadingOfItsRange(t *testing.T) {
	r := lab.Random(1, "past peak")
	for n := range 20 {
		values := make([]float64, 20_000)
		for i := range values {
			values[i] = r.ExpFloat64()
		}
		const from = -100_000_000
		s := testSetup(ramp(1, 1, 0, 1))
		s.Sources = DefaultSources(uint64(n))
		s.Cost, s.History = 0.5, History{From: from, Load: loadOf(func(at int64) float64 {
			require.GreaterOrEqual(t, at, int64(from))
			require.Zero(t, at%1000, "readings are of whole seconds")
			return values[(at-from)/1000]
		})}
		p := newPastPeak(s, 100_000*time.Second)
		for now := int64(-3_000_000) + r.Int64N(1000); now < 10_000_000; now += 15_000 * (1 + r.Int64N(9)) {
			want := 0.0
			for at := s.Sources.KEDA.Phase.Milliseconds() + from; at <= now+from+1_800_000; at += 5000 {
				if first := (at-from)/1000 - 5; at > now+from && first >= 0 {
					sum := 0.0
					for _, v := range values[first : first+5] {
						sum += v
					}
					want = max(want, sum/5*0.5)
				}
			}
			require.InDelta(t, want, p.largest(now), 1e-12, fmt.Sprintf("at %d", now))
		}
	}
}
