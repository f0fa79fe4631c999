package signal

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
)

// tuesday is the first time of these tests.
var tuesday = time.Date(2026, 3, 3, 8, 45, 0, 0, time.UTC)

// floorOf returns a Set with a seasonal floor.
func floorOf(t testing.TB, transport http.RoundTripper, weeks int) *Set {
	o := defaults()
	o.DefaultAddress, o.Servers = promAddress, clients(transport)
	o.Seasonal = &SeasonalConfig{Query: Query{Expr: "sum(load) / 0.7"}, Weeks: weeks}
	s := newSet(t, o)
	return s
}

// officeHours is a load of 6.2 nodes from 9 to 17 on working days, otherwise of 1.
func officeHours(t time.Time) float64 {
	if t.Weekday() == time.Saturday || t.Weekday() == time.Sunday || t.Hour() < 9 || t.Hour() >= 17 {
		return 1
	}
	return 6.2
}

// learned returns the floor at a time after the past was queried.
func learned(t testing.TB, s *Set, now time.Time, startupTime time.Duration) *plan.Seasonal {
	s.Seasonal(t.Context(), now, startupTime)
	synctest.Wait()
	return s.Seasonal(t.Context(), now, startupTime)
}

func TestSeasonalFloor(t *testing.T) {
	steady := func(f func(time.Time) float64) fakeSeries { return load("", f) }
	tests := map[string]struct {
		series fakeSeries
		weeks  int
		at     time.Time
		want   plan.Seasonal
		err    string
	}{
		"in working hours": {
			steady(officeHours),
			4,
			tuesday.Add(2 * time.Hour),
			plan.Seasonal{Known: true, Nodes: 7, Confidence: 1},
			"",
		},
		"at night": {
			steady(officeHours),
			4,
			tuesday.Add(12 * time.Hour),
			plan.Seasonal{Known: true, Nodes: 1, Confidence: 1},
			"",
		},
		"on Saturday": {
			steady(officeHours),
			4,
			tuesday.Add(4*day + 2*time.Hour),
			plan.Seasonal{Known: true, Nodes: 1, Confidence: 1},
			"",
		},
		"one week compares seven days": {
			steady(
				officeHours,
			), 1, tuesday.Add(2 * time.Hour), plan.Seasonal{Known: true, Nodes: 7, Confidence: 1 - 2*5.2/7/6.2}, "",
		},
		"three days only": {
			steady(
				officeHours,
			).Since(tuesday.Add(-day)),
			1, tuesday.Add(2*day + 2*time.Hour), plan.Seasonal{Nodes: 7, Confidence: 3.0 / 7},
			"the confidence of 0.43 is below 0.50: 3 of 7 days",
		},
		"two days": {
			steady(
				officeHours,
			).Since(tuesday.Add(-day)),
			1, tuesday.Add(day + 2*time.Hour), plan.Seasonal{Nodes: 7, Confidence: 2.0 / 7},
			"the past has this hour on 2 of 7 days, fewer than 3",
		},
		"nothing": {
			steady(
				officeHours,
			).Since(tuesday.Add(week)),
			2, tuesday, plan.Seasonal{}, "the past has this hour on 0 of 2 days, fewer than 2",
		},
		"weeks that differ": {
			steady(
				func(t time.Time) float64 { return float64(t.YearDay() / 7 % 2 * 20) },
			), 4, tuesday, plan.Seasonal{Nodes: 10, Confidence: 0},
			"the confidence of 0.00 is below 0.50: 4 of 4 days, which differ by 10.0 of 10.0 nodes on average",
		},
		"gaps": {
			fakeSeries{
				Labels: map[string]string{},
				At:     func(t time.Time) (float64, bool) { return 3, t.Minute()%20 != 0 },
			}, 2, tuesday, plan.Seasonal{Known: true, Nodes: 3, Confidence: 0.75}, "",
		},
		"no load": {steady(constant(0)), 2, tuesday, plan.Seasonal{Known: true, Confidence: 1}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeProm{}
				f.set(test.series)
				got := learned(t, floorOf(t, f, test.weeks), test.at, time.Minute)
				assert.Equal(t, test.want.Known, got.Known, got.Err)
				assert.Equal(t, test.want.Nodes, got.Nodes)
				assert.InDelta(t, test.want.Confidence, got.Confidence, 1e-9)
				if test.err == "" {
					assert.Empty(t, got.Err)
				} else {
					assert.Contains(t, got.Err, test.err)
				}
			})
		})
	}
}

