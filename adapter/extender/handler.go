package extender

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
)

// Prefix is the path that a scheduler is answered below: its urlPrefix ends in it, filterVerb is filter and
// prioritizeVerb is prioritize.
const Prefix = "/scheduler"

// What schedulers may have us hold at once, whoever they are. One scheduler asks one question after another.
const (
	// maxBody is the most that may be sent in a request, in bytes. It is a pod as large as any can be, and 50,000 names. What
	// is made of it is bounded by decode.
	maxBody = 8 << 20
	// maxBodies is how much of bodies is held, in bytes. What is sent beyond that is refused.
	maxBodies = 8 * maxBody
	// maxWorking is how many requests are worked on. The others wait.
	maxWorking = 8
	// pooledBody is the largest buffer that is kept for the next request, in bytes.
	pooledBody = 1 << 20
	// pooledNames is the longest list of names that is kept for the next request.
	pooledNames = 50_000
	// unknownNames is how many nodes may be asked about while it is not known how many there are.
	unknownNames = 50_000
)

// door answers what is asked over HTTP.
type door struct {
	rules     Rules
	now       func() time.Time
	workloads Workloads
	view      func() *view
	ledger    counter
	telemetry *telemetry
	trail     *trail
	waiting   *waiting
	log       *slog.Logger
	noted     atomic.Int64        // when it was last logged that a request cannot be answered, in Unix nanoseconds
	desks     sync.Pool           // of *desk
	bodies    *semaphore.Weighted // in bytes
	working   chan struct{}
}

// counter counts a pod on the nodes that it is likely to be bound to one of, for what it requests and for what it is
// expected to use, until it is asked about again or seen to be bound.
type counter interface {
	tentative(pod types.UID, n *node, requests, estimate use)
	forget(pod types.UID)
}

// newDoor returns the door of an Extender, with its metrics registered.
func newDoor(e *Extender, o Options) (*door, error) {
	t, err := newTelemetry(o.Registry, e)
	if err != nil {
		return nil, err
	}
	d := &door{
		rules: e.rules, now: e.now, workloads: o.Workloads, view: e.view, ledger: e,
		telemetry: t, trail: newTrail(maxTrail), waiting: newWaiting(), log: o.Log,
		bodies: semaphore.NewWeighted(maxBodies), working: make(chan struct{}, maxWorking),
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.desks.New = func() any { return new(desk) }
	return d, nil
}

// Handler answers a scheduler at Prefix/filter and Prefix/prioritize. What is asked otherwise than by POST is answered
// 405, a body that is not ExtenderArgs with names of nodes, or has more than a cluster, 400, one that is too large 413, and
// what comes while too much else is sent 503, and what we fail at 500. As a scheduler does not read the
// text of these, the filter answers ExtenderArgs with nodes in place of names 200, with the Error in its result.
func (e *Extender) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+Prefix+"/"+verbFilter, e.door.answer(verbFilter))
	mux.Handle("POST "+Prefix+"/"+verbPrioritize, e.door.answer(verbPrioritize))
	return mux
}

// desk is what an answer is worked out on. It is used for one after another.
type desk struct {
	in    bytes.Buffer
	held  int64 // of door.bodies
	out   []byte
	names [][]byte
	nodes []*node
}

func (d *door) take() *desk { return d.desks.Get().(*desk) }

// give takes a desk back, cleared so that it keeps no view.
func (d *door) give(k *desk) {
	d.bodies.Release(k.held)
	k.held = 0
	if k.in.Cap() > pooledBody || cap(k.out) > pooledBody || cap(k.names) > pooledNames {
		return
	}
	k.in.Reset()
	k.out = k.out[:0]
	clear(k.names)
	clear(k.nodes)
	d.desks.Put(k)
}

func (d *door) answer(verb string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		if isFirst(r) {
			d.telemetry.connections.Inc()
		}
		k := d.take()
		defer d.give(k)
		code := d.handleSafely(verb, w, r, k)
		h := w.Header()
		if code == http.StatusOK {
			h.Set("Content-Type", "application/json")
		} else {
			h.Set("Content-Type", "text/plain; charset=utf-8")
		}
		h.Set("Content-Length", strconv.Itoa(len(k.out))) // else a scheduler without HTTP/2 connects anew for every call
		w.WriteHeader(code)
		_, _ = w.Write(k.out) // who has gone needs no answer
		d.telemetry.answered(verb, code, time.Since(began))
	}
}

// handleSafely is handle, but answers 500 where that panics: net/http would break the connection off, and tell almost nobody.
func (d *door) handleSafely(verb string, w http.ResponseWriter, r *http.Request, k *desk) (code int) {
	defer func() {
		if why := recover(); why != nil {
			d.log.Error("a scheduler is not answered for a fault of Foresail's", "verb", verb, "panic", why, "stack", string(debug.Stack()))
			k.out = append(append(k.out[:0], errFault.Error()...), '\n')
			code = http.StatusInternalServerError
		}
	}()
	return d.handle(verb, w, r, k)
}

var errFault = errors.New("foresail: the answer failed for a fault of Foresail's, which its log tells")

