package queue

import "math/bits"

// draws is a small generator (SplitMix64) that each request carries, so that what chance has in store for it does not
// depend on what became of the others.
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
