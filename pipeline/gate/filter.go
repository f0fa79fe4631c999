package gate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/pipeline"
)

const (
	// ordinary is the factor of the ordinary load up to which a reading is always accepted.
	ordinary = 2
	// far is the factor between two readings up to which one confirms the other. On recorded loads no reading
	// above ordinary is further from all others.
	far = 4
	// deep is the factor by which a reading of a single instance must be below its neighbors to need
	// confirmation.
	deep = 5
	// repeats is the number of readings of the same instance, before and after, that may confirm a reading.
	repeats = 8
)

// Scale is the reference that readings are compared with.
type Scale struct {
	Model   pipeline.Model
	Unit    float64       // the ordinary load: of an instance at the threshold, or of the whole target
	Spacing time.Duration // between two readings of an instance
	Counted bool          // readings are rates of a counter, so few events between two readings make a high rate
	Highest float64       // upper bound of readings; +Inf if that is not known
}

// fewEvents is the number of events between two readings of a counter up to which the rate is accepted. At one
// request per minute, a second with one request reads as sixty times the load.
const fewEvents = 5

// bound returns the load up to which a reading is ordinary.
func (s *Scale) bound() float64 {
	b := ordinary * s.Unit
	if s.Counted && s.Spacing > 0 {
		b = max(b, s.Model.Load(fewEvents/s.Spacing.Seconds()))
	}
	return b
}

// Outlier is a reading that a Filter has removed.
type Outlier struct {
	Instance string
	Sample   pipeline.Sample
	Newest   bool    // there is no later reading of the instance, so the next one may confirm it
	Factor   float64 // of the ordinary load; 0: the reading is far below its neighbors
}

// Error implements error.
func (r *Outlier) Error() string {
	if r.Factor == 0 {
		return fmt.Sprintf("the reading %.6g of %s is far below the ones before and after it: it is taken for an error, "+
			"and counts if another reading of the pod, or of half of the pods, repeats it",
			r.Sample.V, time.UnixMilli(r.Sample.T).UTC().Format(time.TimeOnly))
	}
	return fmt.Sprintf("the reading %.6g of %s is %.3g times as high as the threshold, and no other one is near it: "+
		"it is taken for an error, and counts once another reading of the pod, or of half of the pods, repeats it",
		r.Sample.V, time.UnixMilli(r.Sample.T).UTC().Format(time.TimeOnly), r.Factor)
}

// Filter removes outliers: readings that are far from all others. It reuses memory between calls; the zero value is
// ready to use.
//
// A reading is accepted if
//   - it is at most twice the ordinary load, or a few events of a counter;
//   - another reading of the same instance confirms it, among the eight before and the eight after it;
//   - it is at most four times a confirmed reading of any instance in the window; or
//   - readings of half of the instances, and of at least two, confirm it at the same time.
//
// A reading confirms another one if neither is more than four times the other.
//
// So a jump of all instances is accepted at once, a jump of a single instance with its second reading, and a single
// reading that no other confirms never is.
//
// If a target has one instance, or is measured as a whole, a reading of at most a fifth of its
// neighbors is removed too, if
//   - no other reading is as low, among the eight before and the eight after it, and
//   - the drop is more than five times the average step between these, and more than chance for events of a counter.
//
// The newest reading has only one neighbor, so a drop is accepted with its second reading. With several instances a low
// reading is always accepted: the others may have taken over the load.
type Filter struct {
	suspects []suspect
	loads    []float64
	outliers []Outlier
}

// suspect is a high reading that no other reading of its instance confirms.
type suspect struct {
	instance, at int
	t            int64
	load         float64
	counts       bool // it is accepted
}

// Apply removes outliers from the samples of instances, which it may overwrite, and returns them; they are
// valid until the next call. Samples must be sorted by time and accepted by [Limits].
func (f *Filter) Apply(all []pipeline.Instance, s Scale) []Outlier {
	f.outliers = f.outliers[:0]
	if highest := s.Model.PerInstance(s.bound(), 1); s.Highest > highest && anyAbove(all, highest) {
		f.dropHigh(all, s)
	}
	if only := onlyActive(all); only >= 0 {
		f.dropLow(all, only, s)
	}
	return f.outliers
}

// anyAbove reports whether any sample is above v.
func anyAbove(all []pipeline.Instance, v float64) bool {
	for i := range all {
		for _, x := range all[i].Samples {
			if x.V > v {
				return true
			}
		}
	}
	return false
}

// onlyActive returns the index of the instance that is read if there is only one, and otherwise -1.
func onlyActive(all []pipeline.Instance) int {
	only := -1
	for i := range all {
		switch {
		case all[i].End != 0 || len(all[i].Samples) == 0:
		case only >= 0:
			return -1
		default:
			only = i
		}
	}
	return only
}

// dropHigh removes readings that are far above all others.
func (f *Filter) dropHigh(all []pipeline.Instance, s Scale) {
	known := f.findSuspects(all, s.Model, s.bound())
	f.suspects = slices.DeleteFunc(f.suspects, func(x suspect) bool { return x.load <= far*known })
	f.acceptByMajority(max(2, (countActive(all)+1)/2), s.Spacing.Milliseconds())
	f.removeOutliers(all, s.Unit)
}

