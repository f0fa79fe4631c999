package pipeline

import (
	"cmp"
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/foresail/foresail/pipeline/series"
)

// CheckpointVersion is the version of what MarshalBinary writes. UnmarshalBinary reads this version alone.
const CheckpointVersion = 3

// MaxCheckpoint is the size of the largest checkpoint in bytes, that of a load which has jumped in each minute of the day. That of an
// ordinary load has two thirds of it.
const MaxCheckpoint = 30_482

var (
	_ encoding.BinaryMarshaler   = (*Past)(nil)
	_ encoding.BinaryUnmarshaler = (*Past)(nil)
)

// MarshalBinary returns a checkpoint: all that a past consists of, so that one that is read from it goes on exactly as this one does.
// It fails if loads were so large that a number is not finite.
func (p *Past) MarshalBinary() ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	e := encoder{CheckpointVersion}
	p.fields(&e)
	return e, nil
}

// UnmarshalBinary reads a checkpoint. It changes nothing if that is not one of MarshalBinary, whoever has written it.
func (p *Past) UnmarshalBinary(data []byte) error {
	if len(data) == 0 || data[0] != CheckpointVersion {
		return fmt.Errorf("not a checkpoint of version %d", CheckpointVersion)
	}
	d := decoder{data: data[1:]}
	var read Past
	read.fields(&d)
	switch {
	case d.err != nil:
		return d.err
	case len(d.data) > 0:
		return fmt.Errorf("%d bytes too many in a checkpoint", len(d.data))
	}
	if err := read.check(); err != nil {
		return err
	}
	*p = read
	return nil
}

// codec reads numbers in the order in which it writes them.
type codec interface {
	byte(*uint8)
	short(*uint16)
	int(*int64)
	float(*float64)
	single(*float32)
	// length is of a list of at most some elements.
	length(n, most int) int
}

// encoder writes numbers, little-endian.
type encoder []byte

func (e *encoder) byte(v *uint8)     { *e = append(*e, *v) }
func (e *encoder) short(v *uint16)   { *e = binary.LittleEndian.AppendUint16(*e, *v) }
func (e *encoder) int(v *int64)      { *e = binary.LittleEndian.AppendUint64(*e, uint64(*v)) }
func (e *encoder) float(v *float64)  { *e = binary.LittleEndian.AppendUint64(*e, math.Float64bits(*v)) }
func (e *encoder) single(v *float32) { *e = binary.LittleEndian.AppendUint32(*e, math.Float32bits(*v)) }

func (e *encoder) length(n, _ int) int {
	short := uint16(n)
	e.short(&short)
	return n
}

// decoder reads them. After an error numbers are 0.
type decoder struct {
	data []byte
	err  error
}

func (d *decoder) next(n int) []byte {
	if d.err == nil && len(d.data) < n {
		d.err = errors.New("a checkpoint ends too early")
	}
	if d.err != nil {
		return make([]byte, 8)
	}
	out := d.data[:n]
	d.data = d.data[n:]
	return out
}

func (d *decoder) byte(v *uint8)    { *v = d.next(1)[0] }
func (d *decoder) short(v *uint16)  { *v = binary.LittleEndian.Uint16(d.next(2)) }
func (d *decoder) int(v *int64)     { *v = int64(binary.LittleEndian.Uint64(d.next(8))) }
func (d *decoder) float(v *float64) { *v = math.Float64frombits(binary.LittleEndian.Uint64(d.next(8))) }
func (d *decoder) single(v *float32) {
	*v = math.Float32frombits(binary.LittleEndian.Uint32(d.next(4)))
}

func (d *decoder) length(_, most int) int {
	var n uint16
	d.short(&n)
	if int(n) > most {
		d.err = cmp.Or(d.err, fmt.Errorf("a list of %d in a checkpoint, of at most %d", n, most))
		return 0
	}
	return int(n)
}

// models are numbered as checkpoints have them.
var models = [...]ModelKind{"", Linear, Overhead, Quadratic}

// fields reads or writes a past.
func (p *Past) fields(c codec) {
	p.of.fields(c)
	p.recent.fields(c, p.of.step)
	for i := range p.horizons {
		p.horizons[i].fields(c, horizons[i])
	}
	p.season.minutes.fields(c, minute, day+beyond)
	p.season.fives.fields(c, 5*minute, week+beyond)
	p.season.jumps.fields(c)
}