// The floor rises ahead of the hour, by the horizon of launches.
func TestSeasonalFloorIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeProm{}
		f.set(load("", officeHours))
		s := floorOf(t, f, 2)
		learned(t, s, tuesday, time.Minute)
		first := func(startupTime time.Duration) time.Time {
			for now := tuesday.Add(-time.Hour); ; now = now.Add(time.Minute) {
				if s.Seasonal(t.Context(), now, startupTime).Nodes >= 4 {
					return now
				}
			}
		}
		nine := tuesday.Truncate(time.Hour).Add(time.Hour)
		slow, quick := first(8*time.Minute), first(time.Minute)
		assert.True(t, quick.Before(nine), quick)
		assert.Equal(t, 9*time.Minute, quick.Sub(slow).Round(time.Minute)+time.Minute)
	})
}

// The past is queried in chunks that a server accepts, once an hour, without waiting.
func TestPastIsQueriedInChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeProm{}
		f.set(load("", officeHours))
		s := floorOf(t, slow{f, 10 * time.Second}, 12)
		start := time.Now()
		got := s.Seasonal(t.Context(), start, 0)
		assert.Zero(t, time.Since(start))
		assert.Equal(t, errNotLearned.Error(), got.Err)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		assert.True(t, s.Seasonal(t.Context(), time.Now(), 0).Known)
		queries := f.queries()
		require.Len(t, queries, 3)
		for i, q := range queries {
			assert.Equal(t, "sum(load) / 0.7", q.Expr)
			assert.Equal(t, seasonalStep, q.Step)
			assert.LessOrEqual(t, q.End.Sub(q.Start)/q.Step, time.Duration(10_999))
			if i > 0 {
				assert.Equal(t, queries[i-1].End.Add(seasonalStep), q.Start, "no gap and no overlap")
			}
		}
		assert.Equal(t, start.Truncate(seasonalStep).Add(-12*week-seasonalWidth), queries[0].Start.In(start.Location()))
		for range 4 * 59 {
			s.Seasonal(t.Context(), time.Now(), 0)
			time.Sleep(15 * time.Second)
		}
		assert.Len(t, f.queries(), 3)
		time.Sleep(time.Minute)
		s.Seasonal(t.Context(), time.Now(), 0)
		time.Sleep(31 * time.Second)
		assert.Len(t, f.queries(), 6)
	})
}

// A failing server is queried with exponential back-off, and the previous past stays in use.
func TestPastIsKeptWhileAServerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeProm{}
		fail := func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.Copy(w, strings.NewReader("no"))
		}
		f.answer(fail)
		s := floorOf(t, f, 2)
		pass := func(span time.Duration) (last *plan.Seasonal) {
			for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(interval) {
				last = s.Seasonal(t.Context(), time.Now(), 0)
				synctest.Wait()
			}
			return last
		}
		got := pass(16 * time.Minute)
		assert.False(t, got.Known)
		assert.Contains(t, got.Err, "http://prometheus:9090: HTTP status 503")
		assert.Len(t, f.queries(), 5, "at 0, 1, 3, 7 and 15 minutes")
		f.set(load("", officeHours))
		assert.True(t, pass(17*time.Minute).Known)
		f.answer(fail)
		assert.True(t, pass(3*time.Hour).Known)
		assert.Less(t, len(f.queries()), 20)
	})
}

func TestNoSeasonalFloor(t *testing.T) {
	assert.Nil(t, newSet(t, defaults()).Seasonal(t.Context(), start, 0))
}
