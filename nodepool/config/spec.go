// Package config is the configuration of a pool in the form that its phases use.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/plan"
)

// Spec is the part of a pool's configuration that each cycle reads, with its defaults filled in.
type Spec struct {
	Generation int64 // of the WorkerPool; 0: it has none
	Plan       plan.Pool
	// LaunchSpec identifies the configuration of new nodes. A change ends the backoff of failed
	// launches.
	LaunchSpec  string
	Weight      int // of two pools that could run a pod, the one with the larger weight launches for it
	Template    scheduling.Template
	Interval    time.Duration // of cycles while nothing is open
	StartupTime time.Duration // T_I until launches have been measured
	Join        Join
	Drain       Drain
	Disruption  Disruption
	// DryRun only decides and reports: no action begins, and an open one waits in the journal until
	// the dry run is over. The lease is kept, so that only one process reports.
	DryRun bool
}

// Join defines when a launch has failed.
type Join = plan.Join

// Drain defines how nodes are drained.
type Drain struct {
	Timeout time.Duration // of evictions, until the node is uncordoned
	Force   bool          // remaining pods are deleted after the timeout
}

// Disruption defines which workers are outdated, in addition to those that a provider finds, and
// how many may be replaced at once.
type Disruption struct {
	Budgets       Budgets
	ExpireAfter   time.Duration // from the launch; 0 = never
	ReplaceBefore time.Time     // workers launched before it are replaced once it has come; zero = none
	Paused        bool          // no outdated worker is replaced
}

// Of returns the Spec of a WorkerPool. Absent fields have the defaults of the API server.
func Of(name string, spec v1alpha1.WorkerPoolSpec) Spec {
	s := spec.DeepCopy()
	s.Default()
	return Spec{
		Plan:        planOf(name, s),
		LaunchSpec:  launchOf(s),
		Weight:      int(s.Weight),
		Template:    templateOf(s.Template),
		Interval:    s.Interval.Duration,
		StartupTime: s.StartupTime.Duration,
		Join: Join{
			Timeout:       s.Join.Timeout.Duration,
			KeepFailedFor: s.Join.KeepFailedFor.Duration,
		},
		Drain: Drain{
			Timeout: s.Drain.Timeout.Duration,
			Force:   s.Drain.Force,
		},
		Disruption: disruptionOf(&s.Disruption),
		DryRun:     s.DryRun,
	}
}

// launchOf returns equal text for specs with equal launches.
func launchOf(s *v1alpha1.WorkerPoolSpec) string {
	data, err := json.Marshal([]any{s.Provider, s.Template, s.Market.MaxPrice, s.Join.Timeout})
	if err != nil {
		panic(fmt.Sprintf("encode a spec: %v", err)) // it came from JSON
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// Identity returns equal text for policies with equal drains.
func (d Drain) Identity() string { return fmt.Sprintf("timeout %s, force %t", d.Timeout, d.Force) }

func disruptionOf(d *v1alpha1.PoolDisruption) Disruption {
	out := Disruption{Budgets: ParseBudgets(d.Budgets), Paused: d.Paused}
	if d.ExpireAfter != nil {
		out.ExpireAfter = d.ExpireAfter.Duration
	}
	if d.ReplaceBefore != nil {
		out.ReplaceBefore = d.ReplaceBefore.Time
	}
	return out
}

// repairOf adds the conditions that always make a Node unhealthy to those of the spec.
func repairOf(r *v1alpha1.NodeRepair) plan.Repair {
	out := plan.Repair{Disabled: r.Disabled}
	add := func(kind, status string) {
		out.Conditions = append(out.Conditions, plan.UnhealthyCondition{Type: kind, Status: status, After: r.After.Duration})
	}
	for _, c := range r.Conditions {
		add(c.Type, string(c.Status))
	}
	for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
		add(string(corev1.NodeReady), string(status))
	}
	return out
}

const (
	// maxBatchDown bounds one scale-down of an idle pool. disruption.budgets are the limit that users set.
	maxBatchDown = 10
	// podsPerNode is the number of pods without requests that a new node is assumed to hold: without requests no better
	// number is known, and a pool that guesses too few nodes launches the others in the next cycle.
	podsPerNode = 10
)

func planOf(name string, s *v1alpha1.WorkerPoolSpec) plan.Pool {
	return plan.Pool{
		Name: name, Min: int(s.Min), Max: int(s.Max), Mode: plan.Mode(s.Mode),
		MaxBatchUp:   int(*s.MaxBatchUp),
		MaxBatchDown: maxBatchDown,
		PendingFor:   s.PendingFor.Duration,
		PodsPerNode:  podsPerNode,
		Idle: plan.Idle{
			For:      s.Idle.For.Duration,
			WaitCost: number(s.Idle.WaitCost),
			CPU:      number(s.Idle.CPU),
			Memory:   number(s.Idle.Memory),
		},
		Consolidate:       s.Disruption.ConsolidationPolicy == v1alpha1.ConsolidateWhenUnderutilized,
		Repair:            repairOf(&s.Disruption.Repair),
		CooldownUp:        s.Cooldown.Up.Duration,
		CooldownDown:      s.Cooldown.Down.Duration,
		SpotRatio:         number(s.Market.SpotRatio),
		OnDemandBase:      int(s.Market.OnDemandBase),
		DistrustShare:     plan.DefaultDistrustShare,
		DistrustCount:     plan.DefaultDistrustCount,
		MaxFailureBackoff: plan.DefaultMaxFailureBackoff,
	}
}

func templateOf(t v1alpha1.NodeTemplate) scheduling.Template {
	return scheduling.Template{Labels: t.Labels, Taints: taintsOf(t.Taints), StartupTaints: taintsOf(t.StartupTaints)}
}

func taintsOf(taints []v1alpha1.NodeTaint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range taints {
		out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return out
}

// number returns the float nearest to a quantity, so that 700m and 0.7 are the same.
func number(q *resource.Quantity) float64 {
	f, _ := strconv.ParseFloat(q.AsDec().String(), 64)
	return f
}
