package loadgen

import (
	"iter"
	"math"
	"math/rand/v2"
	"time"
)

// arrivals yields when each request is due, since the start. Evenly, request k is due when the
// profile's rate has come to k−½ requests; otherwise arrivals are a Poisson process of that rate.
func (p Profile) arrivals(poisson bool, seed uint64) iter.Seq[time.Duration] {
	random := rand.New(rand.NewPCG(seed, 0))
	next, gap := 0.5, func() float64 { return 1 }
	if poisson {
		next, gap = random.ExpFloat64(), random.ExpFloat64
	}
	return func(yield func(time.Duration) bool) {
		begun := 0.0 // requests due before the segment
		for i := range len(p) - 1 {
			s := segment{p[i], p[i+1]}
			for ; next < begun+s.requests(); next += gap() {
				if !yield(s.from.At + s.when(next-begun)) {
					return
				}
			}
			begun += s.requests()
		}
	}
}

// segment is the straight line between two points.
type segment struct{ from, to Point }

func (s segment) seconds() float64 { return (s.to.At - s.from.At).Seconds() }

func (s segment) requests() float64 { return (s.from.RPS + s.to.RPS) / 2 * s.seconds() }

// when returns how long after its beginning the segment's rate has come to so many requests, fewer
// than it has in all.
func (s segment) when(requests float64) time.Duration {
	slope := (s.to.RPS - s.from.RPS) / s.seconds()
	// The root of from·t + slope·t²/2 = requests, in the form that does not cancel for small slopes.
	root := math.Sqrt(math.Max(0, s.from.RPS*s.from.RPS+2*slope*requests))
	return time.Duration(2 * requests / (s.from.RPS + root) * float64(time.Second))
}
