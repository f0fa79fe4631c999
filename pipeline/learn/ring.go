package learn

import (
	"math"
	"slices"

	"github.com/foresail/foresail/pipeline/series"
)

// ring holds the means of stretches of time of one width. The zero value knows nothing.
type ring struct {
	origin int64 // the time of the stretch of number 0 (ms)
	width  int64 // ms
	open   int64 // the number of the stretch that is open
	means  []short
	known  int64 // how many of these are not unknown

	sum   float64 // of the open one
	count int64
}

// short is a number of three digits: the upper half of a float32.
type short uint16

func shortOf(v float64) short {
	f := float32(v)
	if math.IsNaN(v) || math.IsInf(float64(f), 0) {
		return unknown
	}
	return short((math.Float32bits(f) + 1<<15) >> 16)
}

// unknown is the short that is NaN.
const unknown short = 0x7fc0

func (s short) value() float64 { return float64(math.Float32frombits(uint32(s) << 16)) }

func (r *ring) add(end int64, mean float64, width, span int64) {
	number := series.FloorDiv(end-1-r.origin, width)
	if len(r.means) > 0 && number < r.open {
		r.rewind(number)
	}
	if len(r.means) == 0 {
		*r = ring{origin: r.origin, width: width, open: number, means: slices.Grow(r.means[:0], int(span/width))}
		for range span / width {
			r.means = append(r.means, unknown)
		}
	}
	r.forward(number)
	r.sum += mean
	r.count++
}

// rewind opens an earlier stretch. It and those after it are not known any more.
func (r *ring) rewind(number int64) {
	for n := max(number, r.open-int64(len(r.means))+1); n <= r.open; n++ {
		r.set(n, unknown)
	}
	r.open, r.sum, r.count = number, 0, 0
}

func (r *ring) clone() ring {
	out := *r
	out.means = slices.Clone(r.means)
	return out
}

// set sets the mean of a stretch.
func (r *ring) set(number int64, mean short) {
	place := r.place(number)
	if *place != unknown {
		r.known--
	}
	if *place = mean; mean != unknown {
		r.known++
	}
}

func (r *ring) place(number int64) *short {
	return &r.means[series.FloorMod(number, int64(len(r.means)))]
}

// at returns the load at a time, interpolated between the means of two stretches; NaN if they are not known.
func (r *ring) at(t int64) float64 {
	if len(r.means) == 0 {
		return math.NaN()
	}
	t -= r.origin + r.width/2
	number := series.FloorDiv(t, r.width)
	if number+1 >= r.open || number <= r.open-int64(len(r.means)) {
		return math.NaN()
	}
	share := float64(t-number*r.width) / float64(r.width)
	return r.place(number).value()*(1-share) + r.place(number+1).value()*share
}

// fill adds the means of a history of the same width where those of this ring are not known. Only a part of the ring's
// first stretch may be known.
func (r *ring) fill(of *ring) {
	own := *r
	n := int64(len(own.means))
	if n == 0 {
		*r = *of
	}
	if n == 0 || len(of.means) == 0 {
		return
	}
	*r = *of
	if own.open > of.open {
		r.forward(own.open)
	}
	began, _ := own.first()
	for number := max(own.open-n, r.open-n) + 1; number < own.open; number++ {
		if v, in := *own.place(number), *r.place(number); v != unknown && (in == unknown || own.origin+number*own.width > began) {
			r.set(number, v)
		}
	}
	if own.open == r.open {
		r.sum, r.count = own.sum, own.count
	}
}

// forward opens a later stretch. Those between are not known, except the one that was open.
func (r *ring) forward(number int64) {
	if number > r.open+int64(len(r.means)) {
		r.open, r.sum, r.count, r.known = number, 0, 0, 0
		for i := range r.means {
			r.means[i] = unknown
		}
	}
	for ; r.open < number; r.open++ {
		r.set(r.open, shortOf(r.sum/float64(r.count))) // unknown if nothing was
		r.set(r.open+1, unknown)
		r.sum, r.count = 0, 0
	}
}

// first returns the time at which the first known stretch begins.
func (r *ring) first() (t int64, ok bool) {
	n := int64(len(r.means))
	for number := r.open - n + 1; number <= r.open && n > 0; number++ {
		if number == r.open || *r.place(number) != unknown {
			return r.origin + number*r.width, true
		}
	}
	return 0, false
}

// knownFor returns the least time for which the load is known (ms): only a part of the first stretch may be.
func (r *ring) knownFor() int64 { return max(0, r.known-1) * r.width }
