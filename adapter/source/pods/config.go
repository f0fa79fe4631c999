package pods

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/foresail/foresail/adapter/source"
)

// MinInterval is the shortest interval between two scrapes of a pod.
const MinInterval = 100 * time.Millisecond

// Config selects what is read of each pod.
type Config struct {
	Port        string // a number, or the name of a container port
	Path        string // of the endpoint, with a query if it takes one
	Metric      string
	Type        source.Type
	MatchLabels map[string]string // labels that the one series to read has; it may have others
	Interval    time.Duration
}

// validate returns all problems of c, joined.
func (c *Config) validate() error {
	var problems []error
	refuse := func(field string, value any, accepted string) {
		problems = append(problems, fmt.Errorf("%s: %q: must be %s", field, value, accepted))
	}
	if number, err := strconv.Atoi(c.Port); err == nil {
		if len(validation.IsValidPortNum(number)) > 0 {
			refuse("port", c.Port, "a number from 1 to 65535")
		}
	} else if len(validation.IsValidPortName(c.Port)) > 0 {
		refuse("port", c.Port, "a number from 1 to 65535 or the name of a container port")
	}
	if _, err := c.target("host"); err != nil {
		refuse("path", c.Path, "a path that starts with / and has no #, such as /metrics")
	}
	if !model.LegacyValidation.IsValidMetricName(c.Metric) {
		refuse("metric", c.Metric, "the name of a Prometheus metric")
	}
	if c.Type != source.Gauge && c.Type != source.Counter {
		refuse("type", c.Type, "Gauge or Counter")
	}
	for _, name := range slices.Sorted(maps.Keys(c.MatchLabels)) {
		if !model.LegacyValidation.IsValidLabelName(name) {
			refuse("matchLabels", name, "the name of a Prometheus label")
		}
	}
	if c.Interval < MinInterval {
		refuse("interval", c.Interval, "at least "+MinInterval.String())
	}
	return errors.Join(problems...)
}

// target returns the URL of the endpoint on a host (with its port).
func (c *Config) target(host string) (*url.URL, error) {
	if !strings.HasPrefix(c.Path, "/") || strings.Contains(c.Path, "#") {
		return nil, errors.New("path does not start with / or has a fragment")
	}
	u, err := url.ParseRequestURI(c.Path)
	if err != nil {
		return nil, err
	}
	u.Scheme, u.Host = "http", host
	return u, nil
}

func (c *Config) equal(d *Config) bool {
	return c.Port == d.Port && c.Path == d.Path && c.Metric == d.Metric && c.Type == d.Type &&
		c.Interval == d.Interval && maps.Equal(c.MatchLabels, d.MatchLabels)
}
