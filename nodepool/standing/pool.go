package standing

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/foresail/foresail/adapter/extender"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
)

// silentFor is how long nothing may have been written of a pool, beyond two of its intervals, for it to be at work still.
// Its status is brought up to date every 30 s, by the next tick, and the lease of a process that has gone takes a minute to
// be another's.
const silentFor = 90 * time.Second

// keptFor is how much longer its commitments count: they are rarely taken back, and a pod is better off elsewhere.
const keptFor = time.Minute

// pool is what is kept of a WorkerPool.
type pool struct {
	removing   []string
	candidates []string          // none if the pool does nothing about them
	growing    []extender.Growth // none if it cannot grow
	patience   time.Duration     // for how long it is at work after it was heard of

	said  v1alpha1.PoolDecision // the newest decision, without its words
	heard time.Time             // when it became another, by our clock
}

// newPool reads a WorkerPool. Our clock says how old its newest decision is, unless there is one before to compare it with:
// the clock of whoever wrote it may be wrong.
func newPool(of *v1alpha1.WorkerPool, before *pool, now time.Time) *pool {
	w := &v1alpha1.WorkerPool{ObjectMeta: of.ObjectMeta, Spec: *of.Spec.DeepCopy(), Status: of.Status}
	w.Spec.Default()
	p := &pool{patience: silentFor + 2*w.Spec.Forecast.Interval.Duration}
	p.removing = slices.Clone(w.Status.Leaving)
	if a := w.Status.Action; a != nil {
		p.removing = append(p.removing, a.Nodes...)
	}
	if acts(w) {
		p.candidates = w.Status.Candidates
	}
	if grows(w) {
		p.growing = growths(w)
	}
	if len(w.Status.Decisions) > 0 {
		p.said = saidOf(w.Status.Decisions[0])
	}
	switch {
	case before != nil && same(p.said, before.said):
		p.heard = before.heard
	case before != nil:
		p.heard = now
	default:
		p.heard = latest(p.said)
		if p.heard.After(now) {
			p.heard = now
		}
	}
	return p
}

// works tells whether the pool has been heard of lately.
func (p *pool) works(now time.Time) bool { return now.Sub(p.heard) <= p.patience }

// holds tells whether what it has committed to may still be so.
func (p *pool) holds(now time.Time) bool { return now.Sub(p.heard) <= p.patience+keptFor }

// saidOf is what tells two decisions apart, without what people are told of them.
func saidOf(d v1alpha1.PoolDecision) v1alpha1.PoolDecision {
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

// acts tells whether the pool does what it decides: one for show removes nothing, and one that is being deleted has ended.
func acts(w *v1alpha1.WorkerPool) bool { return !w.Spec.DryRun && w.DeletionTimestamp.IsZero() }

// stuck are the reasons of decisions after which a pool launches nothing now, whatever is asked for.
var stuck = map[string]bool{
	string(plan.NoRoom): true, string(plan.BackingOff): true, string(plan.NotAllAsk): true, string(plan.AtMaximum): true,
	string(plan.WorkersUnknown): true, string(nodepool.NotDecided): true,
}

// grows tells whether a node of the pool can be waited for: one that it may launch, or one that is on its way. What is not
// known is not waited for.
func grows(w *v1alpha1.WorkerPool) bool {
	s := &w.Status
	switch {
	case !acts(w), len(s.Decisions) == 0, !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionHealthy):
		return false
	case s.Action != nil && s.Action.Kind == string(plan.ActionUp):
		return true
	}
	return s.Workers != nil && *s.Workers < w.Spec.Max && !stuck[s.Decisions[0].Reason]
}

// growths are what new nodes of the pool come up with, one for each zone and type. Labels that only the cloud knows are
// missing: for a pod that asks for these nobody waits. So is the label of the pool, which a Node gets when it has joined:
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
