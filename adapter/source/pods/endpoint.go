package pods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/localaddr"
	"github.com/foresail/foresail/pipeline"
)

// slowAfter is the longest response time of an endpoint that uses the slots of quick ones.
const slowAfter = 100 * time.Millisecond

// endpointKey identifies an endpoint: readers with the same key share its scrapes.
type endpointKey struct {
	pod      types.NamespacedName
	url      string // "" if the pod cannot be read
	problem  string // why it cannot
	ports    string // the named ports of the pod's containers, for errors
	interval time.Duration
}

// endpoint is one URL of one pod, read at one interval.
type endpoint struct {
	key     endpointKey
	problem error         // why it cannot be read whatever its pod does
	request *http.Request // as sent each time, but for the context; nil with a problem

	// Guarded by Source.mu.
	due   time.Duration // next, since Source.epoch
	index int           // in Source.queue

	readers readers
	slowed  atomic.Pointer[slowness] // replaced when it changes
	pace    int64                    // in how many intervals it is scraped once; guarded by Source.mu

	// busy is set while the endpoint waits for a slot or is read.
	busy atomic.Bool
	// suspect is set if the last scrape was slow or failed.
	suspect atomic.Bool
	// resume is the time, since Source.epoch, before which no scrape starts.
	resume atomic.Int64
	// failures counts failures in a row. Only scrapes use it, and there is one at a time.
	failures int
	// parse receives when the endpoint, which waits for a slot of Source.parsers, has one.
	parse chan struct{}

	mu     sync.Mutex
	closed bool
	cancel context.CancelFunc // ends the scrape under way, or the last one
}

// enter returns the context of a scrape, which ends when the endpoint is closed. It returns false if that has happened.
func (e *endpoint) enter(ctx context.Context) (context.Context, context.CancelFunc, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || ctx.Err() != nil {
		return nil, nil, false
	}
	ctx, e.cancel = context.WithCancel(ctx)
	return ctx, e.cancel, true
}

// close cancels the current scrape and prevents others.
func (e *endpoint) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.cancel != nil {
		e.cancel()
	}
}

// readers are all readers of an endpoint. Thousands may come and go between two scrapes, so their
// combined selection is computed only when a scrape needs it.
type readers struct {
	mu      sync.Mutex
	all     []*reader
	current *readerSet // nil after a change
}

func (r *readers) addReader(x *reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all, r.current = append(r.all, x), nil
}

// remove removes a reader, and returns how many are left.
func (r *readers) remove(x *reader) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.all, x); i >= 0 {
		r.all, r.current = slices.Delete(r.all, i, i+1), nil
	}
	return len(r.all)
}

func (r *readers) get() *readerSet {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil {
		r.current = newReaderSet(slices.Clone(r.all))
	}
	return r.current
}

// readerSet is the readers of one scrape with their combined selection. It is immutable.
type readerSet struct {
	all      []*reader
	selected *selectionSet
	choices  []int // which selection each reader has
}

func newReaderSet(all []*reader) *readerSet {
	r := &readerSet{all: all, choices: make([]int, len(all))}
	var selections []*selection
	index := map[string]int{}
	for i, x := range all {
		n, known := index[x.selection.key]
		if !known {
			n = len(selections)
			index[x.selection.key] = n
			selections = append(selections, x.selection)
		}
		r.choices[i] = n
	}
	r.selected = newSelectionSet(selections...)
	return r
}

// reader passes one series of one instance to one sink.
type reader struct {
	instance  string
	ip        string           // of the instance, when the endpoint was located
	ports     map[string]int32 // likewise
	selection *selection
	sink      source.Sink
	endpoint  *endpoint

	mu      sync.Mutex // held while the sink is called, so that none is after close
	closed  bool
	slowed  *slowness // that was reported; nil: none
	counter source.Rate
	read    time.Time // the last reading, zero before the first
}

// maxClockStep is the largest step of the clock between two readings of a counter from which a rate is
// computed.
const maxClockStep = time.Second / 10

