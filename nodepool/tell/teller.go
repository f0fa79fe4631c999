// Package tell tells people and programs what pools decide and why: a log line and an event when it changes, metrics, the
// status of the WorkerPool with the trail of its decisions, and by option a webhook and CloudWatch. All of them tell the
// same: what is in [nodepool.Told].
package tell

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
)

const (
	// refreshEvery is how often numbers alone are brought up to date in the status.
	refreshEvery = 30 * time.Second
	// statusTimeout bounds what telling may keep a tick waiting.
	statusTimeout = 3 * time.Second
	// backlog is how many sentences wait for the webhook; more are dropped.
	backlog = 64
)

// Options is what a [Teller] tells by. Client and Metrics are required.
type Options struct {
	Client     client.Client
	Events     events.EventRecorder
	Log        logr.Logger
	Metrics    *Metrics
	Webhook    *Webhook    // nil: none
	CloudWatch *CloudWatch // nil: none
	Reports    *Reports    // nil: none
}

// Teller tells of one pool. Run must run for the webhook and CloudWatch to hear of anything, and for reports.
type Teller struct {
	pool    string
	options Options
	log     logr.Logger

	status  *v1alpha1.WorkerPoolStatus // as last written here; nil: not yet
	written time.Time
	said    plan.Decision // the last one that was logged
	healthy string        // what was last logged of the health
	ticked  time.Time     // when it was told last

	sentences chan string
	figures   chan figures   // for CloudWatch, the newest alone
	reports   chan time.Time // up to when the next is to be
}

// New returns a teller of the pool of a name.
func New(pool string, o Options) *Teller {
	return &Teller{
		pool: pool, options: o, log: o.Log.WithValues("workerpool", pool), healthy: "-",
		sentences: make(chan string, backlog), figures: make(chan figures, 1), reports: make(chan time.Time, 1),
	}
}

// Tell implements [nodepool.Teller].
func (t *Teller) Tell(ctx context.Context, told nodepool.Told) {
	t.options.Metrics.tell(told)
	t.logHealth(told)
	t.noteReport(told.At, told.Leading)
	if !told.Leading {
		t.status, t.said = nil, plan.Decision{} // the leader tells; whoever becomes it reads what was told before
		return
	}
	news := t.changed(told)
	t.logDecision(told, news)
	t.write(ctx, told, news)
	for _, s := range sentences(told, news) {
		t.say(s)
	}
	if t.options.CloudWatch != nil {
		select {
		case <-t.figures: // an older one that was not sent yet
		default:
		}
		t.figures <- figuresOf(told)
	}
}

// say has the webhook told, unless too much waits for it.
func (t *Teller) say(s string) {
	select {
	case t.sentences <- s:
	default:
		t.options.Metrics.dropped.Inc()
	}
}

// changed tells whether a decision says something new, or has begun something.
func (t *Teller) changed(told nodepool.Told) bool {
	return began(told.Events) || !same(decision(t.said), decision(told.Decision))
}

func (t *Teller) logDecision(told nodepool.Told, news bool) {
	d := told.Decision
	t.said = d
	log := t.log.V(1) // each decision is to be found there
	if news {
		log = t.log
	}
	fields := []any{"step", d.Step, "reason", d.Reason, "why", d.Message, "dryRun", told.DryRun}
	if decided(told) {
		fields = append(fields, "workers", d.Workers, "desired", d.Want)
	}
	if told.Snapshot.Pending.Known {
		fields = append(fields, "pending", told.Snapshot.Pending.Pods)
	}
	log.Info("decided", fields...)
	for _, e := range told.Events {
		t.log.Info("event", "reason", e.Reason, "what", e.Message, "node", e.Node, "instance", e.Instance, "action", e.Action, "warning", e.Warning)
	}
}

func (t *Teller) logHealth(told nodepool.Told) {
	health := ""
	if told.Health != nil {
		health = told.Health.Error()
	}
	if health == t.healthy {
		return
	}
	if t.healthy = health; told.Health != nil {
		t.log.Error(told.Health, "the pool cannot do what it decides")
		return
	}
	t.log.Info("the pool can do what it decides")
}

// write brings the status up to date: at once when it tells something new, else at intervals.
func (t *Teller) write(ctx context.Context, told nodepool.Told, news bool) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var pool v1alpha1.WorkerPool
	if err := t.options.Client.Get(ctx, client.ObjectKey{Name: told.Pool}, &pool); err != nil {
		t.log.V(1).Info("cannot read the WorkerPool", "error", err.Error())
		return
	}
	t.events(&pool, told, news)
	if t.status == nil {
		t.status = pool.Status.DeepCopy()
	}
	next := statusOf(*t.status, &pool, told)
	if !news && !pressing(t.status, &next) && told.At.Sub(t.written) < refreshEvery {
		t.status.Decisions = next.Decisions // nothing of the trail is lost, it is written later
		return
	}
	if err := t.patch(ctx, &pool, next); err != nil {
		t.status.Decisions = next.Decisions
		t.log.V(1).Info("cannot write the status; the next tick tries again", "error", err.Error())
		return
	}
	t.status, t.written = &next, told.At
}

// patch writes what differs of the status, and never the journal: that belongs to the store.
func (t *Teller) patch(ctx context.Context, pool *v1alpha1.WorkerPool, next v1alpha1.WorkerPoolStatus) error {
	before, after := pool.DeepCopy(), pool.DeepCopy()
	after.Status = *next.DeepCopy()
	after.Status.Journal = before.Status.Journal
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	return client.IgnoreNotFound(t.options.Client.Status().Patch(ctx, after, client.MergeFrom(before)))
}

// events makes Kubernetes Events of what happened and of a decision that is new.
func (t *Teller) events(pool *v1alpha1.WorkerPool, told nodepool.Told, news bool) {
	if t.options.Events == nil {
		return
	}
	if d := told.Decision; news && d.Reason != "" {
		t.options.Events.Eventf(pool, nil, corev1.EventTypeNormal, string(d.Reason), string(d.Step), "%s", clip(d.Message))
	}
	for _, e := range told.Events {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		action := e.Action
		if action == "" {
			action = string(e.Reason)
		}
		t.options.Events.Eventf(pool, nil, kind, string(e.Reason), action, "%s", clip(e.Message))
	}
}

// Run sends what waits for the webhook and CloudWatch, and makes reports, until ctx ends.
func (t *Teller) Run(ctx context.Context) error {
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

func (t *Teller) sent(ctx context.Context, to string, err error) {
	if err == nil || errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return
	}
	t.options.Metrics.failed.WithLabelValues(to).Inc()
	t.log.Error(err, "cannot tell", "to", to)
}
