package remotewrite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
)

// Config selects the series of a subscription.
type Config struct {
	Metric      string
	Type        source.Type
	PodLabel    string            // whose value is the name of the pod; "" with Whole
	Whole       bool              // the one series is the load of the target as a whole
	MatchLabels map[string]string // labels that the series have; they may have others
}

// validate returns all problems of c, joined.
func (c *Config) validate() error {
	var problems []error
	reject := func(field string, value any, accepted string) {
		problems = append(problems, fmt.Errorf("%s: %q: must be %s", field, value, accepted))
	}
	if !model.LegacyValidation.IsValidMetricName(c.Metric) {
		reject("metric", c.Metric, "the name of a Prometheus metric")
	}
	if c.Type != source.Gauge && c.Type != source.Counter {
		reject("type", c.Type, "Gauge or Counter")
	}
	if !c.Whole && !model.LegacyValidation.IsValidLabelName(c.PodLabel) {
		reject("podLabel", c.PodLabel, "the name of a Prometheus label, such as pod")
	}
	for _, name := range slices.Sorted(maps.Keys(c.MatchLabels)) {
		if !model.LegacyValidation.IsValidLabelName(name) {
			reject("matchLabels", name, "the name of a Prometheus label")
		}
	}
	return errors.Join(problems...)
}

func (c *Config) equal(d *Config) bool {
	return c.Metric == d.Metric && c.Whole == d.Whole && c.Type == d.Type &&
		c.PodLabel == d.PodLabel && maps.Equal(c.MatchLabels, d.MatchLabels)
}

// others describes series that lack the labels.
func (c *Config) others() string {
	if c.Whole {
		return "series arrived with other labels"
	}
	return "series of its pods arrived with other labels"
}

// selector returns the series of a namespace that c selects, in Prometheus' syntax.
func (c *Config) selector(namespaceLabel, namespace string) string {
	var b strings.Builder
	b.WriteString(c.Metric)
	b.WriteByte('{')
	for _, name := range slices.Sorted(maps.Keys(c.MatchLabels)) {
		fmt.Fprintf(&b, "%s=%q, ", name, c.MatchLabels[name])
	}
	fmt.Fprintf(&b, "%s=%q", namespaceLabel, namespace)
	if !c.Whole {
		fmt.Fprintf(&b, ", %s=<the pod>", c.PodLabel)
	}
	b.WriteByte('}')
	return b.String()
}

// matches reports whether a series of the metric has the labels of c.
func (c *Config) matches(l decode.Labels) bool {
	for name, value := range c.MatchLabels {
		if l.Get(name) != value {
			return false
		}
	}
	return true
}
