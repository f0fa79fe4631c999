package judge_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline/judge"
)

// Paper, section 10.4, with r = 0.1, f↑ = 1.5, f↓ = 1 and a window of five: each line is a
// measurement and T_I after it.
func TestStartupTime(t *testing.T) {
	type step struct{ measured, want int64 }
	for name, c := range map[string]struct {
		initial time.Duration
		steps   []step
	}{
		"up by at most 15%": {25 * time.Second, []step{
			{40_000, 28_750}, // median 40000: +3750
			{40_000, 33_063}, // 28750 + 4312.5 = 33062.5
			{40_000, 38_022}, // 33063 + 4959.45 = 38022.45
			{40_000, 40_000}, // there
			{40_000, 40_000},
		}},
		"down by at most 10%": {25 * time.Second, []step{
			{20_000, 22_500}, {20_000, 20_250}, {20_000, 20_000}, {20_000, 20_000},
		}},
		"to the mean of the middle two": {25 * time.Second, []step{
			{26_000, 26_000}, {27_000, 26_500}, {25_000, 26_000}, {25_001, 25_501}, // (25001+26000)/2 = 25500.5
		}},
		"one outlier moves little": {25 * time.Second, []step{
			{25_000, 25_000}, {25_000, 25_000}, {25_000, 25_000}, {300_000, 25_000}, {25_000, 25_000},
		}},
		"five are remembered": {10 * time.Second, []step{
			{10_000, 10_000}, {10_000, 10_000}, {10_000, 10_000}, {11_000, 10_000}, {11_000, 10_000},
			{11_000, 11_000}, // the first 10000 is forgotten
		}},
		"rounded to milliseconds": {25_001 * time.Millisecond, []step{
			{1, 22_501}, // 25001 − 2500.1 = 22500.9
		}},
		"clocks that disagree": {25 * time.Second, []step{{-1, 25_000}, {-100_000, 25_000}, {26_000, 26_000}}},
		"at once":              {1000 * time.Millisecond, []step{{0, 900}}},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := judge.NewDampedStartupTime(c.initial)
			require.Equal(t, c.initial, timeout.Value())
			for i, s := range c.steps {
				asked := int64(1_700_000_000_000 + i)
				timeout.Observe(asked, asked+s.measured)
				require.Equal(t, time.Duration(s.want)*time.Millisecond, timeout.Value(), "after measurement %d", i+1)
			}
		})
	}
	require.Equal(t, 2*time.Millisecond, judge.NewDampedStartupTime(1500*time.Microsecond).Value(), "whole milliseconds")
}

// The adaptive method believes the median of five, and until then of what there is and the assumed value.
func TestAdaptiveStartupTimeIsAMedian(t *testing.T) {
	for name, measured := range map[string][][2]int64{ // a measurement and T_I after it, in s; 25 s are assumed
		"slow pods":              {{181, 103}, {180, 180}, {180, 180}, {180, 180}, {180, 180}},
		"quick pods":             {{5, 15}, {4, 5}, {5, 5}, {5, 5}, {5, 5}},
		"a slow image pull":      {{25, 25}, {300, 25}, {25, 25}, {25, 25}, {25, 25}, {25, 25}},
		"pods that become slow":  {{20, 22}, {20, 20}, {20, 20}, {20, 20}, {20, 20}, {90, 20}, {90, 20}, {90, 90}},
		"clocks that disagree":   {{-1, 25}, {-50, 25}},
		"the assumed one is out": {{40, 32}, {40, 40}, {40, 40}, {40, 40}, {50, 40}, {50, 40}, {50, 50}},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := judge.NewStartupTime(25 * time.Second)
			require.Equal(t, 25*time.Second, timeout.Value())
			for i, m := range measured {
				timeout.Observe(1_000_000, 1_000_000+m[0]*1000)
				require.Equal(t, m[1], int64(timeout.Value().Seconds()), "after measurement %d", i+1)
			}
		})
	}
}

// Paper, section 10.3: it follows a lasting change, and rises to it faster than it falls.
func TestStartupTimeConverges(t *testing.T) {
	until := func(initial, measured time.Duration) int {
		timeout := judge.NewDampedStartupTime(initial)
		for n := 1; n < 100; n++ {
			timeout.Observe(0, measured.Milliseconds())
			if timeout.Value() == measured {
				return n
			}
		}
		t.Fatal("it does not get there")
		return 0
	}
	rise, fall := until(20*time.Second, 60*time.Second), until(60*time.Second, 20*time.Second)
	require.Less(t, rise, fall)
	require.Equal(t, 8, rise)  // 1.15⁸ > 3
	require.Equal(t, 11, fall) // 0.9¹¹ < 1/3
}
