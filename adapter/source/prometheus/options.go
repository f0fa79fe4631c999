package prometheus

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/foresail/foresail/internal/promapi"
)

// Options of a Source; the zero value is usable.
type Options struct {
	// Servers says which servers may be asked, and with which credentials. nil = any, without credentials.
	Servers *promapi.Servers
	// Timeout is how long a query may take at most, answer included. Those of short intervals are given up earlier: after
	// two intervals, but not before 5 s. 0 = 10 s.
	Timeout time.Duration
	// MaxBackoff is the longest that a server is not asked while it fails, unless the interval is longer. 0 = 30 s.
	MaxBackoff time.Duration
	// Concurrency is how many queries are under way at one server at most. 0 = 8.
	Concurrency int
	// MaxSeries is how many series an answer may have. 0 = 10,000.
	MaxSeries int
	// MaxBytes is how long an answer may be. Up to twenty times as much memory is needed while it is decoded; of those
	// longer than 4 MiB, one is at once. 0 = 32 MiB.
	MaxBytes int64
	// UserAgent is sent with each query. "" = foresail.
	UserAgent string
	// Now is the clock. nil = time.Now.
	Now func() time.Time
	// Registerer takes the source's own metrics; nil = none.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 30*time.Second)
	o.Concurrency = max(1, cmp.Or(o.Concurrency, 8))
	o.MaxSeries = cmp.Or(o.MaxSeries, 10_000)
	o.MaxBytes = cmp.Or(o.MaxBytes, 32<<20)
	o.UserAgent = cmp.Or(o.UserAgent, "foresail")
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// timeout is how long a query of an interval may take.
func (o *Options) timeout(interval time.Duration) time.Duration {
	return min(o.Timeout, max(2*interval, 5*time.Second))
}
