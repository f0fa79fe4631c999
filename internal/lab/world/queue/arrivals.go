package queue

import (
	"math/bits"
	"math/rand/v2"

	"github.com/foresail/foresail/internal/lab"
)

// step is how long the rate is taken to be level, in ms.
const step = 10

// arrivals finds when requests arrive: where the integral of the rate passes one mark after
// another. Marks are one request apart, or as far as chance has it.
type arrivals struct {
	load    lab.Load
	random  *rand.Rand
	poisson bool

	from  int64   // start of the present step
	rate  float64 // requests per ms in it
	ahead float64 // requests' worth of load from that start to the next mark
}

func newArrivals(c Config) *arrivals {
	a := &arrivals{load: c.Load, random: lab.Random(c.Seed, "arrivals"), poisson: c.Model.Poisson}
	a.ahead = a.random.Float64()
	if a.poisson {
		a.ahead = a.random.ExpFloat64()
	}
	a.rate = a.mean()
	return a
}

func (a *arrivals) mean() float64 {
	return max(0, a.load.Rate(a.from)+a.load.Rate(a.from+step)) / 2 / 1000
}

// next returns when the next request arrives, if that is before a time. It is the same until taken.
func (a *arrivals) next(before int64) (at float64, ok bool) {
	for a.from < before {
		if worth := a.rate * step; worth <= a.ahead {
			a.ahead -= worth
			a.from += step
			a.rate = a.mean()
			continue
		}
		at = float64(a.from) + a.ahead/a.rate
		return at, at < float64(before)
	}
	return 0, false
}

// take goes on to the request after.
func (a *arrivals) take() {
	if a.poisson {
		a.ahead += a.random.ExpFloat64()
	} else {
		a.ahead++
	}
}

// draws is a small generator (SplitMix64) that each request carries, so that what chance has in
// store for it does not depend on what became of the others.
type draws uint64

// drawsOf returns the generator of the n-th request.
func drawsOf(seed uint64, n int) draws {
	d := draws(seed ^ bits.RotateLeft64(uint64(n)*0xd1342543de82ef95, 32))
	return draws(d.next())
}

func (d *draws) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// float returns a number in [0, 1).
func (d *draws) float() float64 { return float64(d.next()>>11) / (1 << 53) }

// between returns a number in [low, high).
func (d *draws) between(low, high float64) float64 { return low + (high-low)*d.float() }

// int returns a number from low to high, both included.
func (d *draws) int(low, high int) int { return low + int(d.next()%uint64(high-low+1)) }