func (k *kind) fields(c codec) {
	model := uint8(max(0, slices.Index(models[:], k.model.Kind)))
	c.byte(&model)
	if int(model) < len(models) {
		k.model.Kind = models[model]
	} else {
		k.model.Kind = "unknown" // which check does not let pass
	}
	c.float(&k.model.Baseline)
	flag(c, &k.whole)
	c.float(&k.threshold)
	c.float(&k.lateness)
	c.float(&k.scaleDownMargin)
	c.int(&k.step)
}

// flag is a byte that is 0 or 1.
func flag(c codec, v *bool) {
	var b uint8
	if *v {
		b = 1
	}
	c.byte(&b)
	if d, ok := c.(*decoder); ok && b > 1 {
		d.err = cmp.Or(d.err, errors.New("a flag of a checkpoint is neither 0 nor 1"))
	}
	*v = b == 1
}

// sized makes a list as long as a checkpoint says it is.
func sized[T any](c codec, list *[]T, most int) {
	n := c.length(len(*list), most)
	if n != len(*list) {
		*list = make([]T, n)
	}
}

func (r *recent) fields(c codec, step int64) {
	r.step = step
	c.int(&r.end)
	c.int(&r.newest)
	c.float(&r.sum)
	c.int(&r.known)
	flag(c, &r.missing)
	flag(c, &r.clipped)
	for i := range r.least {
		c.float(&r.least[i])
	}
	sized(c, &r.means, recentSteps)
	for i := range r.means {
		c.float(&r.means[i])
	}
}

func (h *horizon) fields(c codec, seconds float64) {
	c.float(&h.looks)
	c.float(&h.size)
	c.float(&h.margin)
	for i := range lookBacks(seconds) {
		c.short((*uint16)(&h.before[i].margin))
		c.short((*uint16)(&h.before[i].forJump))
	}
	c.float(&h.ordered)
	c.float(&h.asked)
	for i := range h.squares {
		c.single(&h.squares[i])
	}
	for i := range h.moments {
		c.single(&h.moments[i])
	}
	for i := range h.weights { // they are not always those of the last squares and moments
		c.float(&h.weights[i])
	}
}

// fields of a ring are those that it has once something was added, and before that its origin.
func (r *ring) fields(c codec, width, span int64) {
	c.int(&r.origin)
	sized(c, &r.means, int(span/width))
	if len(r.means) == 0 {
		return
	}
	r.width = width
	c.int(&r.open)
	c.float(&r.sum)
	c.int(&r.count)
	r.known = 0
	for i := range r.means {
		if c.short((*uint16)(&r.means[i])); r.means[i] != unknown {
			r.known++
		}
	}
}

func (j *jumps) fields(c codec) {
	c.int(&j.origin)
	c.int(&j.open)
	flag(c, &j.known)
	for i := range j.steps {
		c.float(&j.steps[i])
	}
	for i := range j.closed {
		j.closed[i].fields(c)
	}
	j.now.fields(c)
	j.minutes(c)
	for i := range j.list {
		x := &j.list[i]
		c.byte(&x.days)
		c.byte(&x.first)
		c.byte(&x.last)
		c.single(&x.height)
	}
	if _, reads := c.(*decoder); reads {
		j.sumUp()
	}
}

// minutes are those of the list, a bit for each of the day.
func (j *jumps) minutes(c codec) {
	var set [minutesPerDay / 8]uint8
	for _, x := range j.list {
		set[x.minute/8] |= 1 << (x.minute % 8)
	}
	for i := range set {
		c.byte(&set[i])
	}
	if _, reads := c.(*decoder); !reads {
		return
	}
	for m := range uint16(minutesPerDay) {
		if set[m/8]&(1<<(m%8)) != 0 {
			j.list = append(j.list, jump{minute: m})
		}
	}
}

func (m *ofMinute) fields(c codec) {
	c.int(&m.steps)
	c.float(&m.peak)
	c.byte(&m.began)
}

// Numbers that a checkpoint may have. Times and counts are so far from what an integer holds that sums of them are too.
const (
	furthest   = int64(1) << 52 // ms, a hundred thousand years from now
	mostCounts = int64(1) << 32
	mostLooks  = 2 * float64(halfLife/learnEach) // there are never more than 1.45 times as many
)

