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

// MaxCheckpoint is the maximum size of a checkpoint in bytes, that of a load which jumped in each minute of the
// day. An ordinary load has two thirds of it.
const MaxCheckpoint = 30_482

var (
	_ encoding.BinaryMarshaler   = (*Learned)(nil)
	_ encoding.BinaryUnmarshaler = (*Learned)(nil)
)

// MarshalBinary returns a checkpoint with the whole state: a Learned that is read from it behaves exactly like
// this one. It fails if loads are so large that a number is not finite.
func (p *Learned) MarshalBinary() ([]byte, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	e := encoder{CheckpointVersion}
	codeLearned(&e, p)
	return e, nil
}

// UnmarshalBinary reads a checkpoint. It leaves p unchanged if the data is not from MarshalBinary.
func (p *Learned) UnmarshalBinary(data []byte) error {
	if len(data) == 0 || data[0] != CheckpointVersion {
		return fmt.Errorf("not a checkpoint of version %d", CheckpointVersion)
	}
	d := decoder{data: data[1:]}
	var read Learned
	codeLearned(&d, &read)
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

// models holds the metric models by their number in checkpoints.
var models = [...]series.ModelKind{"", series.Linear, series.Overhead, series.Quadratic}

// codeLearned reads or writes a Learned.
func codeLearned(c codec, p *Learned) {
	codeLoadKey(c, &p.key)
	codeRecent(c, &p.recent, p.key.step)
	for i := range p.horizons {
		codeHorizon(c, &p.horizons[i], horizons[i])
	}
	codeRing(c, &p.season.minutes, minute, day+beyond)
	codeRing(c, &p.season.fiveMinutes, 5*minute, week+beyond)
	codeJumps(c, &p.season.jumps)
}

func codeLoadKey(c codec, k *loadKey) {
	model := uint8(max(0, slices.Index(models[:], k.model.Kind)))
	c.uint8(&model)
	if int(model) < len(models) {
		k.model.Kind = models[model]
	} else {
		k.model.Kind = "unknown" // check rejects it
	}
	c.float64(&k.model.Baseline)
	codeBool(c, &k.whole)
	c.float64(&k.threshold)
	c.float64(&k.lateness)
	c.float64(&k.scaleDownMargin)
	c.int64(&k.step)
}

// codeBool reads or writes a bool as a byte that is 0 or 1.
func codeBool(c codec, v *bool) {
	var b uint8
	if *v {
		b = 1
	}
	c.uint8(&b)
	if d, ok := c.(*decoder); ok && b > 1 {
		d.err = cmp.Or(d.err, errors.New("a flag of a checkpoint is neither 0 nor 1"))
	}
	*v = b == 1
}

// codeList reads or writes the length of a list, and allocates the list when reading.
func codeList[T any](c codec, list *[]T, maxLength int) {
	n := c.length(len(*list), maxLength)
	if n != len(*list) {
		*list = make([]T, n)
	}
}

func codeRecent(c codec, r *recent, step int64) {
	r.step = step
	c.int64(&r.end)
	c.int64(&r.newest)
	c.float64(&r.sum)
	c.int64(&r.known)
	codeBool(c, &r.missing)
	codeBool(c, &r.clipped)
	for i := range r.lowerBounds {
		c.float64(&r.lowerBounds[i])
	}
	codeList(c, &r.means, recentSteps)
	for i := range r.means {
		c.float64(&r.means[i])
	}
}

func codeHorizon(c codec, h *horizon, seconds float64) {
	c.float64(&h.evaluations)
	c.float64(&h.size)
	c.float64(&h.margin)
	for i := range marginSlots(seconds) {
		c.uint16((*uint16)(&h.planned[i].margin))
		c.uint16((*uint16)(&h.planned[i].forJump))
	}
	c.float64(&h.ordered)
	c.float64(&h.requested)
	for i := range h.squares {
		c.float32(&h.squares[i])
	}
	for i := range h.moments {
		c.float32(&h.moments[i])
	}
	for i := range h.weights { // they may lag behind squares and moments
		c.float64(&h.weights[i])
	}
}

// codeRing reads or writes a ring. An empty one has only its origin.
func codeRing(c codec, r *ring, width, span int64) {
	c.int64(&r.origin)
	codeList(c, &r.means, int(span/width))
	if len(r.means) == 0 {
		return
	}
	r.width = width
	c.int64(&r.open)
	c.float64(&r.sum)
	c.int64(&r.count)
	r.known = 0
	for i := range r.means {
		if c.uint16((*uint16)(&r.means[i])); r.means[i] != unknownMean {
			r.known++
		}
	}
}

func codeJumps(c codec, j *jumps) {
	c.int64(&j.origin)
	c.int64(&j.open)
	codeBool(c, &j.known)
	for i := range j.steps {
		c.float64(&j.steps[i])
	}
	for i := range j.closed {
		codeMinute(c, &j.closed[i])
	}
	codeMinute(c, &j.now)
	codeJumpMinutes(c, j)
	for i := range j.list {
		x := &j.list[i]
		c.uint8(&x.days)
		c.uint8(&x.first)
		c.uint8(&x.last)
		c.float32(&x.height)
	}
	if _, reads := c.(*decoder); reads {
		j.rebuildHours()
	}
}

// codeJumpMinutes reads or writes the minutes of the list, one bit for each minute of the day.
func codeJumpMinutes(c codec, j *jumps) {
	var set [minutesPerDay / 8]uint8
	for _, x := range j.list {
		set[x.minute/8] |= 1 << (x.minute % 8)
	}
	for i := range set {
		c.uint8(&set[i])
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

func codeMinute(c codec, m *ofMinute) {
	c.int64(&m.steps)
	c.float64(&m.peak)
	c.uint8(&m.began)
}

// Bounds of the numbers in a checkpoint. They are small enough that sums do not overflow.
const (
	maxTime        = int64(1) << 52 // ms, a hundred thousand years from now
	maxCount       = int64(1) << 32
	maxEvaluations = 2 * float64(halfLife/evaluationInterval) // decay keeps them below 1.45 halfLives
)

// check returns an error if the state cannot result from learning, or if its numbers are too large to continue
// with.
func check(p *Learned) error {
	var c checker
	checkKind(&c, &p.key)
	checkRecent(&c, &p.recent)
	for i := range p.horizons {
		checkHorizon(&c, &p.horizons[i])
	}
	checkRing(&c, &p.season.minutes, minute, day+beyond)
	checkRing(&c, &p.season.fiveMinutes, 5*minute, week+beyond)
	checkJumps(&c, &p.season.jumps)
	return c.err
}

// checker keeps the first error.
type checker struct{ err error }

func (c *checker) require(ok bool, what string) {
	if !ok && c.err == nil {
		c.err = errors.New("a checkpoint with " + what)
	}
}

// upTo reports whether a number is between 0 and limit; false for NaN.
func upTo(v, limit float64) bool { return v >= 0 && v <= limit }

func isTime(t int64) bool     { return -maxTime <= t && t <= maxTime }
func isCount(n int64) bool    { return 0 <= n && n <= maxCount }
func isLoad(v float64) bool   { return series.Finite(v) || math.IsNaN(v) }
func isSingle(v float32) bool { return series.Finite(float64(v)) }

func checkKind(c *checker, k *loadKey) {
	c.require(slices.Contains(models[:], k.model.Kind), "an unknown model")
	c.require(series.Finite(k.model.Baseline), "an infinite baseline")
	c.require(k.threshold > 0 && series.Finite(k.threshold), "a threshold that is not above 0")
	c.require(upTo(k.lateness, 0.5), "a lateness that is not between 0 and 0.5")
	c.require(upTo(k.scaleDownMargin, 100), "a margin for scaling down that is not between 0 and 100")
	c.require(minStep.Milliseconds() <= k.step && k.step <= week, "a step that is out of bounds")
}

func checkRecent(c *checker, r *recent) {
	c.require(isTime(r.end) && isTime(r.newest), "a time that is out of bounds")
	c.require(series.Finite(r.sum) && isCount(r.known), "an open step that is not finite")
	infinite := func(v float64) bool { return !isLoad(v) }
	c.require(!slices.ContainsFunc(r.means, infinite) &&
		!slices.ContainsFunc(r.lowerBounds[:], infinite), "an infinite load")
}

func checkHorizon(c *checker, h *horizon) {
	c.require(upTo(h.evaluations, maxEvaluations), "a number of looks that is out of bounds")
	c.require(upTo(h.size, math.MaxFloat64) && upTo(h.margin, math.MaxFloat64),
		"an error or a margin that is not finite, or below 0")
	c.require(upTo(h.ordered, math.MaxFloat64) && upTo(h.requested, math.MaxFloat64),
		"a number of instances that is not finite, or below 0")
	ok := true
	for _, v := range h.planned {
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
	c.require(!slices.ContainsFunc(r.means, func(s bf16) bool { return s != unknownMean && !series.Finite(s.value()) }),
		"a season that is not finite")
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
