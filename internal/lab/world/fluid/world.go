// Package fluid is a world of which only the amount of work is simulated, and no single request:
// enough to play weeks of traffic in seconds.
//
// Pods are identical. The requests of a second are a Poisson draw, dealt to the ready pods at
// random. A pod with more of them than its capacity is busy all second and does the rest later, ten
// seconds of work at most. Seconds are whole: pods become ready on one, and a second is dealt when
// it begins. A look in the middle of a second sees the part of it that has passed.
package fluid

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresail/foresail/internal/lab"
)

// Config says what a world is like.
type Config struct {
	Load     lab.Load
	Seed     uint64
	Min, Max int
	Warm     int           // pods that are ready at the start
	Capacity float64       // requests per second that keep one pod busy; above 0
	Startup  time.Duration // from the order to create a pod until it is ready, on average; see startupSpread

	// Exact makes exactly as many requests arrive in each second as Load has at its beginning, for
	// loads that are counts of seconds.
	Exact bool

	// Unclipped has Busy be what a pod was asked to do, even where that is more than it can: a
	// scaler then sees requests, in units of a pod's capacity, and not utilisation.
	Unclipped bool
}

const (
	second = 1000

	// startupSpread is how far the start-up time of a pod may be off the average, uniformly.
	startupSpread = 0.15

	// patience is how much work may wait at a pod, in seconds of it: clients give up after that.
	patience = 10

	// keepMeters is how far back meters can be read.
	keepMeters = 15 * 60 * second
	// keepEnded is how long views show pods that have ended.
	keepEnded = 10 * 60 * second
	// tidyEach is how often what is older is let go of.
	tidyEach = 60 * second
)

// LongestStartup is how long the slowest pod takes to become ready, of pods that take so long on average.
func LongestStartup(mean time.Duration) time.Duration {
	return time.Duration((1+startupSpread)*float64(mean)) + time.Second/2
}

// World implements lab.World.
type World struct {
	config   Config
	arrivals *rand.Rand // requests of each second
	deal     *rand.Rand // which pods they go to
	startups *rand.Rand

	now        int64
	dealt      int64 // the end of the last second that was dealt
	rate       float64
	pods       []*lab.Pod // in order of creation, with those that ended lately
	alive      int        // of pods, those that have not ended
	created    int        // ever
	target     int
	rose, fell int64
	ready      []*lab.Pod           // scratch
	waiting    map[*lab.Pod]float64 // work that pods have not come to, in seconds
}

var _ lab.World = (*World)(nil)

// New returns a world at time 0.
func New(c Config) *World {
	w := &World{
		config:   c,
		arrivals: lab.Random(c.Seed, "arrivals"), deal: lab.Random(c.Seed, "deal"),
		startups: lab.Random(c.Seed, "startups"),
		target:   c.Warm, rose: -1, fell: -1,
		waiting: map[*lab.Pod]float64{},
	}
	for range c.Warm {
		w.create().Ready = 0
	}
	return w
}

// Advance implements lab.World.
func (w *World) Advance(to int64) {
	for w.dealt < to {
		w.playSecond(w.dealt)
		w.dealt += second
	}
	w.now = to
}

// playSecond deals the requests of the second that begins at t.
func (w *World) playSecond(t int64) {
	if t%tidyEach == 0 {
		w.tidy(t)
	}
	requests := w.arrive(t)
	w.ready = w.ready[:0]
	for _, p := range w.pods {
		if p.IsReady(t) {
			w.ready = append(w.ready, p)
		}
	}
	for i, p := range w.ready {
		n := requests
		if left := len(w.ready) - i; left > 1 {
			n = binomial(w.deal, requests, 1/float64(left))
		}
		requests -= n
		p.Requests.Add(t, n)
		p.Busy.Add(t, w.work(p, n/w.config.Capacity))
	}
}

// arrive notes the rate of the second that begins at t and returns how many requests arrive in it.
func (w *World) arrive(t int64) float64 {
	if w.config.Exact {
		w.rate = max(0, w.config.Load.Rate(t))
		return math.Round(w.rate)
	}
	w.rate = max(0, w.config.Load.Rate(t+second/2))
	return poisson(w.arrivals, w.rate)
}

// work adds work to what a pod has to do and returns how busy that keeps it for a second, in
// seconds. What it does not come to waits, up to what clients have the patience for.
func (w *World) work(p *lab.Pod, asked float64) float64 {
	if w.config.Unclipped {
		return asked
	}
	asked += w.waiting[p]
	done := min(1, asked)
	if rest := min(asked-done, patience); rest > 0 {
		w.waiting[p] = rest
	} else {
		delete(w.waiting, p)
	}
	return done
}

