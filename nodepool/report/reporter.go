// Package report publishes what pools decide and why: a log line and an event for each change, metrics, the status of the
// WorkerPool with its last decisions, and by option a webhook and CloudWatch. All of them show the same
// [nodepool.CycleReport].
package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
)

const (
	// refreshEvery is how often numbers alone are brought up to date in the status.
	refreshEvery = 30 * time.Second
	// statusTimeout bounds how long a cycle waits for the write of the status.
	statusTimeout = 3 * time.Second
	// backlog is how many messages wait for the webhook; more are dropped.
	backlog = 64
)

// Options configures a [Reporter]. Client and Metrics are required.
type Options struct {
	Client      client.Client
	Events      events.EventRecorder
	Metrics     *Metrics
	Webhook     *Webhook             // nil: none
	CloudWatch  *CloudWatch          // nil: none
	CostReports *CostReports         // nil: none
	Traces      trace.TracerProvider // of actions; nil: none
}

// Reporter reports on one pool. Run sends to the webhook and CloudWatch, and makes cost reports.
type Reporter struct {
	pool    string
	options Options

	status  *v1alpha1.WorkerPoolStatus // as last written here; nil: not yet
	written time.Time
	said    plan.Decision // the last one that was logged
	healthy string        // what was last logged of the health
	ticked  time.Time     // of the last cycle

	tracer    *tracer // nil: none
	sentences chan string
	figures   chan figures   // for CloudWatch, the newest alone
	reports   chan time.Time // up to when the next is to be
}

// New returns the reporter of a pool.
func New(pool string, o Options) *Reporter {
	t := &Reporter{
		pool: pool, options: o, healthy: "-",
		sentences: make(chan string, backlog), figures: make(chan figures, 1), reports: make(chan time.Time, 1),
	}
	if o.Traces != nil {
		t.tracer = newTracer(o.Traces)
	}
	return t
}

// Report implements [nodepool.Reporter].
func (t *Reporter) Report(ctx context.Context, cycle nodepool.CycleReport) {
	t.options.Metrics.set(cycle)
	t.logHealth(ctx, cycle)
	t.noteReport(cycle.At, cycle.Leading)
	if t.tracer != nil {
		t.tracer.report(cycle)
	}
	if !cycle.Leading {
		t.status, t.said = nil, plan.Decision{} // the leader reports; a new leader reads the status first
		return
	}
	news := t.changed(cycle)
	t.logDecision(ctx, cycle, news)
	t.write(ctx, cycle, news)
	for _, s := range sentences(cycle, news) {
		t.say(s)
	}
	if t.options.CloudWatch != nil {
		select {
		case <-t.figures: // an older one that was not sent yet
		default:
		}
		t.figures <- figuresOf(cycle)
	}
}

// say queues a message for the webhook, unless too many wait.
func (t *Reporter) say(s string) {
	select {
	case t.sentences <- s:
	default:
		t.options.Metrics.dropped.Inc()
	}
}

// changed returns whether a decision differs from the last one, or has begun an action.
func (t *Reporter) changed(cycle nodepool.CycleReport) bool {
	return began(cycle.Events) || !same(decision(t.said), decision(cycle.Decision))
}

func (t *Reporter) logDecision(ctx context.Context, cycle nodepool.CycleReport, news bool) {
	d := cycle.Decision
	t.said = d
	log := klog.FromContext(ctx)
	decisions := log.V(1) // has all of them
	if news {
		decisions = log
	}
	fields := []any{"step", d.Step, "reason", d.Reason, "why", d.Message, "dryRun", cycle.DryRun}
	if decided(cycle) {
		fields = append(fields, "workers", d.Workers, "desired", d.Want)
	}
	if cycle.Snapshot.Pending.Known {
		fields = append(fields, "pending", cycle.Snapshot.Pending.Pods)
	}
	decisions.Info("Decided", fields...)
	for _, e := range cycle.Events {
		log.Info("Event", "reason", e.Reason, "message", e.Message, "node", e.Node, "instance", e.Instance, "action", e.Action, "warning", e.Warning)
	}
}

func (t *Reporter) logHealth(ctx context.Context, cycle nodepool.CycleReport) {
	health := ""
	if cycle.Health != nil {
		health = cycle.Health.Error()
	}
	if health == t.healthy {
		return
	}
	if t.healthy = health; cycle.Health != nil {
		klog.FromContext(ctx).Error(cycle.Health, "The pool cannot carry out its decisions")
		return
	}
	klog.FromContext(ctx).Info("The pool can carry out its decisions")
}

