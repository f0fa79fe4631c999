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
	// far is the factor by which a reading must exceed everything that is known for it to need another one that repeats it.
	// On recorded loads no reading exceeds it without being repeated.
	far = 5
	// repeats is the number of readings of the same pod, before and after, one of which may repeat a reading.
	repeats = 8
)

// Scale is what readings are compared with before anything is known of a load.
type Scale struct {
	Model   pipeline.Model
	Unit    float64       // the load that is ordinary: of an instance at the threshold, or of the whole target
	Spacing time.Duration // between two readings of an instance
	Counted bool          // readings are rates of a counter, so that few events between two of them are a high one
}

// fewEvents is the number of events between two readings of a counter that is never far above anything: at a load of a
// request in a minute, a second with one reads as sixty times the load.
const fewEvents = 5

// bound returns the load up to which a reading is ordinary.
func (s *Scale) bound() float64 {
	b := far * s.Unit
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
	Factor   float64 // of the load that is ordinary
}

// Error implements error.
func (r *Refusal) Error() string {
	return fmt.Sprintf("the reading %.6g of %s is %.3g times as high as the threshold, and no other one is near it: "+
		"it is taken for an error, and counts once another reading of the pod, or of half of the pods, repeats it",
		r.Sample.V, time.UnixMilli(r.Sample.T).UTC().Format(time.TimeOnly), r.Factor)
}

// Filter removes readings that are far above everything else. The zero value is ready; it keeps memory from call to call.
//
// A load counts if
//   - it is at most [far] times the ordinary load, or a few events of a counter;
//   - another reading of the same instance repeats it, among the eight before and the eight after it;
//   - it is at most far times a reading of any instance in the window that was repeated;
//   - readings of half of the instances, and of two at least, repeat it at the same time.
//
// A reading repeats another one if neither is more than far times the other.
//
// So a jump that all instances show counts at once, one of a single instance with its second reading, and one
// reading that nothing repeats never counts. A fall is not judged: it cannot exceed what the instance carried.
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

// Apply removes readings from the samples of instances, which it may overwrite, and returns what it has removed until the next call.
// Samples are in order of time, and were accepted by [Limits].
func (f *Filter) Apply(all []pipeline.Instance, s Scale) []Refusal {
	f.refusals = f.refusals[:0]
	bound := s.bound()
	if !anyAbove(all, s.Model.PerInstance(bound, 1)) {
		return nil
	}
	known := f.find(all, s.Model, bound)
	f.suspects = slices.DeleteFunc(f.suspects, func(x suspect) bool { return x.load <= far*known })
	if len(f.suspects) > 0 {
		f.vote(max(2, (active(all)+1)/2), s.Spacing.Milliseconds())
		f.remove(all, s.Unit)
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

// active returns the number of instances that are being read.
func active(all []pipeline.Instance) (n int) {
	for i := range all {
		if all[i].End == 0 && len(all[i].Samples) > 0 {
			n++
		}
	}
	return n
}

// find collects the loads above bound that their own instance does not repeat. It returns the highest one that is repeated, 0 without one.
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

// remove takes the suspects that do not count out of the samples.
func (f *Filter) remove(all []pipeline.Instance, unit float64) {
	for _, x := range f.suspects {
		if x.counts {
			continue
		}
		samples := all[x.instance].Samples
		f.refusals = append(f.refusals, Refusal{
			Instance: all[x.instance].ID, Sample: samples[x.at], Newest: x.at == len(samples)-1, Factor: x.load / unit,
		})
	}
	for _, x := range slices.Backward(f.suspects) { // in reverse order of time, so that the places of earlier ones stay
		if x.counts {
			continue
		}
		s := &all[x.instance].Samples
		*s = slices.Delete(*s, x.at, x.at+1)
	}
}
