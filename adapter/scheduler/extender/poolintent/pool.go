// Package poolintent reads the intent of WorkerPools from their statuses, for the scheduler
// extender: the Nodes that they have committed to remove, the Nodes that they would remove next,
// and the nodes that they could launch.
//
// Intent counts only while the pool is active. If its status has not changed for a while, its loop
// may be down. Committed removals count a minute longer; after that the extender goes by the taint
// of the Node.
package poolintent

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// silentFor is how long the status may stay unchanged, beyond two intervals, before the pool is
// taken to be inactive. An active pool updates it every 30 s, and another process takes over its
// lease within a minute.
const silentFor = 90 * time.Second

// keptFor is how much longer committed removals count: they are rarely withdrawn.
const keptFor = time.Minute

// pool is the cached part of a WorkerPool.
type pool struct {
	removing   []string
	candidates []string          // empty if the pool does not act
	growing    []extender.Growth // empty if it cannot grow
	activeFor  time.Duration     // how long it counts as active after its last change

	decision  v1alpha1.PoolDecision // the newest decision, without messages
	changedAt time.Time             // when it last changed, by our clock
}

// newPool reads a WorkerPool. The age of its newest decision is measured by our clock, except for
// the first one: the clock of the writer may be wrong.
func newPool(of *v1alpha1.WorkerPool, before *pool, now time.Time) *pool {
	w := &v1alpha1.WorkerPool{ObjectMeta: of.ObjectMeta, Spec: *of.Spec.DeepCopy(), Status: of.Status}
	w.Spec.Default()
	p := &pool{activeFor: silentFor + 2*w.Spec.Interval.Duration}
	p.removing = slices.Clone(w.Status.Terminating)
	if a := w.Status.Action; a != nil {
		p.removing = append(p.removing, a.Nodes...)
	}
	if acts(w) {
		p.candidates = w.Status.RemovalCandidates
	}
	if grows(w) {
		p.growing = growths(w)
	}
	if len(w.Status.Decisions) > 0 {
		p.decision = identityOf(w.Status.Decisions[0])
	}
	switch {
	case before != nil && same(p.decision, before.decision):
		p.changedAt = before.changedAt
	case before != nil:
		p.changedAt = now
	default:
		p.changedAt = latest(p.decision)
		if p.changedAt.After(now) {
			p.changedAt = now
		}
	}
	return p
}

// active reports whether the pool is active.
func (p *pool) active(now time.Time) bool { return now.Sub(p.changedAt) <= p.activeFor }

// holds reports whether committed removals still count.
func (p *pool) holds(now time.Time) bool { return now.Sub(p.changedAt) <= p.activeFor+keptFor }

// identityOf returns the fields that tell decisions apart.
func identityOf(d v1alpha1.PoolDecision) v1alpha1.PoolDecision {
	return v1alpha1.PoolDecision{Time: d.Time, Last: d.Last, Count: d.Count}
}

func same(a, b v1alpha1.PoolDecision) bool {
	return a.Count == b.Count && a.Time.Equal(&b.Time) && a.Last.Equal(b.Last)
}

func latest(d v1alpha1.PoolDecision) time.Time {
	if d.Last != nil {
		return d.Last.Time
	}
	return d.Time.Time
}

// acts reports whether the pool executes its decisions: not in a dry run, nor while it is being deleted.
func acts(w *v1alpha1.WorkerPool) bool { return !w.Spec.DryRun && w.DeletionTimestamp.IsZero() }

// stuck has the reasons of decisions after which a pool launches nothing for now.
var stuck = map[string]bool{
	string(plan.InsufficientCapacity): true, string(plan.BackingOff): true, string(plan.SignalsDisagree): true,
	string(plan.AtMaximum):       true,
	string(plan.LaunchesUnknown): true, string(plan.WorkersUnknown): true, string(nodepool.NotDecided): true,
}

// grows reports whether a pod can wait for a node of the pool: one that may be launched, or one that is on its way.
func grows(w *v1alpha1.WorkerPool) bool {
	s := &w.Status
	switch {
	case !acts(w), len(s.Decisions) == 0, !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionHealthy):
		return false
	case s.Action != nil && s.Action.Kind == string(state.ActionUp):
		return true
	}
	return s.Workers != nil && *s.Workers < w.Spec.Max && !stuck[s.Decisions[0].Reason]
}

// growths returns the labels and taints of new nodes, one for each zone and type. Labels that only
// the cloud knows are missing, so no pod waits for these. The label of the pool is missing too:
// pods that ask for it are no demand for the pool.
func growths(w *v1alpha1.WorkerPool) []extender.Growth {
	var taints []corev1.Taint
	for _, t := range w.Spec.Template.Taints {
		taints = append(taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	var out []extender.Growth
	for _, labels := range shapesOf(&w.Spec.Provider) {
		maps.Copy(labels, w.Spec.Template.Labels)
		out = append(out, extender.Growth{Pool: w.Name, Labels: labels, Taints: taints})
	}
	return out
}

// shapesOf returns the labels of the nodes that a provider can launch, as far as the spec has them.
func shapesOf(p *v1alpha1.PoolProvider) []map[string]string {
	_, spec := p.Selected()
	if spec == nil {
		return nil
	}
	var out []map[string]string
	zones, types, more := spec.NodeShapes()
	if len(types) == 0 {
		types = []string{""}
	}
	for _, zone := range slices.Compact(slices.Sorted(slices.Values(zones))) {
		for _, kind := range types {
			labels := map[string]string{corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: zone}
			if kind != "" {
				labels[corev1.LabelInstanceTypeStable] = kind
			}
			maps.Copy(labels, more)
			out = append(out, labels)
		}
	}
	return out
}