// deliver passes a reading taken at a time to the sink; the value may be up to late older than that.
func (r *reader) deliver(sample pipeline.Sample, at time.Time, late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if !r.read.IsZero() && source.ClockStep(r.read, at).Abs() > maxClockStep {
		r.counter = source.Rate{} // the difference of their times is not the time between them
	}
	r.read = at
	if r.selection.as == source.Counter {
		// Over twice the lateness a rate is off by at most half, and the next answer may come right after a late one.
		minApart := max(r.endpoint.key.interval/2, 2*late)
		rate, ok := r.counter.Next(sample, minApart.Milliseconds())
		if !ok {
			r.sink.Append(r.instance) // the reading succeeded, though there is no rate yet
			return
		}
		sample = rate
	}
	r.sink.Append(r.instance, sample)
}

func (r *reader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.sink.Fail(r.instance, err)
	}
}

func (r *reader) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// locate returns the key of the endpoint of an instance for a configuration.
func locate(i podtracker.Instance, c *Config, allowLoopback bool) endpointKey {
	key := endpointKey{pod: i.Pod, interval: c.Interval, ports: numberedPorts(i)}
	if problem := localIP(i, allowLoopback); problem != "" {
		key.problem = problem
		return key
	}
	address, err := addressOf(i, c.Port)
	if err != nil {
		key.problem = err.Error()
		return key
	}
	u, err := c.endpointURL(address)
	if err != nil {
		key.problem = err.Error()
		return key
	}
	key.url = u.String()
	return key
}

// localIP returns why the IP of an instance cannot be a pod's. Without this check, anyone who can write
// the status of a pod could make Foresail read from the node.
func localIP(i podtracker.Instance, allowLoopback bool) string {
	if i.IP == "" {
		return ""
	}
	ip, _ := netip.ParseAddr(i.IP) // without one its kind is invalid
	kind := localaddr.Kind(ip)
	if kind == "" || kind == "loopback" && allowLoopback {
		return ""
	}
	return fmt.Sprintf("pod %s has the IP %.50s (%s): it is not scraped", i.Pod, i.IP, kind)
}

// addressOf returns the host and port of an instance.
func addressOf(i podtracker.Instance, port string) (string, error) {
	if i.IP == "" {
		return "", fmt.Errorf("pod %s has no IP", i.Pod)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err == nil {
		return net.JoinHostPort(i.IP, port), nil
	}
	number, ok := i.Ports[port]
	if !ok {
		return "", fmt.Errorf("pod %s has no container port named %q: it has %s", i.Pod, port, portNames(i))
	}
	return net.JoinHostPort(i.IP, strconv.Itoa(int(number))), nil
}

func portNames(i podtracker.Instance) string {
	if len(i.Ports) == 0 {
		return "none with a name"
	}
	return strings.Join(slices.Sorted(maps.Keys(i.Ports)), ", ")
}

// numberedPorts lists the named ports of an instance with their numbers.
func numberedPorts(i podtracker.Instance) string {
	var ports []string
	for _, name := range slices.Sorted(maps.Keys(i.Ports)) {
		ports = append(ports, fmt.Sprintf("%s (%d)", name, i.Ports[name]))
	}
	return strings.Join(ports, ", ")
}

// newEndpoint returns the endpoint of a key.
func newEndpoint(key endpointKey, userAgent string) *endpoint {
	e := &endpoint{key: key, index: -1, pace: 1, parse: make(chan struct{}, 1)}
	e.slowed.Store(&slowness{})
	if key.problem != "" {
		e.problem = errors.New(key.problem)
		return e
	}
	e.request, e.problem = http.NewRequest(http.MethodGet, key.url, http.NoBody)
	if e.problem == nil {
		e.request.Header.Set("Accept", accept)
		e.request.Header.Set("User-Agent", userAgent)
	}
	return e
}

// nextDue returns the first time after now that is in the endpoint's own phase, both since
// Source.epoch.
func (e *endpoint) nextDue(now time.Duration) time.Duration {
	phase := source.Phase(e.key.interval, e.key.pod.String(), e.key.url, e.key.problem)
	return now + source.UntilNext(now, phase, e.key.interval)
}