// dropLow removes readings of an instance that are far below their neighbors.
func (f *Filter) dropLow(all []pipeline.Instance, i int, s Scale) {
	f.suspects = f.suspects[:0]
	samples := all[i].Samples
	for k := 1; k < len(samples); k++ {
		if deep*samples[k].V <= samples[k-1].V && isIsolatedLow(samples, k, &s) {
			f.suspects = append(f.suspects, suspect{instance: i, at: k, t: samples[k].T})
		}
	}
	f.removeOutliers(all, 0)
}

const (
	// manyEvents is the number of events of a counter between two readings that do not fail to occur by chance.
	manyEvents = 25
	// minSteps is the minimum number of steps between readings from which their variation is estimated.
	minSteps = 3
)

// isIsolatedLow reports whether the k-th reading, which is far below the previous one, is also far below the
// next, and lower than the variation of its neighbors explains.
func isIsolatedLow(samples []pipeline.Sample, k int, s *Scale) bool {
	near := samples[k-1].V
	if k+1 < len(samples) {
		near = min(near, samples[k+1].V)
	}
	fall := near - samples[k].V
	if deep*samples[k].V > near || fall <= 0 || s.Counted && near*s.Spacing.Seconds() < manyEvents {
		return false
	}
	sum, steps := 0.0, 0
	for j := max(0, k-repeats); j <= min(k+repeats, len(samples)-1); j++ {
		switch {
		case j == k:
		case deep*samples[j].V <= near:
			return false
		case j > max(0, k-repeats) && j != k+1:
			sum += math.Abs(samples[j].V - samples[j-1].V)
			steps++
		}
	}
	return steps >= minSteps && fall*float64(steps) > deep*sum
}

// countActive returns the number of instances that are read.
func countActive(all []pipeline.Instance) (n int) {
	for i := range all {
		if all[i].End == 0 && len(all[i].Samples) > 0 {
			n++
		}
	}
	return n
}

// findSuspects collects the loads above bound that no other reading of their instance confirms. It returns the
// highest confirmed one; 0 without one.
func (f *Filter) findSuspects(all []pipeline.Instance, m pipeline.Model, bound float64) (known float64) {
	f.suspects = f.suspects[:0]
	lowest := m.PerInstance(bound, 1)
	for i := range all {
		samples := all[i].Samples
		for k, x := range samples {
			if x.V <= lowest {
				continue
			}
			load := m.Load(x.V)
			if repeated(samples, k, m.PerInstance(load/far, 1), m.PerInstance(load*far, 1)) {
				known = max(known, load)
				continue
			}
			f.suspects = append(f.suspects, suspect{instance: i, at: k, t: x.T, load: load})
		}
	}
	return known
}

// repeated reports whether one of the readings around the k-th is between low and high.
func repeated(samples []pipeline.Sample, k int, low, high float64) bool {
	for _, x := range samples[k+1 : min(len(samples), k+1+repeats)] {
		if low <= x.V && x.V <= high {
			return true
		}
	}
	for _, x := range samples[max(0, k-repeats):k] {
		if low <= x.V && x.V <= high {
			return true
		}
	}
	return false
}

// acceptByMajority accepts suspects that enough instances show at about the same time.
func (f *Filter) acceptByMajority(needed int, spacing int64) {
	slices.SortFunc(f.suspects, func(a, b suspect) int { return cmp.Compare(a.t, b.t) })
	for rest := f.suspects; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].t-rest[n-1].t <= spacing {
			n++
		}
		if n >= needed {
			f.acceptGroup(rest[:n], needed)
		}
		rest = rest[n:]
	}
}

// acceptGroup is acceptByMajority for suspects of about the same time. Each is of another instance: two of the
// same instance would confirm each other.
func (f *Filter) acceptGroup(group []suspect, needed int) {
	f.loads = f.loads[:0]
	for _, x := range group {
		f.loads = append(f.loads, x.load)
	}
	slices.Sort(f.loads)
	for i := range group {
		from, _ := slices.BinarySearch(f.loads, group[i].load/far)
		to, _ := slices.BinarySearch(f.loads, math.Nextafter(group[i].load*far, math.Inf(1)))
		group[i].counts = to-from >= needed
	}
}

// removeOutliers removes the suspects that were not accepted from the samples. Their Factor is relative to
// unit, or 0 if unit is 0. Outliers are sorted by instance and time.
func (f *Filter) removeOutliers(all []pipeline.Instance, unit float64) {
	slices.SortFunc(f.suspects, func(a, b suspect) int {
		return cmp.Or(cmp.Compare(a.instance, b.instance), cmp.Compare(a.at, b.at))
	})
	for rest := f.suspects; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].instance == rest[0].instance {
			n++
		}
		f.removeFromInstance(&all[rest[0].instance], rest[:n], unit)
		rest = rest[n:]
	}
}

// removeFromInstance is removeOutliers for one instance. It moves each sample only once, because thousands of a
// long window may be removed.
func (f *Filter) removeFromInstance(of *pipeline.Instance, suspects []suspect, unit float64) {
	samples := of.Samples
	kept, from := samples[:0], 0
	for _, x := range suspects {
		if x.counts {
			continue
		}
		r := Outlier{Instance: of.ID, Sample: samples[x.at], Newest: x.at == len(samples)-1}
		if unit > 0 {
			r.Factor = x.load / unit
		}
		f.outliers = append(f.outliers, r)
		kept = append(kept, samples[from:x.at]...)
		from = x.at + 1
	}
	of.Samples = append(kept, samples[from:]...)
}
