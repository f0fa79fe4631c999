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
	// ordinary is the factor of the ordinary load up to which a reading counts whatever the others are.
	ordinary = 2
	// far is the factor between two readings up to which one repeats the other. On recorded loads no reading above
	// ordinary is further from all others.
	far = 4
	// deep is the factor by which a reading of a single instance must be below its neighbors to need another one.
	deep = 5
	// repeats is the number of readings of the same instance, before and after, one of which may repeat a reading.
	repeats = 8
)

// Scale is what readings are compared with before anything is known of a load.
type Scale struct {
	Model   pipeline.Model
	Unit    float64       // the load that is ordinary: of an instance at the threshold, or of the whole target
	Spacing time.Duration // between two readings of an instance
	Counted bool          // readings are rates of a counter, so that few events between two of them are a high one
	Highest float64       // no reading is higher; +Inf if that is not known
}

// fewEvents is the number of events between two readings of a counter that is never far above anything: at a load of a
// request in a minute, a second with one reads as sixty times the load.
const fewEvents = 5

// bound returns the load up to which a reading is ordinary.
func (s *Scale) bound() float64 {
	b := ordinary * s.Unit
	if s.Counted && s.Spacing > 0 {
		b = max(b, s.Model.Load(fewEvents/s.Spacing.Seconds()))
	}
	return b
}

// Refusal is a reading that a Filter has removed.
type Refusal struct {
	Instance string
	Sample   pipeline.Sample
	Newest   bool    // no later reading of the instance is known, so that the next one may still repeat it
	Factor   float64 // of the load that is ordinary; 0: the reading is far below those before and after it
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.Factor == 0 {
		return fmt.Sprintf("the reading %.6g of %s is far below the ones before and after it: it is taken for an error, "+
			"and counts if another reading of the pod, or of half of the pods, repeats it",
			r.Sample.V, time.UnixMilli(r.Sample.T).UTC().Format(time.TimeOnly))
	}
	return fmt.Sprintf("the reading %.6g of %s is %.3g times as high as the threshold, and no other one is near it: "+
		"it is taken for an error, and counts once another reading of the pod, or of half of the pods, repeats it",
		r.Sample.V, time.UnixMilli(r.Sample.T).UTC().Format(time.TimeOnly), r.Factor)
}

// Filter removes readings that are far from everything else. The zero value is ready; it keeps memory from call to
// call.
//
// A load counts if
//   - it is at most twice the ordinary load, or a few events of a counter;
//   - another reading of the same instance repeats it, among the eight before and the eight after it;
//   - it is at most four times a reading of any instance in the window that was repeated;
//   - readings of half of the instances, and of two at least, repeat it at the same time.
//
// A reading repeats another one if neither is more than four times the other.
//
// So a jump that all instances show counts at once, one of a single instance with its second reading, and one reading
// that nothing repeats never counts.
//
// Of a target with one instance, or that is read as a whole, a reading that is at most a fifth of its neighbors is
// removed as well, if
//   - no other one is as low, among the eight before and the eight after it, and
//   - the fall is more than five times the steps between these, and more than chance for events of a counter.
//
// The newest one has one neighbor, so that a fall counts with its second reading. Among several instances a low reading
// is not judged: the others may have taken over the load.
type Filter struct {
	suspects []suspect
	loads    []float64
	refusals []Refusal
}

// suspect is a reading that its own instance does not repeat.
type suspect struct {
	instance, at int
	t            int64
	load         float64
	counts       bool
}

// Apply removes readings from the samples of instances, which it may overwrite, and returns what it has removed until
// the next call. Samples are in order of time, and were accepted by [Limits].
func (f *Filter) Apply(all []pipeline.Instance, s Scale) []Refusal {
	f.refusals = f.refusals[:0]
	if highest := s.Model.PerInstance(s.bound(), 1); s.Highest > highest && anyAbove(all, highest) {
		f.dropHigh(all, s)
	}
	if only := onlyActive(all); only >= 0 {
		f.dropLow(all, only, s)
	}
	return f.refusals
}

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

