// Package score computes the figures of runs and their confidence intervals.
//
// Shortage and excess are those of SPEC RG's elasticity: the accuracy is how many pods were short
// or spare, the timeshare for how long. What is needed in a second is the fewest pods that keep the
// load of each at or below the threshold.
package score

import (
	"math"

	"github.com/foresail/foresail/internal/lab"
)

// Requests are the figures of a run on requests. They are of those that arrived in what counts, without the
// lead-in. Times are of all that were sent, whether they succeeded or not, as load generators report them.
type Requests struct {
	Sent, Errors, Dropped float64 // dropped ones were never sent: too many were under way
	Success               float64 // share of those sent
	Mean, P50, P90, P99   float64 // from being sent to the answer or the failure, in ms
}

// Figures are all of a run.
type Figures struct {
	Requests
	Pods
}

// Figure is one of the figures, by its name in files.
type Figure struct {
	Name     string
	Decimals int // that are worth writing down
	Of       func(Figures) float64
}

// All returns the figures there are: first those of the summary, in its order.
func All() []Figure {
	return append(Summary(), []Figure{
		{"sent", 2, func(f Figures) float64 { return f.Sent }},
		{"dropped", 2, func(f Figures) float64 { return f.Dropped }},
		{"short_pods", 4, func(f Figures) float64 { return f.Short() }},
		{"spare_pods", 4, func(f Figures) float64 { return f.Spare() }},
		{"above_threshold_minutes", 4, func(f Figures) float64 { return f.AboveThresholdMinutes }},
		{"saturated_minutes", 4, func(f Figures) float64 { return f.SaturatedMinutes }},
	}...)
}

// Success returns the figure that scalers are ranked by.
func Success() Figure { return Figure{"success", 6, func(f Figures) float64 { return f.Success }} }

// Summary returns the figures that a comparison begins with.
func Summary() []Figure {
	return []Figure{
		Success(),
		{"mean_ms", 2, func(f Figures) float64 { return f.Mean }},
		{"p50_ms", 2, func(f Figures) float64 { return f.P50 }},
		{"p90_ms", 2, func(f Figures) float64 { return f.P90 }},
		{"p99_ms", 2, func(f Figures) float64 { return f.P99 }},
		{"errors", 2, func(f Figures) float64 { return f.Errors }},
		{"pod_seconds", 2, func(f Figures) float64 { return f.Seconds }},
		{"under_s", 2, func(f Figures) float64 { return f.UnderSeconds }},
		{"over_s", 2, func(f Figures) float64 { return f.OverSeconds }},
		{"actions", 2, func(f Figures) float64 { return f.Actions }},
		{"reversals", 2, func(f Figures) float64 { return f.Reversals }},
	}
}

// reversalWithin is how soon, in ms, a change after one in the other direction is a reversal.
const reversalWithin = 5 * 60 * 1000

// saturation is the load, in pods' work for each pod, above which a pod cannot do its work.
const saturation = 1

// rounding is what may be missing from a whole number: 14.000000000001 pods are 14.
const rounding = 1e-9

// Need is what pods are needed for.
type Need struct {
	Threshold float64 // work offered to each pod, in pods; above 0
	Min, Max  int     // no fewer and no more pods are needed, whatever the load
}

// Pods returns how many pods some work needs.
func (n Need) Pods(offered float64) int {
	desired := math.Ceil(offered/n.Threshold - rounding)
	return int(max(float64(n.Min), min(desired, float64(n.Max))))
}

// AtMaximum reports whether a target is at its maximum under more work than that many pods hold.
// Pods that are above the threshold then are not too few because of their scaler.
func (n Need) AtMaximum(target int, offered float64) bool {
	return target >= n.Max && offered > n.Threshold*float64(n.Max)+rounding
}

// Pods are the figures of a run on pods. They are of what counts, without the lead-in. They can be added up.
type Pods struct {
	Length                float64 // seconds that were played
	Seconds               float64 // pods that existed, added up over seconds: what is paid for
	UnderSeconds          float64 // with fewer ready pods than needed
	OverSeconds           float64 // with more
	MissingSeconds        float64 // pods that were missing, added up over seconds
	SpareSeconds          float64 // pods that were too many, added up over seconds
	AboveThresholdMinutes float64 // seconds in which the load of a ready pod was above the threshold, divided by 60
	AtMaximumMinutes      float64 // the part of it in which no scaler could have helped, see [Need.AtMaximum]
	SaturatedMinutes      float64 // seconds in which the load was above what a pod can do, divided by 60
	Actions               float64 // changes of the target
	ScaleUps              float64 // those to more
	Reversals             float64 // changes within five minutes of one in the other direction
}

