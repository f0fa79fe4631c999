package series

import (
	"math"
	"slices"
	"time"
)

// Finite reports whether v is neither infinite nor NaN.
func Finite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }

// FloorDiv returns a/b rounded down, for a positive b.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// FloorMod returns the remainder of FloorDiv, which is never negative.
func FloorMod(a, b int64) int64 { return a - FloorDiv(a, b)*b }

// Millis returns a duration in milliseconds.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Duration is the inverse of Millis, limited to the range of a time.Duration, some 290 years.
func Duration(ms float64) time.Duration {
	const maxNanoseconds = 1<<63 - 1<<10 // the largest float64 below 2⁶³
	return time.Duration(min(ms*float64(time.Millisecond), maxNanoseconds))
}

// Resize returns a slice of n elements with undefined values, in the memory of s if that is large enough.
func Resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// ResizeZeroed is Resize with every element set to zero.
func ResizeZeroed[T any](s []T, n int) []T {
	s = Resize(s, n)
	clear(s)
	return s
}
