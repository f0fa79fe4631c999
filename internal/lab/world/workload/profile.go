// Package workload has the loads of simulations: profiles that are drawn by formula, and traces.
package workload

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/internal/lab"
)

// Profile is a load and how long it is played.
type Profile struct {
	Name string
	Load lab.Load
	Span lab.Span
}

// profiles draw the profiles by name. Rates are for pods that can do some 125 requests per second,
// of which there may be four to twenty.
var profiles = map[string]func(seed uint64) (line, lab.Span){
	"ramp":     ramp,
	"spike":    spike,
	"sine":     sine,
	"sawtooth": sawtooth,
	"noise":    noise,
	"bursts":   bursts,
	"drift":    drift,
	"falling":  falling,
}

// Names returns the names of the profiles that are drawn by formula, the two that the paper measured first.
func Names() []string {
	return []string{"ramp", "spike", "sine", "sawtooth", "noise", "bursts", "drift", "falling"}
}

// New draws the profile of a name. Only noise, bursts and drift are random; the others are the same
// for every seed.
func New(name string, seed uint64) (Profile, error) {
	draw, ok := profiles[name]
	if !ok {
		return Profile{}, fmt.Errorf("profile: %q: must be one of %s", name, strings.Join(Names(), ", "))
	}
	load, span := draw(seed)
	return Profile{Name: name, Load: load, Span: span}, nil
}

// line is a load that runs straight from point to point and is level before the first and after the last.
type line []point

type point struct {
	t    int64 // ms
	rate float64
}

// Rate implements [lab.Load].
func (l line) Rate(t int64) float64 {
	i, exact := slices.BinarySearchFunc(l, t, func(p point, t int64) int { return int(p.t - t) })
	switch {
	case exact:
		return l[i].rate
	case i == 0:
		return l[0].rate
	case i == len(l):
		return l[i-1].rate
	}
	a, b := l[i-1], l[i]
	return a.rate + (b.rate-a.rate)*float64(t-a.t)/float64(b.t-a.t)
}

// end returns when the last point is, or 0 without one.
func (l line) end() int64 {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1].t
}

// to goes on to a rate, that it comes to after some seconds.
func (l line) to(rate, seconds float64) line {
	return append(l, point{l.end() + int64(math.Round(seconds*1000)), rate})
}

// start is level for a lead-in.
func start(rate float64) line {
	return line{{0, rate}, {lead.Milliseconds(), rate}}
}

// climb is a lead-in for profiles that begin with more than the pods that a run starts with can
// bear: there is time to scale up before what counts.
func climb(rate float64) line { return line{{0, 100}}.to(rate, 120).to(rate, climbing.Seconds()-120) }

const (
	lead     = time.Minute
	climbing = 4 * time.Minute
)

// ramp is the paper's: a lull, a rise to 800 requests per second in two and a half minutes, and a plateau.
func ramp(uint64) (line, lab.Span) {
	return start(100).to(10, 30).to(800, 150).to(800, 90), lab.Span{Lead: lead, Length: 270 * time.Second}
}

// spike is the paper's: from nothing to 800 requests per second in ten seconds.
func spike(uint64) (line, lab.Span) {
	return start(0).to(800, 10).to(800, 120), lab.Span{Lead: lead, Length: 130 * time.Second}
}

// sine is three waves of five minutes between 100 and 700 requests per second.
func sine(uint64) (line, lab.Span) {
	const length, period = 900, 300
	l := start(100)
	for s := 1; s <= length; s++ {
		l = l.to(400-300*math.Cos(2*math.Pi*float64(s)/period), 1)
	}
	return l, lab.Span{Lead: lead, Length: length * time.Second}
}

// sawtooth rises for three minutes and falls at once, five times.
func sawtooth(uint64) (line, lab.Span) {
	l := start(100)
	for range 5 {
		l = l.to(700, 175).to(100, 5)
	}
	return l, lab.Span{Lead: lead, Length: 900 * time.Second}
}

// noise is level but for what differs from second to second, by 10% in the standard deviation.
func noise(seed uint64) (line, lab.Span) {
	const length = 600
	r := lab.Random(seed, "profile/noise")
	l := climb(400)
	for range length {
		l = l.to(400*max(0, 1+0.1*r.NormFloat64()), 1)
	}
	return l, lab.Span{Lead: climbing, Length: length * time.Second}
}

// bursts are 20 to 60 seconds of 500 requests per second between 40 to 120 seconds of 100.
func bursts(seed uint64) (line, lab.Span) {
	const length = 900 * time.Second
	r := lab.Random(seed, "profile/bursts")
	l := start(100)
	for l.end() < (lead + length).Milliseconds() {
		l = l.to(100, 40+80*r.Float64()).to(500, 2).to(500, 20+40*r.Float64()).to(100, 2)
	}
	return l, lab.Span{Lead: lead, Length: length}
}

// drift climbs from 150 to 700 requests per second in twenty minutes, and wanders off by some 5% on the way.
func drift(seed uint64) (line, lab.Span) {
	const length, step = 1200, 10
	r := lab.Random(seed, "profile/drift")
	l := start(150)
	off := 0.0
	for s := step; s <= length; s += step {
		off = 0.9*off + 0.02*r.NormFloat64()
		l = l.to((150+550*float64(s)/length)*max(0, 1+off), step)
	}
	return l, lab.Span{Lead: lead, Length: length * time.Second}
}

// falling is a minute of 700 requests per second, a fall to 100 in two minutes, and ten minutes of that.
func falling(uint64) (line, lab.Span) {
	l := climb(700).to(700, 60).to(100, 120).to(100, 600)
	return l, lab.Span{Lead: climbing, Length: 780 * time.Second}
}
