package schedule

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
	_ "time/tzdata" // wherever the test runs

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func recurring(t testing.TB, schedule, zone string, d time.Duration) Window {
	t.Helper()
	w, err := Recurring(schedule, zone, d)
	require.NoError(t, err)
	return w
}

// at reads a time with its offset from UTC.
func at(t testing.TB, text string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return out
}

// edges returns when a window becomes active and ceases to be, between two times, to the minute, as
// the clock of its zone shows it.
func edges(w *Window, from, to time.Time) (out []string) {
	active := w.Active(from)
	for now := from; now.Before(to); now = now.Add(time.Minute) {
		if next := w.Active(now); next != active {
			word := map[bool]string{true: "from", false: "to"}[next]
			out, active = append(out, word+" "+now.In(w.zone).Format("2 15:04 -07")), next
		}
	}
	return out
}

func TestOnceIsFromItsStartUntilBeforeItsEnd(t *testing.T) {
	w := Once(at(t, "2026-11-27T08:00:00+01:00"), at(t, "2026-11-28T08:00:00+01:00"))
	for text, want := range map[string]bool{
		"2026-11-27T06:59:59Z": false, "2026-11-27T07:00:00Z": true, "2026-11-28T06:59:59Z": true,
		"2026-11-28T07:00:00Z": false,
	} {
		assert.Equal(t, want, w.Active(at(t, text)), text)
	}
	assert.Equal(t, span{w.start, w.end}, w.next(at(t, "2026-01-01T00:00:00Z")))
	assert.Zero(t, w.next(w.end))
	assert.False(t, new(Window).Active(time.Time{}))
}

func TestSchedulesFollowTheClockOfTheirZone(t *testing.T) {
	w := recurring(t, "0 8 * * mon-fri", "America/New_York", 10*time.Hour)
	for text, want := range map[string]bool{
		"2026-01-05T12:59:59Z": false, "2026-01-05T13:00:00Z": true, "2026-01-05T22:59:59Z": true,
		"2026-01-05T23:00:00Z": false,
		"2026-07-06T11:59:59Z": false, "2026-07-06T12:00:00Z": true, // an hour earlier in summer
		"2026-01-10T14:00:00Z": false, // a Saturday
	} {
		assert.Equal(t, want, w.Active(at(t, text)), text)
	}
}

// In Berlin clocks go from 2:00 to 3:00 on 29 March 2026, and from 3:00 back to 2:00 on 25 October.
func TestATimeThatIsSkippedIsWhenClocksAreSetForward(t *testing.T) {
	from, to := at(t, "2026-03-28T12:00:00Z"), at(t, "2026-03-30T12:00:00Z")
	w := recurring(t, "30 2 * * *", "Europe/Berlin", 90*time.Minute)
	assert.Equal(t, []string{"from 29 03:00 +02", "to 29 04:30 +02", "from 30 02:30 +02", "to 30 04:00 +02"},
		edges(&w, from, to))
	w = recurring(t, "30 1 * * *", "Europe/Berlin", 90*time.Minute) // a duration is no clock's
	assert.Equal(t, []string{"from 29 01:30 +01", "to 29 04:00 +02", "from 30 01:30 +02", "to 30 03:00 +02"},
		edges(&w, from, to))
	// three times of the hour that is skipped are the moment at which 3:00 is
	w = recurring(t, "0,20,40 * * * *", "Europe/Berlin", 10*time.Minute)
	assert.Equal(t, []string{"from 29 01:40 +01", "to 29 01:50 +01", "from 29 03:00 +02", "to 29 03:10 +02",
		"from 29 03:20 +02"},
		edges(&w, at(t, "2026-03-29T00:35:00Z"), at(t, "2026-03-29T01:25:00Z")))
}

