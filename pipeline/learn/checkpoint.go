package learn

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/foresail/foresail/pipeline/series"
)

// CheckpointVersion is the version of the checkpoints that MarshalBinary writes and UnmarshalBinary reads.
const CheckpointVersion = 3

// MaxCheckpoint is the size of the largest checkpoint in bytes, that of a load which has jumped in each minute of the
// day. That of an ordinary load has two thirds of it.
const MaxCheckpoint = 30_482

var (
	_ encoding.BinaryMarshaler   = (*Past)(nil)
	_ encoding.BinaryUnmarshaler = (*Past)(nil)
)

// MarshalBinary returns a checkpoint with all of a past, so that a past that is read from it continues exactly as this
// one. It fails if loads were so large that a number is not finite.
func (p *Past) MarshalBinary() ([]byte, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	e := encoder{CheckpointVersion}
	fieldsOfPast(&e, p)
	return e, nil
}

// UnmarshalBinary reads a checkpoint. It changes nothing if the data is not from MarshalBinary.
func (p *Past) UnmarshalBinary(data []byte) error {
	if len(data) == 0 || data[0] != CheckpointVersion {
		return fmt.Errorf("not a checkpoint of version %d", CheckpointVersion)
	}
	d := decoder{data: data[1:]}
	var read Past
	fieldsOfPast(&d, &read)
	switch {
	case d.err != nil:
		return d.err
	case len(d.data) > 0:
		return fmt.Errorf("%d bytes too many in a checkpoint", len(d.data))
	}
	if err := check(&read); err != nil {
		return err
	}
	*p = read
	return nil
}

// models are numbered as checkpoints have them.
var models = [...]series.ModelKind{"", series.Linear, series.Overhead, series.Quadratic}

// fieldsOfPast reads or writes a past.
func fieldsOfPast(c codec, p *Past) {
	fieldsOfKind(c, &p.of)
	fieldsOfRecent(c, &p.recent, p.of.step)
	for i := range p.horizons {
		fieldsOfHorizon(c, &p.horizons[i], horizons[i])
	}
	fieldsOfRing(c, &p.season.minutes, minute, day+beyond)
	fieldsOfRing(c, &p.season.fives, 5*minute, week+beyond)
	fieldsOfJumps(c, &p.season.jumps)
}

func fieldsOfKind(c codec, k *kind) {
	model := uint8(max(0, slices.Index(models[:], k.model.Kind)))
	c.byte(&model)
	if int(model) < len(models) {
		k.model.Kind = models[model]
	} else {
		k.model.Kind = "unknown" // which check refuses
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

func fieldsOfRecent(c codec, r *recent, step int64) {
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

func fieldsOfHorizon(c codec, h *horizon, seconds float64) {
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

// fieldsOfRing reads or writes the fields that a ring has once something was added, and before that its origin.
func fieldsOfRing(c codec, r *ring, width, span int64) {
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

func fieldsOfJumps(c codec, j *jumps) {
	c.int(&j.origin)
	c.int(&j.open)
	flag(c, &j.known)
	for i := range j.steps {
		c.float(&j.steps[i])
	}
	for i := range j.closed {
		fieldsOfMinute(c, &j.closed[i])
	}
	fieldsOfMinute(c, &j.now)
	minutesOfJumps(c, j)
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

// minutesOfJumps reads or writes the minutes of the list, a bit for each of the day.
func minutesOfJumps(c codec, j *jumps) {
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

func fieldsOfMinute(c codec, m *ofMinute) {
	c.int(&m.steps)
	c.float(&m.peak)
	c.byte(&m.began)
}

// Bounds of the numbers in a checkpoint. Times and counts are so small that sums of them do not overflow.
const (
	furthest   = int64(1) << 52 // ms, a hundred thousand years from now
	mostCounts = int64(1) << 32
	mostLooks  = 2 * float64(halfLife/learnEach) // decay keeps them below 1.45 halfLives
)

// check returns an error if learning does not lead to such a past, or if its numbers are too large to go on with.
func check(p *Past) error {
	var c checker
	checkKind(&c, &p.of)
	checkRecent(&c, &p.recent)
	for i := range p.horizons {
		checkHorizon(&c, &p.horizons[i])
	}
	checkRing(&c, &p.season.minutes, minute, day+beyond)
	checkRing(&c, &p.season.fives, 5*minute, week+beyond)
	checkJumps(&c, &p.season.jumps)
	return c.err
}

// checker keeps the first thing that is wrong.
type checker struct{ err error }

func (c *checker) require(ok bool, what string) {
	if !ok && c.err == nil {
		c.err = errors.New("a checkpoint with " + what)
	}
}

// upTo reports whether a number is from 0 to the most; false for NaN.
func upTo(v, most float64) bool { return v >= 0 && v <= most }

func isTime(t int64) bool     { return -furthest <= t && t <= furthest }
func isCount(n int64) bool    { return 0 <= n && n <= mostCounts }
func isLoad(v float64) bool   { return series.Finite(v) || math.IsNaN(v) }
func isSingle(v float32) bool { return series.Finite(float64(v)) }

func checkKind(c *checker, k *kind) {
	c.require(slices.Contains(models[:], k.model.Kind), "an unknown model")
	c.require(series.Finite(k.model.Baseline), "an infinite baseline")
	c.require(k.threshold > 0 && series.Finite(k.threshold), "a threshold that is not above 0")
	c.require(upTo(k.lateness, 0.5), "a lateness that is not between 0 and 0.5")
	c.require(upTo(k.scaleDownMargin, 100), "a margin for scaling down that is not between 0 and 100")
	c.require(leastStep.Milliseconds() <= k.step && k.step <= week, "a step that is out of bounds")
}

func checkRecent(c *checker, r *recent) {
	c.require(isTime(r.end) && isTime(r.newest), "a time that is out of bounds")
	c.require(series.Finite(r.sum) && isCount(r.known), "an open step that is not finite")
	infinite := func(v float64) bool { return !isLoad(v) }
	c.require(!slices.ContainsFunc(r.means, infinite) && !slices.ContainsFunc(r.least[:], infinite), "an infinite load")
}

func checkHorizon(c *checker, h *horizon) {
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

func checkRing(c *checker, r *ring, width, span int64) {
	c.require(isTime(r.origin) && isTime(r.open), "a time that is out of bounds")
	c.require(len(r.means) == 0 || int64(len(r.means)) == span/width && r.width == width, "a season of another length")
	c.require(series.Finite(r.sum) && isCount(r.count), "a season that is not finite")
	c.require(!slices.ContainsFunc(r.means, func(s short) bool { return s != unknown && !series.Finite(s.value()) }), "a season that is not finite")
}

func checkJumps(c *checker, j *jumps) {
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
