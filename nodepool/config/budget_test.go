package config

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
)

// always returns a budget that is always active.
func always(nodes string) v1alpha1.DisruptionBudget {
	return v1alpha1.DisruptionBudget{Nodes: intstr.Parse(nodes)}
}

// during returns a budget with a schedule.
func during(nodes, schedule string, d time.Duration) v1alpha1.DisruptionBudget {
	return v1alpha1.DisruptionBudget{Nodes: intstr.Parse(nodes), Schedule: schedule,
		Duration: &metav1.Duration{Duration: d}}
}

// at returns a time of the week that begins on Monday, 5 January 2026.
func at(t *testing.T, day int, clock string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.TimeOnly, clock)
	require.NoError(t, err)
	return parsed.AddDate(2026, 0, 4+day)
}

func TestNodesAndPercentages(t *testing.T) {
	for _, c := range []struct {
		nodes         string
		workers, want int
	}{
		{"10%", 0, 0},
		{"10%", 1, 1},
		{"10%", 10, 1},
		{"10%", 11, 2},
		{"10%", 10000, 1000},
		{"0%", 10, 0},
		{"1%", 101, 2},
		{"100%", 7, 7},
		{"33%", 3, 1},
		{"34%", 3, 2},
		{"0", 10, 0},
		{"2", 10, 2},
		{"2", 1, 1},
		{"5", 0, 0},
		{"10%", -1, 0},
	} {
		b := ParseBudgets([]v1alpha1.DisruptionBudget{always(c.nodes)})
		require.NoError(t, b.Err())
		got, why := b.Allowed(at(t, 0, "12:00:00"), c.workers)
		assert.Equal(t, c.want, got, "%s of %d", c.nodes, c.workers)
		assert.Equal(t, "the budget nodes "+c.nodes, why)
	}
}

func TestAStringOfDigitsIsANumber(t *testing.T) {
	b := ParseBudgets([]v1alpha1.DisruptionBudget{{Nodes: intstr.FromString("2")}})
	require.NoError(t, b.Err())
	got, _ := b.Allowed(at(t, 0, "12:00:00"), 10)
	assert.Equal(t, 2, got)
}

func TestTheSmallestOfTheActiveBudgetsCounts(t *testing.T) {
	b := ParseBudgets([]v1alpha1.DisruptionBudget{
		always("20%"),
		during("0", "0 8 * * mon-fri", 10*time.Hour),
		during("1", "@daily", time.Hour),
		always("3"),
		during("50%", "0 2 * * *", time.Hour),
	})
	require.NoError(t, b.Err())
	for _, c := range []struct {
		day   int
		clock string
		want  int
		why   string
	}{
		{0, "07:59:59", 3, "the budget nodes 3"},
		{0, "08:00:00", 0, "the budget nodes 0 of schedule 0 8 * * mon-fri for 10h0m0s"},
		{4, "17:59:59", 0, "the budget nodes 0 of schedule 0 8 * * mon-fri for 10h0m0s"},
		{4, "18:00:00", 3, "the budget nodes 3"},
		{5, "12:00:00", 3, "the budget nodes 3"},
		{5, "00:30:00", 1, "the budget nodes 1 of schedule @daily for 1h0m0s"},
		{5, "02:30:00", 3, "the budget nodes 3"},
	} {
		got, why := b.Allowed(at(t, c.day, c.clock), 20)
		assert.Equal(t, c.want, got, "%d %s", c.day, c.clock)
		assert.Equal(t, c.why, why, "%d %s", c.day, c.clock)
	}
	got, why := b.Allowed(at(t, 0, "18:00:00"), 5)
	assert.Equal(t, 1, got)
	assert.Equal(t, "the budget nodes 20%", why)
}

