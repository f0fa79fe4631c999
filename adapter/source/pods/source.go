// Package pods is the source that reads every ready pod's own metrics endpoint, once per interval.
//
// PredictedMetrics that read the same endpoint of a pod at the same interval share its scrapes.
// Each endpoint has its own phase within the interval, which spreads the load, and is scraped at
// most once at a time: while one runs, those that are due are skipped. Slow and
// failing endpoints use slots of their own, a scrape that turns out to be slow moves to one, and
// endpoints that keep failing are scraped less often, so that they delay only each other. No
// namespace can take all slots, nor more scrapes a second than its share: beyond that its intervals
// are stretched. A scrape holds at most 128 KiB however long its page is, so slots bound memory
// too.
package pods

import (
	"net/http"
	"runtime"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
)

// Fleet is the pods of one target, which package podtracker tracks.
type Fleet interface {
	Active() []podtracker.Instance
	// Watch calls an observer, without holding locks, until stop is called.
	Watch(changed func()) (stop func())
}

// Source reads the metrics endpoints of pods. It is safe for concurrent use.
type Source struct {
	options   Options
	client    *http.Client
	telemetry *telemetry
	quick     *namespaceLimiter // of endpoints that answer at once
	slow      *namespaceLimiter // of those that are slow or failing
	parsers   *namespaceLimiter // of those of which a long answer is being parsed
	pages     sync.Pool
	epoch     time.Time
	scraping  sync.WaitGroup
	wake      chan struct{} // the head of the queue may be another one

	mu            sync.Mutex
	subscriptions map[types.NamespacedName]*subscription
	endpoints     map[endpointKey]*endpoint
	queue         queue
	pacing        pacing
}

// New returns a Source that reads nothing yet.
func New(o Options) *Source {
	o = o.withDefaults()
	return newSource(o, newTransport())
}

func newSource(o Options, transport http.RoundTripper) *Source {
	s := &Source{
		options:       o,
		client:        newClient(transport),
		telemetry:     newTelemetry(o.Registerer),
		pages:         sync.Pool{New: func() any { return newPage() }},
		epoch:         wholeMinute(time.Now()),
		wake:          make(chan struct{}, 1),
		subscriptions: map[types.NamespacedName]*subscription{},
		endpoints:     map[endpointKey]*endpoint{},
	}
	s.slow = newNamespaceLimiter(o.Concurrency / 2)
	s.quick = newNamespaceLimiter(o.Concurrency - o.Concurrency/2)
	s.parsers = newNamespaceLimiter(max(1, runtime.GOMAXPROCS(0)-1)) // one is left to everything else
	return s
}

// wholeMinute returns the last whole minute of the clock. Phases count from it, so that replicas read a pod at the same
// moments (if the interval divides a minute) and forecast from the same values.
func wholeMinute(now time.Time) time.Time {
	return now.Add(-now.Sub(now.Truncate(time.Minute))) // Truncate alone would lose the monotonic clock
}

// Set reads the active instances of a fleet for a sink, as c says, until the next Set or Remove of the key. Each
// instance is read from its start to its end in the fleet.
func (s *Source) Set(key types.NamespacedName, c Config, fleet Fleet, sink source.Sink) {
	added := newSubscription(s, c, fleet, sink)
	s.mu.Lock()
	old := s.subscriptions[key]
	if old.same(added) {
		s.mu.Unlock()
		return
	}
	s.subscriptions[key] = added
	s.mu.Unlock()
	added.begin()
	old.end() // after the other has begun, so that an endpoint of both stays connected
}

// Remove stops reading for a key. The sink is not called any more when it returns.
func (s *Source) Remove(key types.NamespacedName) {
	s.mu.Lock()
	old := s.subscriptions[key]
	delete(s.subscriptions, key)
	s.mu.Unlock()
	old.end()
}

// attachReader adds a reader to the endpoint of a key.
func (s *Source) attachReader(r *reader, key endpointKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.endpoints[key]
	if e == nil {
		e = newEndpoint(key, s.options.UserAgent)
		s.endpoints[key] = e
		e.due = e.nextDue(time.Since(s.epoch))
		s.queue.push(e)
		s.wakeUp()
	}
	r.endpoint = e
	e.readers.addReader(r)
}

// detachReader removes a reader from its endpoint. Its sink is not called any more when it returns.
func (s *Source) detachReader(r *reader) {
	s.mu.Lock()
	e := r.endpoint
	if e.readers.remove(r) == 0 {
		delete(s.endpoints, e.key)
		s.queue.remove(e)
		e.close()
	}
	s.mu.Unlock()
	r.close()
}

// wakeUp makes Run check the queue.
func (s *Source) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