// onlyActive returns the instance that is being read if there is no other one, and otherwise -1.
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

// dropHigh removes readings that are far above everything else.
func (f *Filter) dropHigh(all []pipeline.Instance, s Scale) {
	known := f.find(all, s.Model, s.bound())
	f.suspects = slices.DeleteFunc(f.suspects, func(x suspect) bool { return x.load <= far*known })
	f.vote(max(2, (active(all)+1)/2), s.Spacing.Milliseconds())
	f.remove(all, s.Unit)
}

// dropLow removes readings of an instance that are far below their neighbors.
func (f *Filter) dropLow(all []pipeline.Instance, i int, s Scale) {
	f.suspects = f.suspects[:0]
	samples := all[i].Samples
	for k := 1; k < len(samples); k++ {
		if deep*samples[k].V <= samples[k-1].V && alone(samples, k, &s) {
			f.suspects = append(f.suspects, suspect{instance: i, at: k, t: samples[k].T})
		}
	}
	f.remove(all, 0)
}

const (
	// manyEvents is the number of events of a counter between two readings that do not stay away by chance.
	manyEvents = 25
	// minSteps is the number of steps between readings that say how much these vary.
	minSteps = 3
)

// alone reports whether the k-th reading, which is far below the one before it, is so for no reason that is known.
func alone(samples []pipeline.Sample, k int, s *Scale) bool {
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

// active returns the number of instances that are being read.
func active(all []pipeline.Instance) (n int) {
	for i := range all {
		if all[i].End == 0 && len(all[i].Samples) > 0 {
			n++
		}
	}
	return n
}

// find collects the loads above bound that their own instance does not repeat. It returns the highest one that is
// repeated, 0 without one.
func (f *Filter) find(all []pipeline.Instance, m pipeline.Model, bound float64) (known float64) {
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

// repeated reports whether a reading next to the k-th is between low and high.
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

// vote accepts suspects that enough instances show at about the same time.
func (f *Filter) vote(needed int, spacing int64) {
	slices.SortFunc(f.suspects, func(a, b suspect) int { return cmp.Compare(a.t, b.t) })
	for rest := f.suspects; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].t-rest[n-1].t <= spacing {
			n++
		}
		if n >= needed {
			f.voteAmong(rest[:n], needed)
		}
		rest = rest[n:]
	}
}

// voteAmong is vote for suspects of about the same time. An instance has one of them: two would repeat each other.
func (f *Filter) voteAmong(group []suspect, needed int) {
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

// remove takes the suspects that do not count out of the samples. Their factor is of unit, 0 without one. Refusals are
// in order of instance and time.
func (f *Filter) remove(all []pipeline.Instance, unit float64) {
	slices.SortFunc(f.suspects, func(a, b suspect) int {
		return cmp.Or(cmp.Compare(a.instance, b.instance), cmp.Compare(a.at, b.at))
	})
	for rest := f.suspects; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].instance == rest[0].instance {
			n++
		}
		f.removeOf(&all[rest[0].instance], rest[:n], unit)
		rest = rest[n:]
	}
}

// removeOf is remove for one instance. It moves each sample once, as thousands of a long window may be removed.
func (f *Filter) removeOf(of *pipeline.Instance, suspects []suspect, unit float64) {
	samples := of.Samples
	kept, from := samples[:0], 0
	for _, x := range suspects {
		if x.counts {
			continue
		}
		r := Refusal{Instance: of.ID, Sample: samples[x.at], Newest: x.at == len(samples)-1}
		if unit > 0 {
			r.Factor = x.load / unit
		}
		f.refusals = append(f.refusals, r)
		kept = append(kept, samples[from:x.at]...)
		from = x.at + 1
	}
	of.Samples = append(kept, samples[from:]...)
}
