package pods

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// shown is the maximum number of names or series in a message.
const shown = 5

// suffixes are the series that a family has beside its own name, and their types.
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
	labels map[string]string
	as     source.Type
}

// pick returns the reading of the selected series from a page that was requested at a time.
func (s *selection) pick(p *page, at time.Time) (pipeline.Sample, error) {
	all, err := p.series(s.metric)
	if err != nil {
		return pipeline.Sample{}, err
	}
	if len(all) == 0 {
		return pipeline.Sample{}, s.missing(p)
	}
	if err := s.checkType(p.types); err != nil {
		return pipeline.Sample{}, err
	}
	one, err := s.one(all)
	if err != nil {
		return pipeline.Sample{}, err
	}
	sample := pipeline.Sample{T: at.UnixMilli(), V: one.GetUntyped().GetValue()}
	if one.TimestampMs != nil {
		sample.T = one.GetTimestampMs()
	}
	if math.IsNaN(sample.V) || math.IsInf(sample.V, 0) {
		return pipeline.Sample{}, fmt.Errorf("metric %q is %v: must be a finite number", s.metric, sample.V)
	}
	return sample, nil
}

// one returns the only series that has the labels.
func (s *selection) one(all []*dto.Metric) (*dto.Metric, error) {
	var matching []*dto.Metric
	for _, m := range all {
		if s.matches(m) {
			matching = append(matching, m)
		}
	}
	switch {
	case len(matching) == 1:
		return matching[0], nil
	case len(matching) == 0:
		return nil, fmt.Errorf("metric %q has no series that matchLabels %s match, only %s", s.metric, labelText(s.labels), listSeries(all))
	case len(s.labels) == 0:
		return nil, fmt.Errorf("metric %q has %d series: %s; matchLabels must leave one", s.metric, len(matching), listSeries(matching))
	default:
		return nil, fmt.Errorf("metric %q has %d series that matchLabels %s match: %s; they must leave one",
			s.metric, len(matching), labelText(s.labels), listSeries(matching))
	}
}

// matches returns whether a series has the labels. An absent label equals an empty one, as in Prometheus.
func (s *selection) matches(m *dto.Metric) bool {
	for name, value := range s.labels {
		i := slices.IndexFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == name })
		if i < 0 && value != "" || i >= 0 && m.GetLabel()[i].GetValue() != value {
			return false
		}
	}
	return true
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
		return fmt.Errorf("metric %q is a %s: must be a gauge or a counter, such as %q of it", s.metric, family, s.metric+"_count")
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
	names := strings.Split(strings.TrimSuffix(string(p.names), "\n"), "\n")
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(commonPrefix(b, s.metric), commonPrefix(a, s.metric))
	})
	names = names[:min(shown, len(names))]
	for i := range names {
		names[i] = fmt.Sprintf("%.100q", names[i])
	}
	if more := p.count - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("metric %q is not served; the endpoint serves %s", s.metric, strings.Join(names, ", "))
}

func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// listSeries shows the labels of some series.
func listSeries(all []*dto.Metric) string {
	var out []string
	for _, m := range all[:min(shown, len(all))] {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		out = append(out, labelText(labels))
	}
	if more := len(all) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// labelText writes labels as Prometheus does, sorted by name.
func labelText(labels map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, fmt.Sprintf("%s=%.100q", name, labels[name]))
	}
	return "{" + strings.Join(out, ",") + "}"
}
