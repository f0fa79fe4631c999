// Package threshold finds how much load a pod can have before its users wait, from measurements of both.
package threshold

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// Fewest measurements an answer is made from.
	Fewest = 30
	// fewestSlow and fewestFast are how many of them must be above and below the limit.
	fewestSlow, fewestFast = 5, 10
	// toldApart is how well a metric must tell slow moments from others: below, it is not load of
	// this kind that makes users wait.
	toldApart = 0.7
	draws     = 500
	blocks    = 40
	confident = 0.9
	rowCount  = 8
)

// Measurement is the load of a pod at a time, in the unit of the metric, and the latency then.
type Measurement struct {
	At            time.Time
	Load, Latency float64
}

// Question asks for the most load at which the latency is above a limit in no more than a share of
// the measurements.
type Question struct {
	Measurements []Measurement // in any order
	Limit        float64       // in the unit of the latency
	Share        float64       // 0 to 1
	Seed         uint64        // of the interval
}

// Outcome is what the measurements say.
type Outcome string

// The outcomes.
const (
	Found      Outcome = "Found"
	NeverSlow  Outcome = "NeverSlow"  // no load was high enough to tell
	AlwaysSlow Outcome = "AlwaysSlow" // not even the lowest load was low enough
	Unrelated  Outcome = "Unrelated"  // slow moments have other causes than this load
)

// Answer is the load that was found. Threshold and its interval are NaN unless it was.
type Answer struct {
	Outcome      Outcome
	Measurements int
	Slow         int     // of them above the limit
	Lowest, Most float64 // load
	// Threshold is the most load at which a pod still serves its users in time, and Low and High
	// where it lies with 90% confidence.
	Threshold, Low, High float64
	// ToldApart is how often a slow moment has more load than one that is not, of all pairs of
	// both: 1 always, 0.5 by chance.
	ToldApart float64
	Rows      []Row
}

// Row is a part of the measurements, by load.
type Row struct {
	From   float64 `json:"from"` // load
	To     float64 `json:"to"`
	Count  int     `json:"measurements"`
	Slow   int     `json:"aboveObjective"`
	Median float64 `json:"medianSeconds"`
	P95    float64 `json:"p95Seconds"`
}

// Find answers a question. It returns an error if there are too few measurements, or one is no number.
func Find(q Question) (*Answer, error) {
	if len(q.Measurements) < Fewest {
		return nil, fmt.Errorf("%d measurements that have both a load and a latency: at least %d are needed",
			len(q.Measurements), Fewest)
	}
	for _, m := range q.Measurements {
		if math.IsNaN(m.Load+m.Latency) || math.IsInf(m.Load+m.Latency, 0) || m.Load < 0 || m.Latency < 0 {
			return nil, fmt.Errorf("load %v with latency %v at %s: must be finite, 0 or more", m.Load, m.Latency,
				m.At.UTC().Format(time.RFC3339))
		}
	}
	byLoad := slices.SortedFunc(slices.Values(q.Measurements), func(a, b Measurement) int {
		return cmp.Or(cmp.Compare(a.Load, b.Load), a.At.Compare(b.At))
	})
	a := &Answer{
		Measurements: len(byLoad), Lowest: byLoad[0].Load, Most: byLoad[len(byLoad)-1].Load,
		Threshold: math.NaN(), Low: math.NaN(), High: math.NaN(), ToldApart: math.NaN(),
		Rows: rows(byLoad, q.Limit),
	}
	for _, m := range byLoad {
		if m.Latency > q.Limit {
			a.Slow++
		}
	}
	if a.Slow < fewestSlow {
		a.Outcome = NeverSlow
		return a, nil
	}
	if a.Measurements-a.Slow < fewestFast {
		a.Outcome = AlwaysSlow
		return a, nil
	}
	a.ToldApart = toldApartBy(byLoad, q.Limit)
	found := most(byLoad, &q)
	switch {
	case a.ToldApart < toldApart:
		a.Outcome = Unrelated
	case math.IsNaN(found):
		a.Outcome = AlwaysSlow
	case found >= a.Most:
		a.Outcome = NeverSlow
	default:
		a.Outcome, a.Threshold = Found, found
		a.Low, a.High = interval(&q, a)
	}
	return a, nil
}

