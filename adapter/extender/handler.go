package extender

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Prefix is the path that a scheduler is answered below: its urlPrefix ends in it, filterVerb is filter and
// prioritizeVerb is prioritize.
const Prefix = "/scheduler"

// maxBody is the most that a scheduler may send, in bytes. It is a pod as large as any can be, and 50,000 names.
const maxBody = 8 << 20

// pooledBody is the largest buffer that is kept for the next request.
const pooledBody = 1 << 20

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
	noted     atomic.Int64 // when it was last logged that a request cannot be answered, in Unix nanoseconds
	desks     sync.Pool    // of *desk
}

// counter counts a pod on the nodes that it is likely to be bound to one of, for what it requests and for what it is
// expected to use, until it is asked about again or seen to be bound.
type counter interface {
	tentative(pod types.UID, nodes []*node, requests, estimate use)
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
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.desks.New = func() any { return new(desk) }
	return d, nil
}

// Handler answers a scheduler at Prefix/filter and Prefix/prioritize. What is asked otherwise than by POST is answered
// 405, a body that is not ExtenderArgs with names of nodes 400, one that is too large 413. As a scheduler does not read the
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
	out   []byte
	names [][]byte
	nodes []*node
	best  []*node
}

func (d *door) take() *desk { return d.desks.Get().(*desk) }

// give takes a desk back, cleared so that it keeps no view.
func (d *door) give(k *desk) {
	if k.in.Cap() > pooledBody || cap(k.out) > pooledBody {
		return
	}
	k.in.Reset()
	k.out = k.out[:0]
	clear(k.names)
	clear(k.nodes)
	clear(k.best)
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
		code := d.handle(verb, w, r, k)
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

// handle reads a request, works out the answer, and returns its status.
func (d *door) handle(verb string, w http.ResponseWriter, r *http.Request, k *desk) int {
	if n := r.ContentLength; n > 0 && n <= maxBody {
		k.in.Grow(int(n) + bytes.MinRead)
	}
	if _, err := k.in.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return d.complain(verb, http.StatusRequestEntityTooLarge, errTooLarge, k)
		}
		return d.complain(verb, http.StatusBadRequest, fmt.Errorf("foresail: the request ends early: %w", err), k)
	}
	asked, err := decode(k.in.Bytes(), k.names)
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
	k.nodes = slices.Grow(k.nodes[:0], len(a.names))
	for i, name := range a.names {
		n := q.view.nodes[string(name)]
		if n != nil {
			f.verdicts[i].name = n.name
		} else {
			f.verdicts[i].name = string(name)
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
	d.expect(q, q.left(f.verdicts, f.room, k.best[:0]), k)
	d.telemetry.filtered(f.verdicts, f.room)
}

func (d *door) prioritize(q *question, f *finding, k *desk) {
	q.prioritize(f.verdicts)
	d.expect(q, q.best(f.verdicts, k.best[:0]), k)
	k.out = appendScores(k.out, f.verdicts)
}

// expect counts the pod on the nodes that it is likely to be bound to one of.
func (d *door) expect(q *question, nodes []*node, k *desk) {
	if k.best = nodes; len(nodes) > 0 && q.pod.uid != "" {
		d.ledger.tentative(q.pod.uid, nodes, q.pod.requests, q.pod.estimate)
	}
}