func (p *Pods) all() []*float64 {
	return []*float64{
		&p.Length, &p.Seconds, &p.UnderSeconds, &p.OverSeconds, &p.MissingSeconds, &p.SpareSeconds,
		&p.AboveThresholdMinutes, &p.AtMaximumMinutes, &p.SaturatedMinutes, &p.Actions, &p.ScaleUps, &p.Reversals,
	}
}

// Plus returns the figures of two runs together.
func (p Pods) Plus(o Pods) Pods {
	others := o.all()
	for i, v := range p.all() {
		*v += *others[i]
	}
	return p
}

// Per returns the mean of figures that are the sum of runs with so many seeds.
func (p Pods) Per(seeds int) Pods {
	for _, v := range p.all() {
		*v /= float64(seeds)
	}
	return p
}

// Hours returns the time that was played.
func (p Pods) Hours() float64 { return p.Length / 3600 }

// PodHours returns the hours of pods that are paid for.
func (p Pods) PodHours() float64 { return p.Seconds / 3600 }

// MeanPods returns the number of pods on average.
func (p Pods) MeanPods() float64 { return p.Seconds / p.Length }

// Short returns the number of pods that were missing on average over all of the time.
func (p Pods) Short() float64 { return p.MissingSeconds / p.Length }

// Spare returns the number of pods that were too many on average over all of the time.
func (p Pods) Spare() float64 { return p.SpareSeconds / p.Length }

// AboveThresholdShare returns the share of the time that was above the threshold.
func (p Pods) AboveThresholdShare() float64 { return p.AboveThresholdMinutes * 60 / p.Length }

// TooFewMinutes returns the minutes above the threshold in which the target could have had more pods.
func (p Pods) TooFewMinutes() float64 { return p.AboveThresholdMinutes - p.AtMaximumMinutes }

// Bill returns the cost of pods and of time above the threshold together.
func (p Pods) Bill(prices *Prices) float64 { return prices.Bill(p.PodHours(), p.AboveThresholdMinutes) }

// OfPods makes figures of a record. Its seconds must not be none.
func OfPods(r *lab.Record, need Need) Pods {
	var p Pods
	for _, s := range r.Seconds {
		p.Seconds += float64(s.Pods)
		needed := need.Pods(s.Offered)
		if s.Ready < needed {
			p.UnderSeconds++
		}
		if s.Ready > needed {
			p.OverSeconds++
		}
		p.MissingSeconds += float64(max(0, needed-s.Ready))
		p.SpareSeconds += float64(max(0, s.Ready-needed))
		if above(s, need.Threshold) {
			p.AboveThresholdMinutes++
			if need.AtMaximum(s.Target, s.Offered) {
				p.AtMaximumMinutes++
			}
		}
		if above(s, saturation) {
			p.SaturatedMinutes++
		}
	}
	p.Length = float64(len(r.Seconds))
	p.AboveThresholdMinutes, p.AtMaximumMinutes, p.SaturatedMinutes = p.AboveThresholdMinutes/60, p.AtMaximumMinutes/60, p.SaturatedMinutes/60
	for _, c := range r.Changes {
		if c.To > c.From {
			p.ScaleUps++
		}
	}
	p.Actions, p.Reversals = float64(len(r.Changes)), float64(reversals(r.Changes))
	return p
}

// above reports whether ready pods had more than some work each. Without a ready pod any work is too much.
func above(s lab.Second, work float64) bool {
	return s.Offered > work*float64(s.Ready)+rounding
}

func reversals(changes []lab.Change) int {
	n := 0
	for i := 1; i < len(changes); i++ {
		before, now := changes[i-1], changes[i]
		if (before.To > before.From) != (now.To > now.From) && now.T-before.T <= reversalWithin {
			n++
		}
	}
	return n
}
