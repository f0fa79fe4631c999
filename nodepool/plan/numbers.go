package plan

import (
	"fmt"
	"math"
	"time"
)

// add returns a + b, or the largest int on overflow. Neither may be negative.
func add(a, b int) int {
	if b > math.MaxInt-a {
		return math.MaxInt
	}
	return a + b
}

// percent returns n percent of a number, rounded down, but at least 1.
func percent(n, of int) int { return max(1, n*of/100) }

// share clamps a number to [0, 1]; NaN counts as 0.
func share(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

// compareBool returns -1 if only a is true, and 1 if only b is: true sorts first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// count formats a number of things, such as "2 nodes".
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// short rounds a duration up to seconds, so that a remainder is never printed as 0s.
func short(d time.Duration) time.Duration {
	if r := d.Round(time.Second); r >= d || r > math.MaxInt64-time.Second {
		return r
	}
	return d.Round(time.Second) + time.Second
}
