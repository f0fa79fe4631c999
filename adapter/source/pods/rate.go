package pods

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/share"
)

const (
	// maxScrapeRate is how many scrapes a second a namespace gets at most, and each core for all
	// namespaces together: those of 10,000 pods with the default interval, which take about one core.
	maxScrapeRate = 10_000
	// recountInterval is the time between two counts of the scrapes that namespaces request.
	recountInterval = time.Second
)

// pacing stretches the intervals of namespaces that request more scrapes than their share.
type pacing struct {
	counted time.Duration    // since Source.epoch; 0: never
	demand  map[string]int64 // thousandths of scrapes a second, by namespace
	limit   int64            // of each
}

// countDemand counts the scrapes that endpoints request, without those that no reader accepts.
func (p *pacing) countDemand(all queue, now time.Duration) {
	p.counted, p.demand = now, map[string]int64{}
	for _, e := range all {
		if e.hasAcceptingReader() {
			p.demand[e.key.pod.Namespace] += int64(1000 * time.Second / e.key.interval)
		}
	}
	demands := make([]int64, 0, len(p.demand))
	for _, d := range p.demand {
		demands = append(demands, min(d, 1000*maxScrapeRate))
	}
	total := int64(1000 * maxScrapeRate * runtime.GOMAXPROCS(0))
	p.limit = min(1000*maxScrapeRate, share.Level(total, demands))
}

// intervalFactor returns the number of intervals per scrape of an endpoint.
func (p *pacing) intervalFactor(e *endpoint) int64 {
	d := p.demand[e.key.pod.Namespace]
	if d <= p.limit || p.limit == 0 {
		return 1
	}
	return (d + p.limit - 1) / p.limit
}

// slowedError returns why endpoints of a namespace are scraped less often than configured; nil if they
// are not.
func (p *pacing) slowedError(e *endpoint) error {
	n := p.intervalFactor(e)
	if n == 1 {
		return nil
	}
	return fmt.Errorf("the namespace requests %d scrapes a second: must be at most %d, so each pod is scraped every %s instead of every %s; "+
		"longer intervals, or one path for several PredictedMetrics, need fewer",
		p.demand[e.key.pod.Namespace]/1000, p.limit/1000, time.Duration(n)*e.key.interval, e.key.interval)
}

// hasAcceptingReader reports whether any reader accepts samples.
func (e *endpoint) hasAcceptingReader() bool {
	return slices.ContainsFunc(e.readers.get().all, func(r *reader) bool { return !source.Refuses(r.sink) })
}

// reportSlowness passes a change of the reason why the endpoint is scraped less often to the sink.
func (r *reader) reportSlowness(slowed *slowness) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.slowed == slowed {
		return
	}
	if r.slowed != nil || slowed.err != nil {
		r.sink.SourceFailed(slowed.err)
	}
	r.slowed = slowed
}

// slowness is the reason why an endpoint is scraped less often than configured; err is nil if it is
// not.
type slowness struct{ err error }