// most returns the most load at which the share of slow measurements is not above that of the
// question, NaN if it is at any load. That share rises with the load and never falls: an isotonic
// regression, by pooling neighbours that contradict it. So some slow moments at a low load, such as
// a deployment, count little among many others.
func most(byLoad []Measurement, q *Question) float64 {
	type pool struct {
		to        float64
		slow, all float64
	}
	var pools []pool
	for _, m := range byLoad {
		p := pool{to: m.Load, all: 1}
		if m.Latency > q.Limit {
			p.slow = 1
		}
		// Measurements of one load are one.
		for n := len(pools); n > 0 && (pools[n-1].to == p.to ||
			pools[n-1].slow*p.all >= p.slow*pools[n-1].all); n = len(pools) {
			p = pool{p.to, pools[n-1].slow + p.slow, pools[n-1].all + p.all}
			pools = pools[:n-1]
		}
		pools = append(pools, p)
	}
	found := math.NaN()
	for _, p := range pools {
		if p.slow > q.Share*p.all {
			break
		}
		found = p.to
	}
	return found
}

// toldApartBy is the share of pairs of a slow measurement and another in which the slow one has
// more load; half of those with as much.
func toldApartBy(byLoad []Measurement, limit float64) float64 {
	ordered, fast, slow := 0.0, 0.0, 0.0
	for i := 0; i < len(byLoad); {
		fastHere, slowHere := 0.0, 0.0
		load := byLoad[i].Load
		for ; i < len(byLoad) && byLoad[i].Load == load; i++ {
			if byLoad[i].Latency > limit {
				slowHere++
			} else {
				fastHere++
			}
		}
		ordered += slowHere * (fast + fastHere/2)
		fast += fastHere
		slow += slowHere
	}
	return ordered / (fast * slow)
}

// interval draws parts of the time again and again, as what is measured in one minute is much like
// that of the next.
func interval(q *Question, a *Answer) (low, high float64) {
	byTime := slices.SortedFunc(slices.Values(q.Measurements), func(x, y Measurement) int { return x.At.Compare(y.At) })
	parts := slices.Collect(slices.Chunk(byTime, max(1, len(byTime)/blocks)))
	r := rand.New(rand.NewPCG(q.Seed, 1)) // #nosec G404 -- a seed reproduces it
	var found []float64
	for range draws {
		var drawn []Measurement
		for range parts {
			drawn = append(drawn, parts[r.IntN(len(parts))]...)
		}
		slices.SortFunc(drawn, func(x, y Measurement) int { return cmp.Compare(x.Load, y.Load) })
		if at := most(drawn, q); math.IsNaN(at) {
			found = append(found, a.Lowest)
		} else {
			found = append(found, at)
		}
	}
	slices.Sort(found)
	tail := int((1 - confident) / 2 * draws)
	return found[tail], found[draws-1-tail]
}

// rows are parts of the measurements with about as many each.
func rows(byLoad []Measurement, limit float64) (out []Row) {
	for part := range rowCount {
		m := byLoad[part*len(byLoad)/rowCount : (part+1)*len(byLoad)/rowCount]
		r := Row{From: m[0].Load, To: m[len(m)-1].Load, Count: len(m)}
		latencies := make([]float64, len(m))
		for i, x := range m {
			latencies[i] = x.Latency
			if x.Latency > limit {
				r.Slow++
			}
		}
		slices.Sort(latencies)
		r.Median, r.P95 = latencies[len(m)/2], latencies[min(len(m)-1, len(m)*95/100)]
		out = append(out, r)
	}
	return out
}

// Rounded is a threshold to use: the lower end of what was found, to two digits and down.
func (a *Answer) Rounded() float64 {
	if !(a.Low > 0) {
		return math.NaN()
	}
	unit := math.Pow(10, math.Floor(math.Log10(a.Low))-1)
	return math.Floor(a.Low/unit+1e-9) * unit
}