// tidy drops what is out of view.
func (w *World) tidy(t int64) {
	w.pods = slices.DeleteFunc(w.pods, func(p *lab.Pod) bool { return p.Ended < t-keepEnded })
	maps.DeleteFunc(w.waiting, func(p *lab.Pod, _ float64) bool { return p.Ended <= t })
	for _, p := range w.pods {
		p.Busy.Forget(t - keepMeters)
		p.Requests.Forget(t - keepMeters)
	}
}

// View implements lab.World.
func (w *World) View() *lab.View {
	return &lab.View{
		Now: w.now, Pods: w.pods, Target: w.target, Rose: w.rose, Fell: w.fell, Min: w.config.Min, Max: w.config.Max,
	}
}

// Second implements lab.World. Pods that were removed in the course of the second do not count.
func (w *World) Second() lab.Second {
	s := lab.Second{Rate: w.rate, Offered: w.rate / w.config.Capacity, Pods: w.alive, Target: w.target}
	for _, p := range w.pods {
		if p.IsReady(w.dealt-second) && p.Ended == lab.Never {
			s.Ready++
		}
	}
	return s
}

// SetTarget implements lab.World.
func (w *World) SetTarget(n int) {
	switch {
	case n > w.target:
		w.rose = w.now
	case n < w.target:
		w.fell = w.now
	}
	w.target = n
	for w.alive < n {
		w.create()
	}
	for i := len(w.pods) - 1; i >= 0 && w.alive > n; i-- {
		if p := w.pods[i]; p.Ended == lab.Never && p.Ready > w.now {
			p.Ready = lab.Never
			w.end(p)
		}
	}
	for i := len(w.pods) - 1; i >= 0 && w.alive > n; i-- {
		if p := w.pods[i]; p.Ended == lab.Never {
			w.end(p)
		}
	}
}

// create orders a pod, which becomes ready on a whole second.
func (w *World) create() *lab.Pod {
	startup := float64(w.config.Startup.Milliseconds()) * (1 + startupSpread*(2*w.startups.Float64()-1))
	ready := (w.now + int64(startup) + second/2) / second * second
	p := &lab.Pod{ID: fmt.Sprintf("pod-%06d", w.created), Created: w.now, Ready: max(ready, w.dealt), Ended: lab.Never}
	w.pods = append(w.pods, p)
	w.created++
	w.alive++
	return p
}

func (w *World) end(p *lab.Pod) {
	p.Ended = w.now
	w.alive--
}

// Recorded returns what may have been recorded of a load before a run: in each second as many
// requests as chance has then.
func Recorded(load lab.Load, seed uint64) lab.Load { return recorded{load, seed} }

type recorded struct {
	lab.Load
	seed uint64
}

// Rate implements lab.Load. Each second has chance of its own, so that seconds can be read in any order.
func (r recorded) Rate(t int64) float64 {
	begin := lab.AtOrBefore(t, 0, second)
	chance := lab.Random(r.seed, fmt.Sprintf("arrivals in the second from %d", begin))
	return poisson(chance, max(0, r.Load.Rate(begin+second/2)))
}

// manyEvents is the number of events, on average, from which a draw of their number is taken from a
// normal distribution, whose skew would be below a sixth.
const manyEvents = 40

// poisson draws the number of events of which there are mean on average.
func poisson(r *rand.Rand, mean float64) float64 {
	if mean >= manyEvents {
		return max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64()))
	}
	u, p, k := r.Float64(), math.Exp(-mean), 0.0
	for sum := p; u >= sum && p > 0; sum += p {
		k++
		p *= mean / k
	}
	return k
}

// binomial draws how many of n events happen, each with the probability p.
func binomial(r *rand.Rand, n, p float64) float64 {
	switch q := 1 - p; {
	case n <= 0 || p <= 0:
		return 0
	case q <= 0:
		return n
	case p > q:
		return n - binomial(r, n, q)
	case n*p >= manyEvents:
		return min(n, max(0, math.Round(n*p+math.Sqrt(n*p*q)*r.NormFloat64())))
	default:
		return invert(r.Float64(), n, p)
	}
}

// invert returns the least number that a binomial variable exceeds with a probability of at most 1 − u.
func invert(u, n, p float64) float64 {
	odds, k := p/(1-p), 0.0
	at := math.Pow(1-p, n)
	for sum := at; u >= sum && k < n; sum += at {
		k++
		at *= odds * (n - k + 1) / k
	}
	return k
}
