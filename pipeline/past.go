package pipeline

import (
	"cmp"
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/series"
)

// Past is what a load has been, and what has been learned of how it goes on: for some horizons a correction of the present load and
// the error to expect, and the times of the day at which it jumps. It depends on the loads that were added to it alone. It is not safe
// for concurrent use.
//
// A forecast with a past differs from one without in three ways. Its Total is what has been learned to follow from what the load looks
// like. It plans for jumps that recur. And its margin is the one that would have been late for a share of the time, Params.Lateness.
// What has been learned can only raise what is planned for, beside the margin.
type Past struct {
	of       kind
	recent   recent
	horizons [len(horizons)]horizon
	season   season
}

// kind is what loads are comparable by.
type kind struct {
	model           Model
	whole           bool
	threshold       float64 // of an instance, in units of the load
	lateness        float64
	scaleDownMargin float64
	step            int64 // ms
}

// lookEach is how often a load is looked at (ms).
func (k *kind) lookEach() int64 { return max(learnEach, k.step) }

func (p *Params) kind() kind {
	step := newRecent(p.Interval).step
	model := p.Model
	model.Kind = cmp.Or(model.Kind, Linear)
	return kind{model: model, whole: p.Whole, threshold: p.Model.Load(p.Threshold), lateness: p.Lateness, scaleDownMargin: p.ScaleDownMargin, step: step}
}

// continues reports whether loads of this kind go on from those of another.
func (k kind) continues(other kind) bool {
	return k.model == other.model && k.whole == other.whole && k.step == other.step
}

const (
	// learnEach is how often a load is looked at (ms).
	learnEach = 15_000
	// settling is how long the load of a tick may still change, as some readings are late.
	settling = 15 * time.Second
)

// NewPast returns the past of a load of which nothing is known.
func NewPast(p *Params) *Past {
	return &Past{of: p.kind(), recent: newRecent(p.Interval)}
}

// Clone returns a copy.
func (p *Past) Clone() *Past {
	out := *p
	out.recent, out.season = p.recent.clone(), p.season.clone()
	return &out
}

// Shifted returns a copy in which everything was earlier by some time.
func (p *Past) Shifted(by time.Duration) *Past {
	out, ms := p.Clone(), by.Milliseconds()
	out.recent.end -= ms
	out.recent.newest -= ms
	out.season.minutes.origin -= ms
	out.season.fives.origin -= ms
	out.season.jumps.origin -= ms
	for i := range out.horizons {
		out.horizons[i].before.shift(series.FloorDiv(ms, p.of.lookEach()), horizons[i])
	}
	return out
}

// Rewind forgets the loads that lie after a time (ms), as those are of a clock that was ahead and has
// been set back.
func (p *Past) Rewind(t int64) {
	if p.recent.newest <= t {
		return
	}
	p.recent.forget(series.FloorDiv(t, p.recent.step)*p.recent.step, t)
	p.season.rewind(t)
	p.release()
}

// Known is for how long the load is known: for how long it has been looked at, of late times more than of early ones, or for how much of
// the last week it is known what it was, whichever is more.
func (p *Past) Known() time.Duration {
	looks := 0.0
	for i := range p.horizons {
		looks = max(looks, p.horizons[i].looks) // the nearest are none of a load that is read rarely
	}
	return time.Duration(max(int64(looks*float64(p.of.lookEach())), p.season.fives.knownFor())) * time.Millisecond
}

// Newest is the time of the newest load (ms), 0 without any.
func (p *Past) Newest() int64 { return p.recent.newest }

// Fits reports whether a past is of loads as these parameters read them, and of use to a pipeline of them.
func (p *Past) Fits(params *Params) bool {
	return p != nil && params.Method == Adaptive && !params.Counted && params.kind().continues(p.of)
}

// Learn adds the loads of the last run in a memory, but for those that may still change. It begins anew if they are not of the same
// kind as those before. Of the times that unlearned names (ms; nil: none) nothing is learned: what the load was then is kept for as long
// as forecasts look back.
func (p *Past) Learn(m *Memory, params *Params, unlearned func(t int64) bool) {
	if params.Method != Adaptive || params.Counted {
		return
	}
	l := m.loads
	newest := l.Tick(l.N - 1)
	p.age(newest)
	p.become(params)
	late := max(settling.Milliseconds(), 2*int64(l.Spacing)*l.Step)
	settled := l.Index(newest - late)
	for k := p.recent.after(l.Grid); k < settled; k++ {
		p.add(l.Tick(k), l.Ticks[k].Effective, l.Ticks[k].Clipped, m, unlearned)
	}
}

