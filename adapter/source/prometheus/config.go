package prometheus

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/promapi"
)

// MinInterval is the shortest interval between two queries.
const MinInterval = time.Second

// Config is a query to a server.
type Config struct {
	Address        string // the URL of the server, with a path if its API is below one
	Query          string // a selector, such as nodejs_eventloop_utilization{namespace="shop"}
	PodLabel       string // the label that names the pod of a series
	NamespaceLabel string // the label that names the namespace of that pod, where a series has it
	Type           source.Type
	Interval       time.Duration // between two queries
	Window         time.Duration // how far back the first answer reaches, two intervals more
}

// groupKey is what PredictedMetrics that share a query have in common.
type groupKey struct {
	address, query, podLabel, namespaceLabel string
	interval                                 time.Duration
}

func (c *Config) key() groupKey {
	return groupKey{c.Address, c.Query, c.PodLabel, c.NamespaceLabel, c.Interval}
}

// reach is the span of the first query.
func (c *Config) reach() time.Duration { return c.Window + 2*c.Interval }

// normalize gives equal configurations the same form.
func (c *Config) normalize() {
	c.Query = strings.TrimSpace(c.Query)
	if address, err := promapi.ParseAddress(c.Address); err == nil {
		c.Address = address
	}
}

// validate returns all problems of c, joined.
func (c *Config) validate() error {
	var problems []error
	refuse := func(field string, value any, accepted string) {
		problems = append(problems, fmt.Errorf("%s: %q: must be %s", field, value, accepted))
	}
	if _, err := promapi.ParseAddress(c.Address); err != nil {
		refuse("address", promapi.Redact(c.Address), promapi.AcceptedAddress)
	}
	if c.Query == "" {
		refuse("query", c.Query, "a selector such as "+exampleSelector)
	}
	if !model.UTF8Validation.IsValidLabelName(c.PodLabel) {
		refuse("podLabel", c.PodLabel, "the name of a Prometheus label")
	}
	if !model.UTF8Validation.IsValidLabelName(c.NamespaceLabel) {
		refuse("namespaceLabel", c.NamespaceLabel, "the name of a Prometheus label")
	}
	if c.Type != source.Gauge && c.Type != source.Counter {
		refuse("type", c.Type, "Gauge or Counter")
	}
	if c.Interval < MinInterval {
		refuse("interval", c.Interval, "at least "+MinInterval.String())
	}
	if c.Window < c.Interval {
		refuse("window", c.Window, "at least the interval")
	}
	return errors.Join(problems...)
}

const exampleSelector = `nodejs_eventloop_utilization{namespace="shop"}`

// acceptedQuery says which queries are accepted.
func (k *groupKey) acceptedQuery() string {
	return fmt.Sprintf("must be a plain selector such as %s (for the rate of a counter, with type Counter; for an expression, that of a recording rule whose series have the label %s)",
		exampleSelector, k.podLabel)
}
