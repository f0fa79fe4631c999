package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Prefix is the path of the extender: the urlPrefix of the scheduler's configuration ends in it, with the verbs
// filter and prioritize.
const Prefix = "/scheduler"

// Limits for all schedulers together. A scheduler sends one request at a time.
const (
	// maxBody is the maximum size of a request in bytes: the largest possible pod, and 50,000 names. decode limits
	// the memory that it takes.
	maxBody = 8 << 20
	// maxBodies is the maximum size of all bodies in memory, in bytes. Requests beyond it are rejected.
	maxBodies = 8 * maxBody
	// maxWorking is the maximum number of requests that are evaluated at the same time. The others wait.
	maxWorking = 8
	// pooledBody is the largest buffer that is kept for the next request, in bytes.
	pooledBody = 1 << 20
)

// handler answers the requests of schedulers.
type handler struct {
	rules     Rules
	now       func() time.Time
	workloads Workloads
	snapshot  func() *clusterSnapshot
	assumed   assumer
	telemetry *telemetry
	decisions *decisionCache
	waiting   *waitingPods
	rejected  minutely
	scratches sync.Pool           // of *scratch
	bodies    *semaphore.Weighted // in bytes
	working   chan struct{}
}

// assumer counts a pod on the node that it is likely to be bound to, until it is asked about again or bound.
type assumer interface {
	seek(pod *corev1.Pod) (a *arrival, known bool)
	wait(ctx context.Context, pod *corev1.Pod, a *arrival) bool
	assume(pod types.UID, n *node, requests, estimate use)
	forget(pod types.UID)
}

func newHandler(o *Options, snapshot func() *clusterSnapshot, a assumer, t *telemetry) *handler {
	d := &handler{
		rules: o.Rules, now: o.Now, workloads: o.Workloads, snapshot: snapshot, assumed: a, telemetry: t,
		decisions: newDecisionCache(maxVerdicts), waiting: newWaitingPods(),
		bodies: semaphore.NewWeighted(maxBodies), working: make(chan struct{}, maxWorking),
	}
	d.scratches.New = func() any { return new(scratch) }
	return d
}

// scratch holds the buffers of one request. It is reused for later ones.
type scratch struct {
	in    bytes.Buffer
	held  int64 // of handler.bodies
	out   bytes.Buffer
	nodes []*node
}

func (d *handler) take() *scratch { return d.scratches.Get().(*scratch) }

// give returns a scratch to the pool, without references to a snapshot.
func (d *handler) give(k *scratch) {
	d.bodies.Release(k.held)
	k.held = 0
	if k.in.Cap() > pooledBody || k.out.Cap() > pooledBody {
		return
	}
	k.in.Reset()
	k.out.Reset()
	clear(k.nodes)
	d.scratches.Put(k)
}

func (d *handler) answer(verb string) http.HandlerFunc {
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
		h.Set("Content-Length", strconv.Itoa(k.out.Len())) // without it an HTTP/1.1 scheduler reconnects for every call
		w.WriteHeader(code)
		_, _ = w.Write(k.out.Bytes()) // the client may be gone
		d.telemetry.answered(verb, code, time.Since(began))
	}
}

// handleSafely answers 500 if handle panics: net/http would close the connection.
func (d *handler) handleSafely(verb string, w http.ResponseWriter, r *http.Request, k *scratch) (code int) {
	defer func() {
		if why := recover(); why != nil {
			klog.FromContext(r.Context()).Error(fmt.Errorf("panic: %v", why), "A request of a scheduler panicked",
				"verb", verb, "stack", string(debug.Stack()))
			k.out.Reset()
			fmt.Fprintln(&k.out, errFault)
			code = http.StatusInternalServerError
		}
	}()
	return d.handle(verb, w, r, k)
}

var errFault = errors.New("foresail: the request failed by a bug of Foresail, see its log")

// handle reads a request, prepares the answer, and returns its status.
func (d *handler) handle(verb string, w http.ResponseWriter, r *http.Request, k *scratch) int {
	if code, err := d.read(w, r, k); err != nil {
		return d.complain(r.Context(), verb, code, err, k)
	}
	select {
	case d.working <- struct{}{}:
		defer func() { <-d.working }()
	case <-r.Context().Done():
		return d.complain(r.Context(), verb, http.StatusServiceUnavailable, errBusy, k)
	}
	pod, names, err := decode(k.in.Bytes(), d.snapshot().maxNames())
	switch {
	case errors.Is(err, errNodes) && verb == verbFilter:
		d.note(r.Context(), verb, err)
		return k.write(&extenderv1.ExtenderFilterResult{Error: err.Error()})
	case err != nil:
		return d.complain(r.Context(), verb, http.StatusBadRequest, err, k)
	}
	d.await(r.Context(), pod)
	q, f := d.evaluation(pod, names, k)
	answer := d.prioritize
	if verb == verbFilter {
		answer = d.filter
	}
	code := k.write(answer(q, f))
	d.telemetry.judged(f.verdicts)
	d.decisions.add(verb, f)
	return code
}