// handle reads a request, works out the answer, and returns its status.
func (d *door) handle(verb string, w http.ResponseWriter, r *http.Request, k *desk) int {
	if code, err := d.read(w, r, k); err != nil {
		return d.complain(verb, code, err, k)
	}
	select {
	case d.working <- struct{}{}:
		defer func() { <-d.working }()
	case <-r.Context().Done():
		return d.complain(verb, http.StatusServiceUnavailable, errBusy, k)
	}
	asked, err := decode(k.in.Bytes(), k.names, d.view().mostNames())
	switch {
	case errors.Is(err, errNodes) && verb == verbFilter:
		d.note(verb, err)
		k.out = appendUnfiltered(k.out, err)
		return http.StatusOK
	case err != nil:
		return d.complain(verb, http.StatusBadRequest, err, k)
	}
	k.names = asked.names
	q, f := d.question(asked, k)
	if verb == verbFilter {
		d.filter(q, f, k)
	} else {
		d.prioritize(q, f, k)
	}
	d.telemetry.judged(f.verdicts)
	d.trail.add(verb, f)
	return http.StatusOK
}

// read reads a body, and returns the status to answer if that fails.
func (d *door) read(w http.ResponseWriter, r *http.Request, k *desk) (int, error) {
	body := &metered{from: http.MaxBytesReader(w, r.Body, maxBody), of: d.bodies, desk: k}
	if n := r.ContentLength; n > int64(k.in.Cap()) && n <= pooledBody {
		if !body.take(n) {
			return http.StatusServiceUnavailable, errBusy
		}
		body.paid = n
		k.in.Grow(int(n) + bytes.MinRead)
	}
	_, err := k.in.ReadFrom(body)
	switch tooLarge := (*http.MaxBytesError)(nil); {
	case err == nil:
		return http.StatusOK, nil
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge, errTooLarge
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable, errBusy
	}
	return http.StatusBadRequest, fmt.Errorf("foresail: the request ends early: %w", err)
}

// metered reads a body, as long as not too much is held of all of them.
type metered struct {
	from io.Reader
	of   *semaphore.Weighted
	desk *desk
	paid int64 // bytes of what comes that are taken already
}

// Read implements io.Reader.
func (m *metered) Read(b []byte) (int, error) {
	n, err := m.from.Read(b)
	more := max(int64(n)-m.paid, 0)
	m.paid -= int64(n) - more
	if more > 0 && !m.take(more) {
		return n, errBusy
	}
	return n, err
}

func (m *metered) take(n int64) bool {
	if !m.of.TryAcquire(n) {
		return false
	}
	m.desk.held += n
	return true
}

var errBusy = errors.New("foresail: too much is asked at once")

var errTooLarge = fmt.Errorf("foresail: the request is larger than %d MiB: if there are whole nodes in it, set nodeCacheCapable: true for this extender in the KubeSchedulerConfiguration", maxBody>>20)

// complain makes the answer to a request that cannot be answered.
func (d *door) complain(verb string, code int, err error, k *desk) int {
	d.note(verb, err)
	k.out = append(append(k.out, err.Error()...), '\n')
	return code
}

// note logs that a request cannot be answered. A scheduler asks many times a second, so once a minute is enough.
func (d *door) note(verb string, err error) {
	now := d.now().UnixNano()
	if last := d.noted.Load(); now-last < int64(time.Minute) || !d.noted.CompareAndSwap(last, now) {
		return
	}
	d.log.Warn("a scheduler asks what cannot be answered", "verb", verb, "error", err)
}

// question puts a question in terms of the view, with a verdict to be found for each node.
func (d *door) question(a asked, k *desk) (*question, *finding) {
	q := &question{rules: d.rules, now: d.now(), view: d.view(), pod: subjectOf(a.pod, d.workloads)}
	q.past = d.waiting.of(q.pod.uid)
	d.ledger.forget(q.pod.uid) // it must not stand in its own way
	f := d.trail.fresh(len(a.names))
	f.at, f.viewed, f.pod = q.now, q.view.at, q.pod.brief()
	f.text = len(q.pod.key.Namespace) + len(q.pod.key.Name) + len(q.pod.uid)
	k.nodes = slices.Grow(k.nodes[:0], len(a.names))
	for i, name := range a.names {
		n := q.view.nodes[string(name)]
		if n != nil {
			f.verdicts[i].name = n.name
		} else {
			f.verdicts[i].name = string(name)
			f.text += len(name)
		}
		k.nodes = append(k.nodes, n)
	}
	q.nodes = k.nodes
	return q, f
}

func (d *door) filter(q *question, f *finding, k *desk) {
	f.room, f.awaited = q.filter(f.verdicts)
	d.waiting.note(q.pod.uid, f.room, q.now.Add(-q.waited()), q.now)
	k.out = appendFiltered(k.out, f.verdicts, f.room)
	d.expect(q, q.left(f.verdicts, f.room))
	d.telemetry.filtered(f.verdicts, f.room)
}

func (d *door) prioritize(q *question, f *finding, k *desk) {
	q.prioritize(f.verdicts)
	d.expect(q, q.best(f.verdicts))
	k.out = appendScores(k.out, f.verdicts)
}

// expect counts the pod on the node that it is likely to be bound to, nil for none.
func (d *door) expect(q *question, n *node) {
	if n != nil && q.pod.uid != "" {
		d.ledger.tentative(q.pod.uid, n, q.pod.requests, q.pod.estimate)
	}
}
