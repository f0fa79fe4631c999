package extender

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
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
	tentative func(uid types.UID, n *node, requested, expected use)
	telemetry *telemetry
	trail     *trail
	waiting   *waiting
	log       *slog.Logger
	buffers   sync.Pool // of *bytes.Buffer
}

// newDoor returns the door of an Extender, with its metrics registered.
func newDoor(e *Extender, o Options) (*door, error) {
	t, err := newTelemetry(o.Registry, e)
	if err != nil {
		return nil, err
	}
	d := &door{
		rules: e.rules, now: e.now, workloads: o.Workloads, view: e.view, tentative: e.tentative,
		telemetry: t, trail: newTrail(maxTrail), waiting: newWaiting(), log: o.Log,
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.buffers.New = func() any { return new(bytes.Buffer) }
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

func (d *door) answer(verb string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		in, out := d.buffer(), d.buffer()
		defer d.put(in)
		defer d.put(out)
		if isFirst(r) {
			d.telemetry.connections.Inc()
		}
		code := d.handle(verb, w, r, in, out)
		h := w.Header()
		if code == http.StatusOK {
			h.Set("Content-Type", "application/json")
		} else {
			h.Set("Content-Type", "text/plain; charset=utf-8")
		}
		h.Set("Content-Length", strconv.Itoa(out.Len())) // else a scheduler without HTTP/2 connects anew for every call
		w.WriteHeader(code)
		_, _ = w.Write(out.Bytes()) // who has gone needs no answer
		d.telemetry.answered(verb, code, time.Since(began))
	}
}

// handle reads a request into one buffer, puts the answer into another, and returns its status.
func (d *door) handle(verb string, w http.ResponseWriter, r *http.Request, in, out *bytes.Buffer) int {
	if n := r.ContentLength; n > 0 && n <= maxBody {
		in.Grow(int(n) + bytes.MinRead)
	}
	if _, err := in.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return d.complain(verb, http.StatusRequestEntityTooLarge, tooBig{}, out)
		}
		return d.complain(verb, http.StatusBadRequest, err, out)
	}
	asked, err := decode(in.Bytes())
	if err != nil {
		if errors.Is(err, errNodes) && verb == verbFilter {
			d.complain(verb, http.StatusOK, err, out)
			out.Reset()
			out.Write(appendUnfiltered(out.AvailableBuffer(), err))
			return http.StatusOK
		}
		return d.complain(verb, http.StatusBadRequest, err, out)
	}
	q := d.question(asked)
	verdicts := make([]verdict, len(q.nodes))
	for i, name := range asked.names {
		verdicts[i].name = name
	}
	if verb == verbFilter {
		d.filter(q, verdicts, out)
	} else {
		d.prioritize(q, verdicts, out)
	}
	return http.StatusOK
}

// tooBig is what is said of a body that is too large.
type tooBig struct{}

func (tooBig) Error() string {
	return "foresail: the request is larger than " + strconv.Itoa(maxBody>>20) + " MiB: if it has whole nodes in it, set nodeCacheCapable: true for this extender in the KubeSchedulerConfiguration"
}

func (d *door) complain(verb string, code int, err error, out *bytes.Buffer) int {
	d.log.Warn("A scheduler asks what cannot be answered", "verb", verb, "error", err)
	out.WriteString(err.Error())
	out.WriteByte('\n')
	return code
}

func (d *door) question(a asked) *question {
	q := &question{rules: d.rules, now: d.now(), view: d.view(), pod: subjectOf(a.pod, d.workloads), nodes: make([]*node, len(a.names))}
	q.past = d.waiting.of(q.pod.uid)
	for i, name := range a.names {
		q.nodes[i] = q.view.nodes[name]
	}
	return q
}

func (d *door) filter(q *question, verdicts []verdict, out *bytes.Buffer) {
	r, pool := q.filter(verdicts)
	d.waiting.note(q.pod.uid, r, q.now.Add(-q.waited()), q.now)
	out.Write(appendFiltered(out.AvailableBuffer(), verdicts, r))
	d.telemetry.filtered(verdicts, r)
	d.telemetry.judged(verdicts)
	d.trail.add(verbFilter, &finding{at: q.now, viewed: q.view.at, pod: q.pod.brief(), verdicts: verdicts, room: r, awaited: pool})
}

func (d *door) prioritize(q *question, verdicts []verdict, out *bytes.Buffer) {
	best := q.prioritize(verdicts)
	if best >= 0 && !q.rules.NoLedger {
		d.tentative(q.pod.uid, q.nodes[best], q.pod.requests, q.pod.estimate)
	}
	out.Write(appendScores(out.AvailableBuffer(), verdicts))
	d.telemetry.judged(verdicts)
	d.trail.add(verbPrioritize, &finding{at: q.now, viewed: q.view.at, pod: q.pod.brief(), verdicts: verdicts})
}

func (d *door) buffer() *bytes.Buffer {
	b := d.buffers.Get().(*bytes.Buffer)
	b.Reset()
	return b
}

func (d *door) put(b *bytes.Buffer) {
	if b.Cap() <= pooledBody {
		d.buffers.Put(b)
	}
}