// await waits for a pod that is not known yet, while another request has the place among those that are evaluated.
func (d *handler) await(ctx context.Context, pod *corev1.Pod) {
	a, known := d.assumed.seek(pod)
	if a != nil {
		<-d.working
		defer func() { d.working <- struct{}{} }()
		known = d.assumed.wait(ctx, pod, a)
	}
	if !known {
		d.telemetry.unknown.Inc()
	}
}

// write encodes an answer.
func (k *scratch) write(answer any) int {
	e := json.NewEncoder(&k.out)
	e.SetEscapeHTML(false)
	if err := e.Encode(answer); err != nil {
		panic(err) // the types of answers have no values that cannot be encoded
	}
	return http.StatusOK
}

// read reads a body, and returns the status to answer if that fails.
func (d *handler) read(w http.ResponseWriter, r *http.Request, k *scratch) (int, error) {
	body := &metered{from: http.MaxBytesReader(w, r.Body, maxBody), of: d.bodies, scratch: k}
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

// metered reads a body while all bodies together stay below maxBodies.
type metered struct {
	from    io.Reader
	of      *semaphore.Weighted
	scratch *scratch
	paid    int64 // bytes of what comes that are taken already
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
	m.scratch.held += n
	return true
}

var errBusy = errors.New("foresail: too many requests at once")

var errTooLarge = fmt.Errorf(
	"foresail: the request is larger than %d MiB: if there are whole nodes in it, set nodeCacheCapable: true for this extender in the KubeSchedulerConfiguration", maxBody>>20)

// complain prepares the answer to a request that is rejected.
func (d *handler) complain(ctx context.Context, verb string, code int, err error, k *scratch) int {
	d.note(ctx, verb, err)
	fmt.Fprintln(&k.out, err)
	return code
}

// note logs a rejected request, once a minute at most.
func (d *handler) note(ctx context.Context, verb string, err error) {
	if d.rejected.due(d.now()) {
		klog.FromContext(ctx).Error(err, "Rejected a request of a scheduler", "verb", verb)
	}
}

// evaluation prepares the verdicts on a pod and the named nodes.
func (d *handler) evaluation(pod *corev1.Pod, names []string, k *scratch) (*evaluation, *decision) {
	q := &evaluation{rules: d.rules, now: d.now(), snapshot: d.snapshot(), pod: podRequestOf(pod, d.workloads)}
	q.past = d.waiting.of(q.pod.uid)
	d.assumed.forget(q.pod.uid) // the pod must not count against itself
	f := d.decisions.fresh(len(names))
	f.at, f.cached, f.pod = q.now, q.snapshot.at, q.pod.summary()
	f.text = len(q.pod.key.Namespace) + len(q.pod.key.Name) + len(q.pod.uid)
	k.nodes = slices.Grow(k.nodes[:0], len(names))
	for i, name := range names {
		n := q.snapshot.nodes[name]
		if n != nil {
			f.verdicts[i].name = n.name
		} else {
			f.verdicts[i].name = name
			f.text += len(name)
		}
		k.nodes = append(k.nodes, n)
	}
	q.nodes = k.nodes
	return q, f
}

func (d *handler) filter(q *evaluation, f *decision) any {
	f.room, f.awaited = q.filter(f.verdicts)
	d.waiting.note(q.pod.uid, f.room, q.now.Add(-q.waited()), q.now)
	d.assume(q, q.left(f.verdicts, f.room))
	d.telemetry.filtered(f.verdicts, f.room)
	return filterResult(f.verdicts, f.room)
}

func (d *handler) prioritize(q *evaluation, f *decision) any {
	q.prioritize(f.verdicts)
	d.assume(q, q.best(f.verdicts))
	return scores(f.verdicts)
}

// assume counts the pod on a node, nil for none.
func (d *handler) assume(q *evaluation, n *node) {
	if n != nil && q.pod.uid != "" {
		d.assumed.assume(q.pod.uid, n, q.pod.requests, q.pod.estimate)
	}
}

// connectionKey is the key of a context's connection.
type connectionKey struct{}

// withConnection adds the key of isFirst to the contexts of a connection.
func withConnection(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, new(atomic.Bool))
}

// isFirst reports whether a request is the first one of its connection.
func isFirst(r *http.Request) bool {
	asked, ok := r.Context().Value(connectionKey{}).(*atomic.Bool)
	return ok && !asked.Swap(true)
}
