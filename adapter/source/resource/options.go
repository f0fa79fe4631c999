package resource

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
)

// Options of a Source; only Client must be set.
type Options struct {
	// Client lists PodMetrics. Its rate limit must allow for one list per namespace and interval.
	Client metricsclient.PodMetricsesGetter
	// Timeout is how long a list may take. 0 = 10 s.
	Timeout time.Duration
	// MaxBackoff is the longest time between two tries while lists fail, 1 s at least. 0 = 1 min.
	MaxBackoff time.Duration
	// Concurrency is how many lists are under way at most. 0 = 8.
	Concurrency int
	// Registerer takes the source's own metrics; nil = none.
	Registerer prometheus.Registerer
	// Now is the clock that ages of pods are reckoned by; nil = time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, time.Minute)
	o.Concurrency = cmp.Or(o.Concurrency, 8)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