func TestATimeThatComesTwiceCountsOnce(t *testing.T) {
	from, to := at(t, "2026-10-24T12:00:00Z"), at(t, "2026-10-26T12:00:00Z")
	w := recurring(t, "30 2 * * *", "Europe/Berlin", 90*time.Minute)
	assert.Equal(t, []string{"from 25 02:30 +02", "to 25 03:00 +01", "from 26 02:30 +01", "to 26 04:00 +01"},
		edges(&w, from, to))
	w = recurring(t, "0 3 * * *", "Europe/Berlin", time.Hour)
	assert.Equal(t, []string{"from 25 03:00 +01", "to 25 04:00 +01", "from 26 03:00 +01", "to 26 04:00 +01"},
		edges(&w, from, to))
	w = recurring(t, "30 * * * *", "Europe/Berlin", 10*time.Minute)
	assert.Equal(t, []string{"from 25 01:30 +02", "to 25 01:40 +02", "from 25 02:30 +02", "to 25 02:40 +02",
		"from 25 03:30 +01", "to 25 03:40 +01"},
		edges(&w, at(t, "2026-10-24T23:00:00Z"), at(t, "2026-10-25T03:00:00Z")))
}

// Samoa had no 30 December 2011.
func TestADayThatIsSkipped(t *testing.T) {
	w := recurring(t, "0 8 30 12 *", "Pacific/Apia", time.Hour)
	assert.Equal(t, []string{"from 31 00:00 +14", "to 31 01:00 +14"},
		edges(&w, at(t, "2011-12-28T00:00:00Z"), at(t, "2012-01-02T00:00:00Z")))
}

func TestWindowsThatFollowEachOtherAreOne(t *testing.T) {
	now := at(t, "2026-01-05T12:10:00Z")
	for _, c := range []struct {
		schedule string
		duration time.Duration
		want     []time.Duration // of its start and end from now
	}{
		{"0 * * * *", 5 * time.Minute, []time.Duration{50 * time.Minute, 55 * time.Minute}},
		{"0 * * * *", 15 * time.Minute, []time.Duration{-10 * time.Minute, 5 * time.Minute}},
		{"0 12 * * *", 36 * time.Hour, []time.Duration{-10*time.Minute - 24*time.Hour, 36*time.Hour - 10*time.Minute}},
		{"0,10 * * * *", 10 * time.Minute, []time.Duration{0, 10 * time.Minute}},
		{"0,10 * * * *", 11 * time.Minute, []time.Duration{-10 * time.Minute, 11 * time.Minute}},
	} {
		w := recurring(t, c.schedule, "", c.duration)
		s := w.next(now)
		assert.Equal(t, c.want, []time.Duration{s.start.Sub(now), s.end.Sub(now)}, "%s for %s", c.schedule, c.duration)
	}
	always := recurring(t, "* * * * *", "", 31*24*time.Hour)
	s := always.next(now)
	assert.True(t, s.has(now) && !s.end.Before(now.Add(joinedFor)), "%v", s)
}

// A second implementation, by the minute, agrees.
func TestActiveIsWhatAWalkByTheMinuteFinds(t *testing.T) {
	for _, schedule := range []string{"*/7 * * * *", "0 8 * * mon-fri", "15,45 6-9,22 * * *", "0 0 1,15 * sat",
		"30 12 31 * *", "@weekly", "5 4 */10 jan ?", "30 2 * * *"} {
		for _, zone := range []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"} {
			for _, d := range []time.Duration{time.Minute, 5 * time.Minute, 90 * time.Minute, 26 * time.Hour} {
				w := recurring(t, schedule, zone, d)
				walk(t, &w, fmt.Sprintf("%s for %s in %s", schedule, d, zone), at(t, "2026-03-14T00:00:00Z"), 24)
				walk(t, &w, fmt.Sprintf("%s for %s in %s", schedule, d, zone), at(t, "2026-10-20T00:00:00Z"), 14)
			}
		}
	}
}