// check returns why a past is none that learning leads to, or has numbers that are too large to go on with.
func (p *Past) check() error {
	var c checker
	p.of.check(&c)
	p.recent.check(&c)
	for i := range p.horizons {
		p.horizons[i].check(&c)
	}
	p.season.minutes.check(&c, minute, day+beyond)
	p.season.fives.check(&c, 5*minute, week+beyond)
	p.season.jumps.check(&c)
	return c.err
}

// checker keeps the first thing that is wrong.
type checker struct{ err error }

func (c *checker) require(ok bool, what string) {
	if !ok && c.err == nil {
		c.err = errors.New("a checkpoint with " + what)
	}
}

// upTo are numbers from 0 to the most. It is false for NaN.
func upTo(v, most float64) bool { return v >= 0 && v <= most }

func isTime(t int64) bool     { return -furthest <= t && t <= furthest }
func isCount(n int64) bool    { return 0 <= n && n <= mostCounts }
func isLoad(v float64) bool   { return series.Finite(v) || math.IsNaN(v) }
func isSingle(v float32) bool { return series.Finite(float64(v)) }

func (k *kind) check(c *checker) {
	c.require(slices.Contains(models[:], k.model.Kind), "an unknown model")
	c.require(series.Finite(k.model.Baseline), "an infinite baseline")
	c.require(k.threshold > 0 && series.Finite(k.threshold), "a threshold that is not above 0")
	c.require(upTo(k.lateness, 0.5), "a lateness that is not between 0 and 0.5")
	c.require(upTo(k.scaleDownMargin, 100), "a margin for scaling down that is not between 0 and 100")
	c.require(leastStep.Milliseconds() <= k.step && k.step <= week, "a step that is out of bounds")
}

func (r *recent) check(c *checker) {
	c.require(isTime(r.end) && isTime(r.newest), "a time that is out of bounds")
	c.require(series.Finite(r.sum) && isCount(r.known), "an open step that is not finite")
	infinite := func(v float64) bool { return !isLoad(v) }
	c.require(!slices.ContainsFunc(r.means, infinite) && !slices.ContainsFunc(r.least[:], infinite), "an infinite load")
}

func (h *horizon) check(c *checker) {
	c.require(upTo(h.looks, mostLooks), "a number of looks that is out of bounds")
	c.require(upTo(h.size, math.MaxFloat64) && upTo(h.margin, math.MaxFloat64), "an error or a margin that is not finite, or below 0")
	c.require(upTo(h.ordered, math.MaxFloat64) && upTo(h.asked, math.MaxFloat64), "a number of instances that is not finite, or below 0")
	ok := true
	for _, v := range h.before {
		ok = ok && upTo(v.margin.value(), math.MaxFloat32) && upTo(v.forJump.value(), math.MaxFloat32)
	}
	for _, v := range h.squares {
		ok = ok && isSingle(v)
	}
	for _, v := range h.moments {
		ok = ok && isSingle(v)
	}
	for _, v := range h.weights {
		ok = ok && series.Finite(v)
	}
	c.require(ok, "a regression or a margin that is not finite")
}

func (r *ring) check(c *checker, width, span int64) {
	c.require(isTime(r.origin) && isTime(r.open), "a time that is out of bounds")
	c.require(len(r.means) == 0 || int64(len(r.means)) == span/width && r.width == width, "a season of another length")
	c.require(series.Finite(r.sum) && isCount(r.count), "a season that is not finite")
	c.require(!slices.ContainsFunc(r.means, func(s short) bool { return s != unknown && !series.Finite(s.value()) }), "a season that is not finite")
}

func (j *jumps) check(c *checker) {
	c.require(isTime(j.origin) && isTime(j.open), "a time that is out of bounds")
	c.require(!slices.ContainsFunc(j.steps[:], func(v float64) bool { return !isLoad(v) }), "an infinite load")
	for _, m := range append(j.closed[:], j.now) {
		c.require(isCount(m.steps) && upTo(m.peak, math.MaxFloat64) && m.began < 60, "a minute that is out of bounds")
	}
	for _, x := range j.list {
		c.require(0 < x.days && x.days < 1<<7, "a jump on no day of the week")
		c.require(x.first <= x.last && x.last < 60, "a jump at no second of a minute")
		c.require(upTo(float64(x.height), math.MaxFloat32), "a jump to a load that is not finite")
	}
}
