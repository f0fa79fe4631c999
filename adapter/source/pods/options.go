package pods

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a Source; the zero value is usable.
type Options struct {
	// Concurrency is how many scrapes are in flight at most. Half of it is for endpoints that are slow or failing. An
	// endpoint that answers within 5 ms takes 5 ms of a slot each interval. 0 = 1024; the least is 2.
	Concurrency int
	// Timeout is how long a scrape may take, answer included. 0 = its interval. A longer one hears from pods that are
	// overloaded, less often than once an interval.
	Timeout time.Duration
	// MaxBackoff is the longest that an endpoint which keeps failing is left alone, unless its interval is longer.
	// 0 = 5 s.
	MaxBackoff time.Duration
	// MaxBodyBytes is the largest answer that is read. 0 = 16 MiB.
	MaxBodyBytes int64
	// UserAgent is sent with each scrape. "" = foresail.
	UserAgent string
	// Registerer takes the source's own metrics; nil = none.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() Options {
	o.Concurrency = max(2, cmp.Or(o.Concurrency, 1024))
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 5*time.Second)
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, 16<<20)
	o.UserAgent = cmp.Or(o.UserAgent, "foresail")
	return o
}
