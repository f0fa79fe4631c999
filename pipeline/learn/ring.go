package learn

import (
	"math"
	"slices"

	"github.com/foresail/foresail/pipeline/series"
)

// ring holds the means of consecutive slots of time of one width. The zero value is empty.
type ring struct {
	origin int64 // the time at which slot 0 begins (ms)
	width  int64 // ms
	open   int64 // the number of the open slot
	means  []bf16
	known  int64 // number of means that are known

	sum   float64 // of the open slot
	count int64
}

// bf16 is a number with three significant digits: the upper half of a float32.
type bf16 uint16

// toBF16 rounds a number; NaN and infinite ones become unknownMean.
func toBF16(v float64) bf16 {
	f := float32(v)
	if math.IsNaN(v) || math.IsInf(float64(f), 0) {
		return unknownMean
	}
	return bf16((math.Float32bits(f) + 1<<15) >> 16)
}

// unknownMean is the bf16 that is NaN.
const unknownMean bf16 = 0x7fc0

// value returns the number.
func (s bf16) value() float64 { return float64(math.Float32frombits(uint32(s) << 16)) }

// add adds the mean of a step that ends at a time to its slot.
func (r *ring) add(end int64, mean float64, width, span int64) {
	number := series.FloorDiv(end-1-r.origin, width)
	if len(r.means) > 0 && number < r.open {
		r.rewind(number)
	}
	if len(r.means) == 0 {
		*r = ring{origin: r.origin, width: width, open: number, means: slices.Grow(r.means[:0], int(span/width))}
		for range span / width {
			r.means = append(r.means, unknownMean)
		}
	}
	r.forward(number)
	r.sum += mean
	r.count++
}

// rewind opens an earlier slot. The means of that slot and all later ones are dropped.
func (r *ring) rewind(number int64) {
	for n := max(number, r.open-int64(len(r.means))+1); n <= r.open; n++ {
		r.set(n, unknownMean)
	}
	r.open, r.sum, r.count = number, 0, 0
}

func (r *ring) clone() ring {
	out := *r
	out.means = slices.Clone(r.means)
	return out
}

// set sets the mean of a slot.
func (r *ring) set(number int64, mean bf16) {
	place := r.place(number)
	if *place != unknownMean {
		r.known--
	}
	if *place = mean; mean != unknownMean {
		r.known++
	}
}

// place returns the memory of a slot.
func (r *ring) place(number int64) *bf16 {
	return &r.means[series.FloorMod(number, int64(len(r.means)))]
}

// at returns the load at a time, interpolated between the means of two slots; NaN if one is not known.
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

// fill adds the means of a history of the same width to slots that are not known. The first known slot is also
// replaced, because it may be only partly known.
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
		if v, in := *own.place(number), *r.place(number); v != unknownMean &&
			(in == unknownMean || own.origin+number*own.width > began) {
			r.set(number, v)
		}
	}
	if own.open == r.open {
		r.sum, r.count = own.sum, own.count
	}
}

// forward opens a later slot. Slots in between are unknown, except the one that was open.
func (r *ring) forward(number int64) {
	if number > r.open+int64(len(r.means)) {
		r.open, r.sum, r.count, r.known = number, 0, 0, 0
		for i := range r.means {
			r.means[i] = unknownMean
		}
	}
	for ; r.open < number; r.open++ {
		r.set(r.open, toBF16(r.sum/float64(r.count))) // NaN without a load
		r.set(r.open+1, unknownMean)
		r.sum, r.count = 0, 0
	}
}

// first returns the time at which the first known slot begins.
func (r *ring) first() (t int64, ok bool) {
	n := int64(len(r.means))
	for number := r.open - n + 1; number <= r.open && n > 0; number++ {
		if number == r.open || *r.place(number) != unknownMean {
			return r.origin + number*r.width, true
		}
	}
	return 0, false
}

// knownFor returns the minimum time for which the load is known (ms): the first slot may be only partly known.
func (r *ring) knownFor() int64 { return max(0, r.known-1) * r.width }