// write updates the status: at once if a decision or an event is new, otherwise every refreshEvery.
func (t *Reporter) write(ctx context.Context, cycle nodepool.CycleReport, news bool) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var pool v1alpha1.WorkerPool
	if err := t.options.Client.Get(ctx, client.ObjectKey{Name: cycle.Pool}, &pool); err != nil {
		klog.FromContext(ctx).V(1).Info("Cannot read the WorkerPool", "error", err.Error())
		return
	}
	t.events(&pool, cycle, news)
	if t.status == nil {
		t.status = pool.Status.DeepCopy()
	}
	next := statusOf(*t.status, &pool, cycle)
	if !news && !pressing(t.status, &next) && cycle.At.Sub(t.written) < refreshEvery {
		t.status.Decisions = next.Decisions // nothing of the trail is lost, it is written later
		return
	}
	if err := t.patch(ctx, &pool, next); err != nil {
		t.status.Decisions = next.Decisions
		klog.FromContext(ctx).V(1).Info("Cannot write the status; the next cycle tries again", "error", err.Error())
		return
	}
	t.status, t.written = &next, cycle.At
}

// patch writes the difference of the status, and never the journal: that belongs to the store.
func (t *Reporter) patch(ctx context.Context, pool *v1alpha1.WorkerPool, next v1alpha1.WorkerPoolStatus) error {
	before, after := pool.DeepCopy(), pool.DeepCopy()
	after.Status = *next.DeepCopy()
	after.Status.Journal = before.Status.Journal
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	return client.IgnoreNotFound(t.options.Client.Status().Patch(ctx, after, client.MergeFrom(before)))
}

// events records Kubernetes Events for what happened and for a new decision.
func (t *Reporter) events(pool *v1alpha1.WorkerPool, cycle nodepool.CycleReport, news bool) {
	if t.options.Events == nil {
		return
	}
	if d := cycle.Decision; news && d.Reason != "" {
		t.options.Events.Eventf(pool, nil, corev1.EventTypeNormal, string(d.Reason), string(d.Step), "%s", clip(d.Message))
	}
	for _, group := range grouped(cycle.Events) {
		e := group[0]
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		t.options.Events.Eventf(pool, nil, kind, string(e.Reason), actionOfEvent(e), "%s", clip(noteOf(group)))
	}
}

// grouped returns the events of a cycle, those together that are of one reason and action: hundreds of nodes may be
// launched at once.
func grouped(list []journal.Event) [][]journal.Event {
	var out [][]journal.Event
	for _, e := range list {
		same := func(g []journal.Event) bool {
			return e.Action != "" && g[0].Reason == e.Reason && g[0].Action == e.Action && g[0].Warning == e.Warning
		}
		if at := slices.IndexFunc(out, same); at >= 0 {
			out[at] = append(out[at], e)
		} else {
			out = append(out, []journal.Event{e})
		}
	}
	return out
}

// noteOf returns the text of an Event about one or more events.
func noteOf(group []journal.Event) string {
	texts := make([]string, len(group))
	for i, e := range group {
		texts[i] = e.Message
	}
	text := strings.Join(texts, "; ")
	if len(group) > 1 {
		text = fmt.Sprintf("%d times: %s", len(group), text)
	}
	return text
}

// actionOfEvent returns the action of an Event. Kubernetes counts Events of one reason and action as repetitions of
// the first, and drops their texts, so what an event is about is a part of it.
func actionOfEvent(e journal.Event) string {
	const most = 128 // characters, of the API
	parts := slices.DeleteFunc([]string{cmp.Or(e.Action, string(e.Reason)), cmp.Or(e.Instance, e.Node)}, func(s string) bool { return s == "" })
	action := strings.Join(parts, "/")
	return action[:min(most, len(action))]
}

// Run sends what waits for the webhook and CloudWatch, and makes reports, until ctx ends.
func (t *Reporter) Run(ctx context.Context) error {
	var reports sync.WaitGroup
	reports.Go(func() { t.runReports(ctx) })
	defer reports.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-t.sentences:
			if t.options.Webhook != nil {
				t.sent(ctx, "webhook", t.options.Webhook.post(ctx, s))
			}
		case f := <-t.figures:
			t.sent(ctx, "cloudwatch", t.options.CloudWatch.put(ctx, f))
		}
	}
}

func (t *Reporter) sent(ctx context.Context, to string, err error) {
	if err == nil || errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return
	}
	t.options.Metrics.failed.WithLabelValues(to).Inc()
	klog.FromContext(ctx).Error(err, "Cannot send a notification", "to", to)
}
