package plan

import (
	"fmt"
	"math"
	"time"
)

// add returns a + b, or the largest int if that is more: neither is negative.
func add(a, b int) int {
	if b > math.MaxInt-a {
		return math.MaxInt
	}
	return a + b
}

// percent returns n percent of a number, rounded down, but at least one.
func percent(n, of int) int { return max(1, n*of/100) }

// share returns a number in [0, 1]; NaN counts as 0.
func share(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

// compareBool returns -1 if only a holds, and 1 if only b does: what holds sorts first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// count returns a number of things for people.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// short returns a duration for people, rounded up to seconds so that a remainder never reads as 0s.
func short(d time.Duration) time.Duration {
	if r := d.Round(time.Second); r >= d || r > math.MaxInt64-time.Second {
		return r
	}
	return d.Round(time.Second) + time.Second
}
