package fluid

import (
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

	ProxyDelay time.Duration // from a pod's readiness until requests reach it; 0 = at once
	SlowStart  time.Duration // for how long after that its share grows, from a tenth to all of it; 0 = all of it at once

	// Exact has as many requests arrive in each second as Load says of its beginning, for loads that are counts of seconds
	// themselves: chance has its part in them already, and between two of them there is nothing.
	Exact bool

	// Unclipped has Busy be what a pod was asked to do, even where that is more than it can: a scaler then sees requests,
	// in units of a pod's capacity, and not utilisation.
	Unclipped bool
}

const (
	second = 1000

	// startupSpread is how far the start-up time of a pod may be off the average, uniformly.
	startupSpread = 0.15
	// slowStartShare is the share of a pod with which slow start begins.
	slowStartShare = 0.1

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

	now          int64
	dealt        int64 // the end of the last second that was dealt
	rate         float64
	pods         []*lab.Pod // in order of creation, with those that ended lately
	alive        int        // of pods, those that have not ended
	created      int        // ever
	target       int
	rose, fell   int64
	shares       []share              // scratch
	waiting      map[*lab.Pod]float64 // work that pods have not come to, in seconds
	delay, ramps int64                // ProxyDelay and SlowStart in ms
}

// share is the part of the requests that a pod is dealt.
type share struct {
	pod    *lab.Pod
	weight float64
}

var _ lab.World = (*World)(nil)

// New returns a world at time 0.
func New(c Config) *World {
	w := &World{
		config:   c,
		arrivals: lab.Random(c.Seed, "arrivals"), deal: lab.Random(c.Seed, "deal"), startups: lab.Random(c.Seed, "startups"),
		target: c.Warm, rose: -1, fell: -1,
		waiting: map[*lab.Pod]float64{},
		delay:   c.ProxyDelay.Milliseconds(), ramps: c.SlowStart.Milliseconds(),
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
	w.shares = w.shares[:0]
	total := 0.0
	for _, p := range w.pods {
		if weight := w.weight(p, t); weight > 0 {
			w.shares = append(w.shares, share{p, weight})
			total += weight
		}
	}
	for _, s := range w.shares {
		n := requests
		if s.weight < total {
			n = binomial(w.deal, requests, s.weight/total)
		}
		requests, total = requests-n, total-s.weight
		s.pod.Requests.Add(t, n)
		s.pod.Busy.Add(t, w.work(s.pod, n/w.config.Capacity))
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

// work adds work to what a pod has to do and returns how busy that keeps it for a second, in seconds. What it does not come
// to waits, up to what clients have the patience for.
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

// weight is how much of a whole pod's share a pod gets at a time.
func (w *World) weight(p *lab.Pod, t int64) float64 {
	if !w.isKnown(p, t) {
		return 0
	}
	age := t - p.Ready - w.delay
	if p.Ready == 0 || age >= w.ramps { // a pod that was there from the start has been for long
		return 1
	}
	return slowStartShare + (1-slowStartShare)*float64(age)/float64(w.ramps)
}

// isKnown tells whether a pod is ready and the proxy knows that.
func (w *World) isKnown(p *lab.Pod, t int64) bool {
	return p.IsReady(t) && (p.Ready == 0 || p.Ready+w.delay <= t)
}

// tidy lets go of what nobody looks at any more.
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
		if w.isKnown(p, w.dealt-second) && p.Ended == lab.Never {
			s.Ready++
		}
	}
	return s
}