// As with Karpenter: a budget that is not active limits nothing, and no other takes its place.
func TestNoLimitWhileNoBudgetIsActive(t *testing.T) {
	b := ParseBudgets([]v1alpha1.DisruptionBudget{during("0", "0 8 * * *", time.Hour)})
	got, why := b.Allowed(at(t, 0, "12:00:00"), 7)
	assert.Equal(t, 7, got)
	assert.Equal(t, "no budget is active", why)
	got, _ = Budgets{}.Allowed(at(t, 0, "12:00:00"), 7)
	assert.Equal(t, 7, got)
}

func TestWindowsOverlapAndCrossMidnight(t *testing.T) {
	b := ParseBudgets([]v1alpha1.DisruptionBudget{during("0", "30 23 * * sun", 2*time.Hour),
		during("1", "@hourly", 90*time.Minute)})
	for clock, want := range map[string]int{"00:00:00": 0, "01:29:59": 0, "01:30:00": 1, "15:00:00": 1} {
		got, why := b.Allowed(at(t, 0, clock), 7)
		assert.Equal(t, want, got, "%s: %s", clock, why)
	}
}

// Only the present counts: a clock that jumps takes the answer of its new time along, and summer time has no say.
func TestTheClockMayJumpAndHaveAnyZone(t *testing.T) {
	b := ParseBudgets([]v1alpha1.DisruptionBudget{always("5"), during("0", "30 1 * * *", time.Hour)})
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, day := range []time.Time{ // summer time begins and ends at 01:00 UTC
		time.Date(2026, time.March, 29, 0, 0, 0, 0, time.UTC), time.Date(2026, time.October, 25, 0, 0, 0, 0, time.UTC),
	} {
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{2 * time.Hour, 0}, {time.Hour, 5}, {90 * time.Minute, 0}, {150 * time.Minute, 5},
			{149 * time.Minute, 0}, {-time.Hour, 5}} {
			got, _ := b.Allowed(day.Add(step.after).In(berlin), 9)
			assert.Equal(t, step.want, got, "%s after %s", step.after, day)
		}
	}
}

func TestFractionsOfASecond(t *testing.T) {
	b := ParseBudgets([]v1alpha1.DisruptionBudget{during("0", "0 8 * * *", time.Hour)})
	for offset, want := range map[time.Duration]int{-1: 9, 0: 0, 1: 0, time.Hour - 1: 0, time.Hour: 9, time.Hour + 1: 9} {
		got, _ := b.Allowed(at(t, 0, "08:00:00").Add(offset), 9)
		assert.Equal(t, want, got, "%s", offset)
	}
}

func TestWhatCannotBeReadAllowsNothing(t *testing.T) {
	for _, c := range []struct {
		of   v1alpha1.DisruptionBudget
		want string
	}{
		{always("101%"), `nodes: "101%": must be a number of nodes or a percentage up to 100%`},
		{always("-1"), `nodes: "-1": must be`},
		{always("some"), `nodes: "some": must be`},
		{during("0", "0 24 * * *", time.Hour),
			`schedule: "0 24 * * *": must be a cron schedule: end of range (24) above maximum (23)`},
		{during("0", "0 5-3 * * *", time.Hour),
			`schedule: "0 5-3 * * *": must be a cron schedule: beginning of range (5) beyond end`},
		{during("0", "0 0 31 2 *", time.Hour), `schedule: "0 0 31 2 *": must be a cron schedule with times that come`},
		{during("0", "0 0 30 feb ?", time.Hour), "with times that come"},
		{during("0", ", 0 * * *", time.Hour), "with times that come"},
		{during("0", "0 , * * *", time.Hour), "with times that come"},
		{during("0", "0 0 , * *", time.Hour), "with times that come"},
		{during("0", "@every 1h", time.Hour), `schedule: "@every 1h": must be a cron schedule of five fields`},
		{during("0", "TZ=Europe/Berlin 0 8 * * *", time.Hour), "must be a cron schedule: "},
		{during("0", "TZ=0", time.Hour), "must be a cron schedule: "},
		{during("0", "", time.Hour), `schedule: "": must be a cron schedule: `},
		{during("0", "@daily", 0), "duration: 0s: must be a duration above 0s, as there is a schedule"},
		{v1alpha1.DisruptionBudget{Nodes: intstr.FromInt32(0), Schedule: "@daily"},
			"duration: 0s: must be a duration above 0s"},
	} {
		b := ParseBudgets([]v1alpha1.DisruptionBudget{always("5"), c.of})
		require.Error(t, b.Err(), c.want)
		assert.Contains(t, b.Err().Error(), "spec.disruption.budgets[1].")
		assert.Contains(t, b.Err().Error(), c.want)
		got, why := b.Allowed(at(t, 0, "12:00:00"), 20)
		assert.Zero(t, got)
		assert.Equal(t, b.Err().Error(), why)
	}
}

