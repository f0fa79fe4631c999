package prometheus

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/promapi"
)

// minInterval and maxInterval are what the API accepts as the interval between two queries.
const (
	minInterval = time.Second
	maxInterval = time.Hour
)

// maxReach is the longest span of a query: the longest interval, and two more.
const maxReach = 3 * maxInterval

// Config is a query to a server.
type Config struct {
	Address  string // the URL of the server, with a path if its API is below one
	Query    string // a selector, such as nodejs_eventloop_utilization{container="checkout"}
	PodLabel string // the label that names the pod of a series
	Whole    bool   // the series add up to the load of the target as a whole, and name none of its pods
	// OwnerLabel is the label that may name the pod that has a series, such as a gateway, with Whole.
	OwnerLabel string
	Type       source.Type
	Interval   time.Duration // between two queries

	// Target and TargetName are what scales the pods: their names follow from it. Only a history asks for them.
	Target     schema.GroupKind
	TargetName string

	Window time.Duration // how far back the first answer reaches, two intervals more
}

// groupKey identifies a query: PredictedMetrics with the same key share it.
type groupKey struct {
	address, namespace, query, podLabel string
	interval                            time.Duration
}

func (c *Config) key(namespace string) groupKey {
	return groupKey{c.Address, namespace, c.Query, c.PodLabel, c.Interval}
}

// reach is the span of the first query. The rest of a longer window comes with time.
func (c *Config) reach() time.Duration { return min(c.Window+2*c.Interval, maxReach) }

// normalize gives equal configurations the same form.
func (c *Config) normalize() {
	if address, err := promapi.ParseAddress(c.Address); err == nil {
		c.Address = address
	}
	if c.Whole {
		c.OwnerLabel, c.PodLabel = cmp.Or(c.PodLabel, c.OwnerLabel), "" // a label that no series has
	}
}

// validate returns an error unless the address is one that Foresail queries: rules of the API cannot tell, for example,
// that it has an encoded path. What else a query has to be is among these rules.
func (c *Config) validate() error {
	if _, err := promapi.ParseAddress(c.Address); err != nil {
		return fmt.Errorf("address: %q: must be %s", promapi.Redact(c.Address), promapi.AcceptedAddress)
	}
	return nil
}

// limit limits the query to the series of a namespace.
func (c *Config) limit(namespace string, t promapi.Tenancy) error {
	query, err := limitTo(c.Query, namespace, t)
	if err != nil {
		return fmt.Errorf("query: %.200q: %s: %w", c.Query, acceptedQuery(c.PodLabel, t.NamespaceLabel), err)
	}
	c.Query = query
	return nil
}

// acceptedQuery says which queries are accepted.
func acceptedQuery(podLabel, namespaceLabel string) string {
	if podLabel == "" {
		return fmt.Sprintf(`must be a plain selector such as gateway_requests_total{service="checkout"}, whose series are added up (for the rate of a counter, with `+
			"type Counter; for an expression, that of a recording rule whose series have the label %s)", namespaceLabel)
	}
	return fmt.Sprintf(`must be a plain selector such as nodejs_eventloop_utilization{container="checkout"} (for the rate of a counter, with type Counter; `+
		"for an expression, that of a recording rule whose series have the labels %s and %s)", podLabel, namespaceLabel)
}