// Add adds the load at a time (ms), NaN if it is not known.
func (p *Past) Add(t int64, load float64, m *Memory, params *Params) {
	p.age(t)
	p.become(params)
	p.add(t, load, false, m, nil)
}

// maxAge is how old what was learned may be (ms): nothing of it recurs less often.
const maxAge = week

// tooOld reports whether nothing has been learned for so long that the load may be another one by now (ms).
func (p *Past) tooOld(now int64) bool { return p.recent.newest > 0 && now-p.recent.newest > maxAge }

// age forgets everything once it is too old at a time (ms).
func (p *Past) age(now int64) {
	if p.tooOld(now) {
		*p = Past{of: p.of, recent: recent{step: p.recent.step}}
		p.recent.forget(0, 0)
	}
}

// become makes it the past of a load of other parameters, which is another load if it does not go on from it.
func (p *Past) become(params *Params) {
	if of := params.kind(); of.continues(p.of) {
		p.of = of
	} else {
		*p = *NewPast(params)
	}
}

func (p *Past) add(t int64, load float64, clipped bool, m *Memory, unlearned func(t int64) bool) {
	p.recent.add(t, load, clipped, func(mean, shown float64) {
		if unlearned != nil && unlearned(p.recent.end-p.recent.step) {
			p.season.add(p.recent.end, p.recent.step, math.NaN(), math.NaN())
			p.release()
			return
		}
		p.season.add(p.recent.end, p.recent.step, mean, shown)
		if series.FloorMod(p.recent.end, learnEach) < p.recent.step {
			p.look(m, unlearned)
		}
	})
}

// look compares the newest loads with what was to be expected, for each horizon, unless that was at a time of which nothing is learned.
func (p *Past) look(m *Memory, unlearned func(t int64) bool) {
	means, step := p.recent.means, float64(p.recent.step)/1000
	around := int(math.Round(aroundTime / step))
	came := means[max(0, len(means)-max(1, 2*around)):]
	rate := 0.0
	for _, v := range came {
		rate += v / float64(len(came)) // NaN if one of them is
	}
	clipped := math.IsNaN(rate)
	if clipped {
		rate = p.recent.atLeast(max(1, 2*around))
	}
	if math.IsNaN(rate) {
		p.release()
		p.remember()
		return
	}
	for i, seconds := range horizons {
		ahead := int(math.Round(seconds/step)) + around
		if around == 0 { // the newest step is longer, and the middle of it some time ago
			ahead++
		}
		n, at := len(means)-ahead, p.recent.end-int64(ahead)*p.recent.step
		learns := seconds >= step && n > 0 && (unlearned == nil || !unlearned(at))
		var d description
		learns = learns && d.describe(means[max(0, n-stepsOf(describedSeconds, step)):n], at, step, m)
		if learns && !p.season.incident(at, p.recent.end, d.base, rate) {
			p.horizons[i].learn(&d, seconds, &p.season, rate, clipped, &p.of)
		} else {
			p.horizons[i].asked = 0
		}
	}
	p.remember()
}

// remember keeps what is promised now.
func (p *Past) remember() {
	for i, seconds := range horizons {
		p.horizons[i].remember(p.recent.end, seconds, &p.season, &p.of)
	}
}

// release lets go of the instances that were asked for at the look before, after which there was none.
func (p *Past) release() {
	for i := range p.horizons {
		p.horizons[i].asked = 0
	}
}

// recall returns what the past tells of the loads of a run, for a number of ticks from the newest one.
func (p *Pipeline) recall(in *Input, loads []series.Load, ahead float64) decide.Expectation {
	past := in.Past
	if !past.Fits(&p.params) || past.tooOld(in.Now) {
		return decide.Expectation{}
	}
	w := &p.window
	each := max(1, int(past.recent.step/w.Step))
	loads = loads[len(loads)%each:]
	end := w.Tick(w.Last) + w.Step
	begin := end - int64(len(loads))*w.Step
	step := float64(each) * float64(w.Step) / 1000
	most := stepsOf(describedSeconds, step)
	p.steps = append(p.steps[:0], past.recent.before(begin, most)...)
	for ; len(loads) > 0; loads = loads[each:] {
		p.steps = append(p.steps, series.Mean(loads[:each]))
	}
	var d description
	if !d.describe(p.steps[max(0, len(p.steps)-most):], end, step, p.memory) {
		return decide.Expectation{}
	}
	seconds := ahead * float64(w.Step) / 1000
	return past.expect(&d, in.Now, seconds, p.options.decide.Lateness)
}