// Schedules that the API server accepts can be parsed, except dates that never come and ranges
// that end before they begin.
func TestWhatTheAPIAcceptsCanBeRead(t *testing.T) {
	text, err := os.ReadFile("../../api/v1alpha1/testdata/workerpool/valid/disruption.yaml")
	require.NoError(t, err)
	var pool v1alpha1.WorkerPool
	require.NoError(t, yaml.UnmarshalStrict(text, &pool))
	require.Greater(t, len(pool.Spec.Disruption.Budgets), 5)
	assert.NoError(t, ParseBudgets(pool.Spec.Disruption.Budgets).Err())
}

func TestEveryErrorIsReported(t *testing.T) {
	b := ParseBudgets([]v1alpha1.DisruptionBudget{always("x"), always("1"), during("0", "y", time.Hour)})
	assert.ErrorContains(t, b.Err(), "budgets[0].nodes: ")
	assert.ErrorContains(t, b.Err(), "budgets[2].schedule: ")
}

// The 29th of February comes.
func TestLeapDay(t *testing.T) {
	b := ParseBudgets([]v1alpha1.DisruptionBudget{during("0", "0 0 29 2 *", 24*time.Hour)})
	require.NoError(t, b.Err())
	for day, want := range map[string]int{"2024-02-29": 0, "2026-02-28": 9, "2026-03-01": 9,
		"2028-02-29": 0, "2097-03-01": 9} {
		now, err := time.Parse(time.DateOnly, day)
		require.NoError(t, err)
		got, _ := b.Allowed(now.Add(time.Hour), 9)
		assert.Equal(t, want, got, day)
	}
}

func FuzzSchedule(f *testing.F) {
	for _, seed := range []string{"0 8 * * mon-fri", "@daily", "@every 1h", "TZ=0", "0 0 31 2 *", ", , , , ,",
		"*/0 * * * *", "0-59/7 5-3 ? ? ?", "CRON_TZ=UTC", "0 0 29 2 *", "* * * * 7"} {
		f.Add(seed, int64(1767571200), int64(time.Hour), 10)
	}
	f.Fuzz(func(t *testing.T, schedule string, now, duration int64, workers int) {
		if len(schedule) > 128 {
			return
		}
		workers = min(workers, math.MaxInt/200)
		b := ParseBudgets([]v1alpha1.DisruptionBudget{during("50%", schedule, time.Duration(duration))})
		started := time.Now()
		got, why := b.Allowed(time.Unix(now%(1<<34), 0), workers)
		if took := time.Since(started); took > 5*time.Second {
			t.Errorf("%q took %s", schedule, took)
		}
		if got < 0 || got > max(0, workers) || why == "" {
			t.Errorf("%q: %d of %d: %q", schedule, got, workers, why)
		}
		if b.Err() != nil && got != 0 {
			t.Errorf("%q cannot be read, and allows %d", schedule, got)
		}
	})
}

func BenchmarkAllowed(b *testing.B) {
	var list []v1alpha1.DisruptionBudget
	for i := range 50 {
		list = append(list, during("1", fmt.Sprintf("%d 0 29 2 *", i), time.Hour))
	}
	budgets, now := ParseBudgets(list), time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		budgets.Allowed(now, 1000)
	}
}
