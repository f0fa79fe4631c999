package pods

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// Limits for messages.
const (
	shown     = 5  // names or series
	maxLabels = 20 // of a series
)

// suffixes are the series of a family in addition to its own name, with their types.
var suffixes = []struct {
	suffix   string
	families []string
	is       source.Type
}{
	{"_total", []string{"counter"}, source.Counter},
	{"_sum", []string{"histogram", "summary"}, source.Counter},
	{"_count", []string{"histogram", "summary"}, source.Counter},
	{"_bucket", []string{"histogram"}, source.Counter},
	{"_bucket", []string{"gaugehistogram", "gauge_histogram"}, source.Gauge},
	{"_gsum", []string{"gaugehistogram"}, source.Gauge},
	{"_gcount", []string{"gaugehistogram"}, source.Gauge},
}

// selection is the series that a reader selects on a page.
type selection struct {
	metric string
	labels []labels.Label // by name; a series may have others
	as     source.Type
	key    string // the same for all that select the same
}

func newSelection(metric string, matchLabels map[string]string, as source.Type) *selection {
	s := &selection{metric: metric, as: as}
	for _, name := range slices.Sorted(maps.Keys(matchLabels)) {
		s.labels = append(s.labels, labels.Label{Name: name, Value: matchLabels[name]})
	}
	s.key = fmt.Sprintf("%q %q %q", metric, as, s.labels)
	return s
}

// matches reports whether a series has the labels. An absent label equals an empty one, as in Prometheus.
func (s *selection) matches(series labels.Labels) bool {
	for _, l := range s.labels {
		if series.Get(l.Name) != l.Value {
			return false
		}
	}
	return true
}

// pick returns the reading of the i-th selection from a page whose answer began to arrive at a time.
func (p *page) pick(i int, at time.Time) (pipeline.Sample, error) {
	s, c := p.selected.selections[i], p.choices[i]
	m := p.metrics[s.metric]
	if m == nil {
		return pipeline.Sample{}, s.missing(p)
	}
	if m.err != nil {
		return pipeline.Sample{}, fmt.Errorf("metric %q cannot be read: %w", s.metric, m.err)
	}
	if err := s.checkType(p.types); err != nil {
		return pipeline.Sample{}, err
	}
	if c.series != 1 {
		return pipeline.Sample{}, s.notOne(m, c)
	}
	sample := pipeline.Sample{T: at.UnixMilli(), V: c.value}
	if c.timed {
		sample.T = c.time
	}
	if math.IsNaN(sample.V) || math.IsInf(sample.V, 0) {
		return pipeline.Sample{}, fmt.Errorf("metric %q is %v: must be a finite number", s.metric, sample.V)
	}
	return sample, nil
}

// notOne reports that several series have the labels, or none has.
func (s *selection) notOne(m *metric, c choice) error {
	switch {
	case c.series == 0:
		return fmt.Errorf("metric %q has no series that matchLabels %s match, only %s",
			s.metric, labelText(s.labels), list(m.shown, m.series))
	case len(s.labels) == 0:
		return fmt.Errorf("metric %q has %d series: %s; matchLabels must leave one", s.metric,
			m.series, list(m.shown, m.series))
	default:
		return fmt.Errorf("metric %q has %d series that matchLabels %s match: %s; they must leave one",
			s.metric, c.series, labelText(s.labels), list(c.shown, c.series))
	}
}

// checkType rejects reading a counter as a gauge and vice versa: a counter is no load, a gauge has no rate. Metrics
// without a declared type pass as either.
func (s *selection) checkType(declared map[string]string) error {
	is, family := s.typeOf(declared)
	switch {
	case is == "" || is == string(s.as):
		return nil
	case is == string(source.Counter) || is == string(source.Gauge):
		return fmt.Errorf("metric %q is a %s: type must be %s", s.metric, family, is)
	case is == "histogram" || is == "summary":
		return fmt.Errorf("metric %q is a %s: must be a gauge or a counter, such as %q of it",
			s.metric, family, s.metric+"_count")
	default:
		return fmt.Errorf("metric %q is of type %.40q: must be a gauge or a counter", s.metric, family)
	}
}

// typeOf returns the type of the metric, "" if it is not declared, and the type of its family.
func (s *selection) typeOf(declared map[string]string) (is, family string) {
	switch own := declared[s.metric]; own {
	case "gauge":
		return string(source.Gauge), own
	case "counter":
		return string(source.Counter), own
	case "", "untyped", "unknown":
	default:
		return own, own
	}
	for _, x := range suffixes {
		base, ok := strings.CutSuffix(s.metric, x.suffix)
		if ok && slices.Contains(x.families, declared[base]) {
			return string(x.is), strings.TrimPrefix(x.suffix, "_") + " of a " + declared[base]
		}
	}
	return "", ""
}

// missing reports that the page lacks the metric, and lists the most similar names.
func (s *selection) missing(p *page) error {
	if p.count == 0 {
		return errors.New("no metric is served")
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(p.names), "\n"), "\n") {
		similar := commonPrefix(name, s.metric)
		i := len(names)
		for i > 0 && commonPrefix(names[i-1], s.metric) < similar {
			i--
		}
		if i < shown {
			names = slices.Insert(names[:min(len(names), shown-1)], i, name)
		}
	}
	for i := range names {
		names[i] = fmt.Sprintf("%.100q", names[i])
	}
	return fmt.Errorf("metric %q is not served; the endpoint serves %s", s.metric, list(names, p.count))
}

func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// list writes the first of a number of things.
func list(first []string, count int) string {
	text := strings.Join(first, ", ")
	if more := count - len(first); more > 0 {
		text += fmt.Sprintf(", %d more", more)
	}
	return text
}

// seriesText writes the labels of a series, but for its metric.
func seriesText(series labels.Labels) string {
	var all []labels.Label
	series.Range(func(l labels.Label) {
		if l.Name != model.MetricNameLabel && len(all) <= maxLabels {
			all = append(all, l)
		}
	})
	return labelText(all)
}

// labelText writes labels as Prometheus does, without what is too long for a message.
func labelText(all []labels.Label) string {
	text := []byte{'{'}
	for i, l := range all {
		if i > 0 {
			text = append(text, ',')
		}
		if i == maxLabels {
			text = append(text, "…"...)
			break
		}
		text = fmt.Appendf(text, "%.100s=%.100q", l.Name, l.Value)
	}
	return string(append(text, '}'))
}
