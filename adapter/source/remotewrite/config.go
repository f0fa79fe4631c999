package remotewrite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
