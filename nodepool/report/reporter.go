// Package report publishes the decisions of pools and their reasons: a log line and an Event for each change, metrics,
// the status of the WorkerPool with its last decisions, traces, and optionally a webhook and CloudWatch. All of them
// show the same [nodepool.CycleReport]. No other package writes conditions, Events or metrics of a pool.
package report

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
)

// Options configures a [Reporter]. Client and Metrics are required.
type Options struct {
	Client      client.Client
	Events      events.EventRecorder // nil: none
	Metrics     *Metrics
	Webhook     *Webhook             // nil: none
	CloudWatch  *CloudWatch          // nil: none
	CostReports *CostReports         // nil: none
	Traces      trace.TracerProvider // of actions; nil: none
}

// Reporter reports on one pool. Run sends to the webhook and CloudWatch, and makes cost reports.
type Reporter struct {
	metrics  *Metrics
	status   *statusWriter
	notifier *notifier
	costs    *costReporter // nil: none
	tracer   *tracer       // nil: none

	decision plan.Decision // last logged
	health   string        // last logged
}

// New returns the reporter of a pool.
func New(pool string, o Options) *Reporter {
	r := &Reporter{
		metrics:  o.Metrics,
		status:   &statusWriter{client: o.Client, events: o.Events},
		notifier: newNotifier(o.Webhook, o.CloudWatch, o.Metrics),
		health:   "-",
	}
	if o.CostReports != nil {
		r.costs = newCostReporter(pool, *o.CostReports, r.notifier)
	}
	if o.Traces != nil {
		r.tracer = newTracer(o.Traces)
	}
	return r
}

// Report implements [nodepool.Reporter].
func (r *Reporter) Report(ctx context.Context, cycle nodepool.CycleReport) {
	r.metrics.set(cycle)
	r.logHealth(ctx, cycle)
	if r.costs != nil {
		r.costs.schedule(cycle.At, cycle.Leading)
	}
	if r.tracer != nil {
		r.tracer.report(cycle)
	}
	if !cycle.Leading {
		r.decision = plan.Decision{}
		r.status.reset() // the leader reports; a new leader reads the status first
		return
	}
	changed := began(cycle.Events) || !sameDecision(decisionOf(r.decision), decisionOf(cycle.Decision))
	r.logDecision(ctx, cycle, changed)
	r.status.write(ctx, cycle, changed)
	r.notifier.notify(cycle, changed)
}

// logDecision logs a changed decision, and every decision at a higher verbosity.
func (r *Reporter) logDecision(ctx context.Context, cycle nodepool.CycleReport, changed bool) {
	d := cycle.Decision
	r.decision = d
	log := klog.FromContext(ctx)
	decisions := log.V(1)
	if changed {
		decisions = log
	}
	fields := []any{"step", d.Step, "reason", d.Reason, "why", d.Message, "dryRun", cycle.DryRun}
	if decided(cycle) {
		fields = append(fields, "workers", d.Workers, "desired", d.Desired)
	}
	if cycle.Snapshot.Pending.Known {
		fields = append(fields, "pending", cycle.Snapshot.Pending.Pods)
	}
	decisions.Info("Decided", fields...)
	for _, e := range cycle.Events {
		log.Info("Event", "reason", e.Reason, "message", e.Message, "node", e.Node, "instance", e.Instance,
			"action", e.Action, "warning", e.Warning)
	}
}

func (r *Reporter) logHealth(ctx context.Context, cycle nodepool.CycleReport) {
	health := ""
	if cycle.Health != nil {
		health = cycle.Health.Error()
	}
	if health == r.health {
		return
	}
	if r.health = health; cycle.Health != nil {
		klog.FromContext(ctx).Error(cycle.Health, "The pool cannot carry out its decisions")
		return
	}
	klog.FromContext(ctx).Info("The pool can carry out its decisions")
}

// Run sends queued notifications, and makes cost reports, until ctx ends.
func (r *Reporter) Run(ctx context.Context) error {
	var reports sync.WaitGroup
	if r.costs != nil {
		reports.Go(func() { r.costs.run(ctx) })
	}
	defer reports.Wait()
	r.notifier.run(ctx)
	return nil
}
