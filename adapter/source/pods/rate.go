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
	// maxRate is how many scrapes a second a namespace gets at most, and each core for all namespaces together: those of 10,000
	// pods with the default interval, which take about one core.
	maxRate = 10_000
	// recount is how often the scrapes that namespaces ask for are counted.
	recount = time.Second
)

// pacing stretches the intervals of namespaces that ask for more scrapes than their share.
type pacing struct {
	counted time.Duration    // since Source.epoch; 0: never
	demand  map[string]int64 // thousandths of scrapes a second, by namespace
	limit   int64            // of each
}

// count counts what the endpoints ask for that are read at all.
func (p *pacing) count(all queue, now time.Duration) {
	p.counted, p.demand = now, map[string]int64{}
	for _, e := range all {
		if e.desired() {
			p.demand[e.key.pod.Namespace] += int64(1000 * time.Second / e.key.interval)
		}
	}
	demands := make([]int64, 0, len(p.demand))
	for _, d := range p.demand {
		demands = append(demands, min(d, 1000*maxRate))
	}
	total := int64(1000 * maxRate * runtime.GOMAXPROCS(0))
	p.limit = min(1000*maxRate, share.Level(total, demands))
}

// stretch returns in how many intervals an endpoint is scraped once.
func (p *pacing) stretch(e *endpoint) int64 {
	d := p.demand[e.key.pod.Namespace]
	if d <= p.limit || p.limit == 0 {
		return 1
	}
	return (d + p.limit - 1) / p.limit
}

// slowed returns why endpoints of a namespace are scraped less often than they should be, nil if they are not.
func (p *pacing) slowed(e *endpoint) error {
	n := p.stretch(e)
	if n == 1 {
		return nil
	}
	return fmt.Errorf("the namespace asks for %d scrapes a second: must be at most %d, so each pod is scraped every %s instead of every %s; "+
		"longer intervals, or one path for several PredictedMetrics, need fewer",
		p.demand[e.key.pod.Namespace]/1000, p.limit/1000, time.Duration(n)*e.key.interval, e.key.interval)
}

// desired reports whether any reader takes what is read.
func (e *endpoint) desired() bool {
	return slices.ContainsFunc(e.readers.get().all, func(r *reader) bool { return !source.Refuses(r.sink) })
}

// report gives a reader's sink the reason why it is read less often than it should be, when that has changed.
func (r *reader) report(slowed *slowness) {
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

// slowness is why an endpoint is scraped less often than it should be; the error is nil if it is not.
type slowness struct{ err error }
