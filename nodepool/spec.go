package nodepool

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/packing"
	"github.com/foresail/foresail/nodepool/plan"
)

// Spec is the part of a pool's configuration that each tick reads anew, with its defaults filled in.
type Spec struct {
	Plan        plan.Pool
	Template    packing.Template
	Interval    time.Duration // of ticks while nothing is open
	InitTimeout time.Duration // T_I until launches have been measured
	Join        Join
	Drain       Drain
	// DryRun decides and tells, and does nothing: it neither begins an action nor resumes an open one, which waits in the
	// journal until the dry run is over. The lease is kept all the same, so that one process tells.
	DryRun bool
}

// Join says when a launch has failed.
type Join struct {
	Timeout       time.Duration // from asking for the instance until its Node is Ready
	KeepFailedFor time.Duration // an instance that did not join is terminated after
	KeepFailed    bool          // never
}

// Drain says how nodes are emptied.
type Drain struct {
	Timeout           time.Duration // of evictions, until the node is given back
	Force             bool          // pods that are left after the timeout are deleted
	CordonOnRebalance bool          // a node that the cloud advises to leave takes no new pods
}

// defaultInterval is that of ticks.
const defaultInterval = 15 * time.Second

// SpecOf returns the Spec of a WorkerPool. Fields that are absent have the defaults that the API server fills in.
func SpecOf(name string, s v1alpha1.WorkerPoolSpec) Spec {
	return Spec{
		Plan:        planOf(name, s),
		Template:    templateOf(s.Template),
		Interval:    duration(s.Forecast.Interval, defaultInterval),
		InitTimeout: duration(s.Forecast.InitTimeout, 2*time.Minute),
		Join: Join{
			Timeout:       duration(s.Join.Timeout, 10*time.Minute),
			KeepFailedFor: duration(s.Join.KeepFailedFor, 15*time.Minute),
			KeepFailed:    s.Join.KeepFailed,
		},
		Drain: Drain{
			Timeout:           duration(s.Drain.Timeout, 5*time.Minute),
			Force:             s.Drain.Force,
			CordonOnRebalance: s.Drain.CordonOnRebalance,
		},
		DryRun: s.DryRun,
	}
}

func planOf(name string, s v1alpha1.WorkerPoolSpec) plan.Pool {
	p := plan.Pool{
		Name: name, Min: int(s.Min), Max: int(s.Max),
		MaxBatchUp:   count(s.MaxBatchUp, 2),
		MaxBatchDown: count(s.MaxBatchDown, 1),
		Mode:         plan.Any,
		PendingFor:   duration(s.Pending.For, 30*time.Second),
		PodsPerNode:  count(s.Pending.PodsPerNode, 10),
		Idle: plan.Idle{
			For:    duration(s.Idle.For, 10*time.Minute),
			CPU:    quantity(s.Idle.CPU, 0.3),
			Memory: quantity(s.Idle.Memory, 0.5),
		},
		CooldownUp:        duration(s.Cooldown.Up, 5*time.Minute),
		CooldownDown:      duration(s.Cooldown.Down, 10*time.Minute),
		SpotRatio:         quantity(s.Market.SpotRatio, 0.7),
		OnDemandBase:      int(s.Market.OnDemandBase),
		Victims:           []plan.Scorer{plan.FullestZone, plan.Idlest, plan.FewestPods, plan.Oldest},
		ScaleDownMargin:   quantity(s.Forecast.ScaleDownMargin, 0.3),
		DistrustShare:     plan.DefaultDistrustShare,
		DistrustCount:     plan.DefaultDistrustCount,
		MaxFailureBackoff: plan.DefaultMaxFailureBackoff,
	}
	if s.Mode == v1alpha1.PoolModeAll {
		p.Mode = plan.All
	}
	if len(s.Victims) > 0 {
		p.Victims = nil
		for _, v := range s.Victims {
			p.Victims = append(p.Victims, plan.Scorer(v))
		}
	}
	return p
}

func templateOf(t v1alpha1.NodeTemplate) packing.Template {
	out := packing.Template{Labels: t.Labels}
	for _, taint := range t.Taints {
		out.Taints = append(out.Taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: corev1.TaintEffect(taint.Effect)})
	}
	return out
}

func duration(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}

func count(n *int32, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return int(*n)
}

func quantity(q *resource.Quantity, otherwise float64) float64 {
	if q == nil {
		return otherwise
	}
	return q.AsApproximateFloat64()
}
