package prometheus

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/pipeline"
)

// answer is the answer of a server, shared by the subscriptions of a group. It does not change. All series are of the
// namespace of the group.
type answer struct {
	series    []*series // in order of pods
	unlabeled []*series // those without the label of a pod
	foreign   int       // series of other namespaces, or of none: nothing else is kept of them
	newest    int64     // the time of the newest sample of a pod (ms)
	partial   string    // warnings of the server: series may be missing; "" = none
	spacing   int64     // the longest of the series' spacings (ms), 0 = unknown
}

func (a *answer) empty() bool { return len(a.series)+len(a.unlabeled) == 0 }

// series is one time series of an answer.
type series struct {
	pod     string
	labels  model.Metric
	samples []pipeline.Sample // in order, their times unique, at least one; may be NaN or infinite
	spacing int64             // the median time between two (ms), 0 with less than two
	err     error             // why none of the samples can be taken, or nil
}

func (s *series) first() int64 { return s.samples[0].T }
func (s *series) last() int64  { return s.samples[len(s.samples)-1].T }

var errTime = errors.New("a sample is dated outside of the years 1970 to 9999")

// latestTime is the end of the year 9999 (ms).
const latestTime = 253402300799999

// newAnswer converts a matrix, and keeps parts of it.
func (g *group) newAnswer(matrix model.Matrix, warnings []string) (*answer, error) {
	a := &answer{partial: promapi.Short(strings.Join(warnings[:min(promapi.Shown, len(warnings))], "; "))}
	var gaps []int64
	for _, stream := range matrix {
		if stream == nil || len(stream.Values)+len(stream.Histograms) == 0 {
			continue
		}
		if g.tenancy.Namespace(string(stream.Metric[model.LabelName(g.tenancy.NamespaceLabel)])) != g.key.namespace {
			a.foreign++
			continue
		}
		x := &series{labels: stream.Metric, pod: string(stream.Metric[model.LabelName(g.key.podLabel)])}
		var err error
		if gaps, err = x.read(stream, gaps); err != nil {
			return nil, err
		}
		a.spacing = max(a.spacing, x.spacing)
		if x.pod == "" {
			a.unlabeled = append(a.unlabeled, x)
		} else {
			a.series = append(a.series, x)
			a.newest = max(a.newest, x.last())
		}
	}
	slices.SortStableFunc(a.series, func(x, y *series) int { return strings.Compare(x.pod, y.pod) })
	return a, nil
}

// read takes the samples of a stream. It uses and returns a buffer.
func (s *series) read(stream *model.SampleStream, gaps []int64) ([]int64, error) {
	s.samples = make([]pipeline.Sample, 0, len(stream.Values))
	for _, v := range stream.Values {
		s.samples = append(s.samples, pipeline.Sample{T: int64(v.Timestamp), V: float64(v.Value)})
	}
	if len(s.samples) == 0 {
		s.err = errors.New("its samples are native histograms: must be numbers")
		s.samples = append(s.samples, pipeline.Sample{T: int64(stream.Histograms[0].Timestamp)})
	}
	if !slices.IsSortedFunc(s.samples, compareTime) {
		slices.SortStableFunc(s.samples, compareTime)
	}
	if s.first() < 0 || s.last() > latestTime {
		return gaps, errTime
	}
	gaps = gaps[:0]
	for i := 1; i < len(s.samples); i++ {
		gap := s.samples[i].T - s.samples[i-1].T
		if gap > 0 {
			gaps = append(gaps, gap)
		} else if s.samples[i].V != s.samples[i-1].V {
			s.err = fmt.Errorf("its series has two values for one time: %v and %v", s.samples[i-1].V, s.samples[i].V)
		}
	}
	if len(gaps)+1 < len(s.samples) {
		s.samples = slices.CompactFunc(s.samples, func(x, y pipeline.Sample) bool { return x.T == y.T })
	}
	s.spacing = median(gaps)
	return gaps, nil
}

func compareTime(x, y pipeline.Sample) int {
	switch {
	case x.T < y.T:
		return -1
	case x.T > y.T:
		return 1
	}
	return 0
}

// median returns the middle one of the numbers, the lower of two, 0 without any. It changes their order.
func median(x []int64) int64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	return x[(len(x)-1)/2]
}

// join merges the series of one pod, which is possible if each begins after the previous one has ended: after a restart
// a pod may have other labels. Overlapping series are duplicates, and either may be the load. Two that are less than
// apart (ms) from each other may overlap with a sample each.
func join(all []*series, apart int64) (*series, error) {
	if len(all) == 1 {
		return all[0], all[0].err
	}
	slices.SortFunc(all, func(x, y *series) int { return compareTime(x.samples[0], y.samples[0]) })
	joined := *all[0]
	joined.samples = slices.Clone(joined.samples)
	for i, x := range all {
		if x.err != nil {
			return nil, x.err
		}
		if i == 0 {
			continue
		}
		if x.first()-joined.last() < apart {
			return nil, fmt.Errorf("the pod has %d series, which differ in %s: must be one", len(all), differing(all))
		}
		joined.samples = append(joined.samples, x.samples...)
	}
	return &joined, nil
}

// differing lists the labels in which series differ, with some of their values.
func differing(all []*series) string {
	names := map[model.LabelName]struct{}{}
	for _, x := range all {
		for name := range x.labels {
			names[name] = struct{}{}
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		values := map[string]struct{}{}
		for _, x := range all {
			values[string(x.labels[name])] = struct{}{}
		}
		if len(values) > 1 {
			out = append(out, fmt.Sprintf("%.100s (%s)", name, promapi.Some(slices.Sorted(maps.Keys(values)))))
		}
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
}
