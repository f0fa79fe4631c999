package score

import (
	"math"

	"github.com/foresail/foresail/internal/lab"
)

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
	wanted := math.Ceil(offered/n.Threshold - rounding)
	return int(max(float64(n.Min), min(wanted, float64(n.Max))))
}

// Pods are the figures of a run that tell of pods. They are of what counts, without the lead-in.
type Pods struct {
	Seconds          float64 // pods that existed, added up over seconds: what is paid for
	UnderSeconds     float64 // with fewer ready pods than needed
	OverSeconds      float64 // with more
	Short            float64 // pods that were missing, on average over all seconds
	Spare            float64 // pods that were too many, likewise
	ViolationMinutes float64 // seconds in which the load of a ready pod was above the threshold, divided by 60
	SaturatedMinutes float64 // seconds in which it was above what a pod can do, divided by 60
	Actions          float64 // changes of the target
	Reversals        float64 // changes within five minutes of one in the other direction
}

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
		p.Short += float64(max(0, needed-s.Ready))
		p.Spare += float64(max(0, s.Ready-needed))
		if above(s, need.Threshold) {
			p.ViolationMinutes++
		}
		if above(s, saturation) {
			p.SaturatedMinutes++
		}
	}
	n := float64(len(r.Seconds))
	p.Short, p.Spare = p.Short/n, p.Spare/n
	p.ViolationMinutes, p.SaturatedMinutes = p.ViolationMinutes/60, p.SaturatedMinutes/60
	p.Actions, p.Reversals = float64(len(r.Changes)), float64(reversals(r.Changes))
	return p
}

// above tells whether ready pods had more than some work each. Without a ready pod any work is too much.
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