func walk(t *testing.T, w *Window, what string, now time.Time, days int) {
	active := time.Duration(-1)
	last := onWall(now.Add(-time.Minute).In(w.zone))
	var next span
	for minute := range days * 24 * 60 {
		// Every minute that the clock shows for the first time, or skips.
		for wall := onWall(now.In(w.zone)); last.Before(wall); {
			if last = last.Add(time.Minute); matches(w.cron, last) {
				active = w.duration
			}
		}
		// After 27 hours no window is open that began before the walk.
		if minute > 27*60 && minute%7 == 0 {
			if w.Active(now) != (active > 0) {
				t.Fatalf("%s at %s: active %t", what, now, active <= 0)
			}
			if !next.end.After(now) {
				next = w.next(now)
			}
			if next.has(now) != (active > 0) {
				t.Fatalf("%s at %s: %v", what, now, next)
			}
		}
		now, active = now.Add(time.Minute), active-time.Minute
	}
}

func matches(s *cron.SpecSchedule, t time.Time) bool {
	has := func(field uint64, value int) bool { return field&(1<<value) != 0 }
	star := func(field uint64) bool { return bits.LeadingZeros64(field) == 0 }
	dom, dow := has(s.Dom, t.Day()), has(s.Dow, int(t.Weekday()))
	day := dom || dow
	if star(s.Dom) || star(s.Dow) {
		day = dom && dow
	}
	return day && has(s.Month, int(t.Month())) && has(s.Hour, t.Hour()) && has(s.Minute, t.Minute())
}

// A moment is the first at which the clock shows a time or a later one, in every zone and year.
func TestMomentIsTheFirst(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	zones := []string{"Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca",
		"America/Sao_Paulo", "Asia/Tehran", "UTC"}
	for range 5_000 {
		w := recurring(t, "* * * * *", zones[rnd.IntN(len(zones))], time.Minute)
		// Near a change of its clocks, if there is one in the year.
		near := time.Date(1990+rnd.IntN(45), time.Month(1+rnd.IntN(12)), 15, 0, 0, 0, 0, w.zone)
		if _, change := near.ZoneBounds(); !change.IsZero() && change.Sub(near) < 366*24*time.Hour {
			near = change
		}
		wall := onWall(near).Truncate(time.Minute).Add(time.Duration(rnd.IntN(400)-200) * time.Minute)
		got := w.moment(wall)
		require.False(t, onWall(got.In(w.zone)).Before(wall), "%s in %s: %s", wall, w.zone, got)
		for before := time.Second; before < 3*time.Hour; before += 7 * time.Minute {
			require.True(t, onWall(got.Add(-before).In(w.zone)).Before(wall), "%s in %s: %s", wall, w.zone, got)
		}
	}
}

func TestErrorsNameTheField(t *testing.T) {
	for _, c := range []struct {
		schedule, zone string
		duration       time.Duration
		want           string
	}{
		{"0 24 * * *", "", time.Hour,
			`schedule: "0 24 * * *": must be a cron schedule: end of range (24) above maximum (23)`},
		{"0 0 31 2 *", "", time.Hour,
			`schedule: "0 0 31 2 *": must be a cron schedule with times that come, unlike 31 February`},
		{", 0 * * *", "", time.Hour, "with times that come"},
		{"@every 1h", "", time.Hour, `schedule: "@every 1h": must be a cron schedule of five fields`},
		{"TZ=Europe/Berlin 0 8 * * *", "", time.Hour, "must be a cron schedule: "},
		{"", "", time.Hour, `schedule: "": must be a cron schedule: `},
		{"@daily", "Europe/Atlantis", time.Hour,
			`timeZone: "Europe/Atlantis": must be a name of the IANA time zone database, such as Europe/Berlin or UTC`},
		{"@daily", "Local", time.Hour, `timeZone: "Local": must be`},
		{"@daily", "../etc/passwd", time.Hour, "timeZone: "},
		{"@daily", "", 0, "duration: 0s: must be a duration above 0s"},
	} {
		_, err := Recurring(c.schedule, c.zone, c.duration)
		assert.ErrorContains(t, err, c.want)
	}
}

func BenchmarkActive(b *testing.B) {
	w := recurring(b, "0 8 24 12 *", "Europe/Berlin", 72*time.Hour)
	now := at(b, "2026-01-05T12:10:00Z")
	for b.Loop() {
		w.Active(now)
	}
}
