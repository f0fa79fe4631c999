package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/plan"
)

func TestSpecOfDefaults(t *testing.T) {
	require.Equal(t, Spec{
		Plan: plan.Pool{
			Name: "workers", Min: 2, Max: 10, MaxBatchDown: 10, Mode: plan.Any,
			PodsPerNode: 10,
			Idle:        plan.Idle{For: 15 * time.Second, CPU: 0.3, Memory: 0.5, WaitCost: 1}, Consolidate: true,
			Repair: plan.Repair{Conditions: []plan.UnhealthyCondition{
				{Type: "Ready", Status: "False", After: 30 * time.Minute},
				{Type: "Ready", Status: "Unknown", After: 30 * time.Minute},
			}},
			DistrustShare: 0.45, DistrustCount: 3, MaxFailureBackoff: 30 * time.Minute,
		},
		Interval: 15 * time.Second, StartupTime: time.Minute,
		Join:       Join{Timeout: 10 * time.Minute, KeepFailedFor: 15 * time.Minute},
		Drain:      Drain{Timeout: 5 * time.Minute},
		Disruption: Disruption{Budgets: ParseBudgets([]v1alpha1.DisruptionBudget{{Nodes: intstr.FromString("10%")}})},
	}, specOf(v1alpha1.WorkerPoolSpec{Min: 2, Max: 10}))
}

// specOf leaves out what TestLaunchSpec is about.
func specOf(spec v1alpha1.WorkerPoolSpec) Spec {
	s := Of("workers", spec)
	s.LaunchSpec = ""
	return s
}

// TestLaunchSpec: a launch comes to something else by another provider, template or time to join, and by no other
// field.
func TestLaunchSpec(t *testing.T) {
	of := func(change func(*v1alpha1.WorkerPoolSpec)) string {
		spec := v1alpha1.WorkerPoolSpec{Max: 2,
			Provider: v1alpha1.PoolProvider{EC2: &v1alpha1.EC2Provider{LaunchTemplate: "lt-1"}}}
		change(&spec)
		return Of("workers", spec).LaunchSpec
	}
	before := of(func(*v1alpha1.WorkerPoolSpec) {})
	require.Equal(t, before, of(func(s *v1alpha1.WorkerPoolSpec) { s.Max, s.DryRun = 3, true }))
	for _, change := range []func(*v1alpha1.WorkerPoolSpec){
		func(s *v1alpha1.WorkerPoolSpec) { s.Provider.EC2.LaunchTemplate = "lt-2" },
		func(s *v1alpha1.WorkerPoolSpec) { s.Template.Labels = map[string]string{"team": "shop"} },
		func(s *v1alpha1.WorkerPoolSpec) { s.Join.Timeout = &metav1.Duration{Duration: time.Hour} },
		func(s *v1alpha1.WorkerPoolSpec) { s.Market.MaxPrice = "0.1" },
	} {
		require.NotEqual(t, before, of(change))
	}
}

func TestSpecOf(t *testing.T) {
	minute := &metav1.Duration{Duration: time.Minute}
	budgets, before := []v1alpha1.DisruptionBudget{{Nodes: intstr.FromInt32(7)}}, metav1.Unix(7, 0)
	half, seven := resource.MustParse("500m"), int32(7)
	require.Equal(t, Spec{
		Plan: plan.Pool{
			Name: "workers", Min: 1, Max: 3, MaxBatchUp: 7, MaxBatchDown: 10, Mode: plan.All,
			PendingFor: time.Minute, PodsPerNode: 10,
			Idle:       plan.Idle{For: time.Minute, CPU: 0.5, Memory: 0.5, WaitCost: 1},
			CooldownUp: time.Minute, CooldownDown: time.Minute, SpotRatio: 0.5, OnDemandBase: 4,
			Repair: plan.Repair{Disabled: true, Conditions: []plan.UnhealthyCondition{
				{Type: "KernelDeadlock", Status: "True", After: 7 * time.Minute},
				{Type: "Ready", Status: "False", After: 7 * time.Minute},
				{Type: "Ready", Status: "Unknown", After: 7 * time.Minute},
			}},
			DistrustShare: 0.45, DistrustCount: 3, MaxFailureBackoff: 30 * time.Minute,
		},
		Template: scheduling.Template{
			Labels: map[string]string{"team": "shop"},
			Taints: []corev1.Taint{{Key: "spot", Value: "yes", Effect: corev1.TaintEffectNoSchedule}},

			StartupTaints: []corev1.Taint{{Key: "agent", Value: "no", Effect: corev1.TaintEffectNoExecute}},
		},
		Interval: time.Minute, StartupTime: time.Minute,
		Join:  Join{Timeout: time.Minute, KeepFailedFor: time.Minute},
		Drain: Drain{Timeout: time.Minute, Force: true}, DryRun: true,
		Disruption: Disruption{Budgets: ParseBudgets(budgets), ExpireAfter: time.Minute, ReplaceBefore: time.Unix(7, 0),
			Paused: true},
	}, specOf(v1alpha1.WorkerPoolSpec{
		Min: 1, Max: 3, MaxBatchUp: &seven, Mode: v1alpha1.PoolModeAll, DryRun: true,
		PendingFor: minute, Interval: minute, StartupTime: minute,
		Idle:     v1alpha1.IdlePolicy{For: minute, CPU: &half, Memory: &half},
		Cooldown: v1alpha1.PoolCooldown{Up: minute, Down: minute},
		Market:   v1alpha1.MarketPolicy{SpotRatio: &half, OnDemandBase: 4},
		Join:     v1alpha1.JoinPolicy{Timeout: minute, KeepFailedFor: minute},
		Drain:    v1alpha1.DrainPolicy{Timeout: minute, Force: true},
		Disruption: v1alpha1.PoolDisruption{Budgets: budgets, ExpireAfter: minute, ReplaceBefore: &before, Paused: true,
			ConsolidationPolicy: v1alpha1.ConsolidateWhenIdle, Repair: v1alpha1.NodeRepair{
				After: &metav1.Duration{Duration: 7 * time.Minute}, Disabled: true,
				Conditions: []v1alpha1.UnhealthyCondition{{Type: "KernelDeadlock", Status: "True"}},
			}},
		Template: v1alpha1.NodeTemplate{
			Labels: map[string]string{"team": "shop"},
			Taints: []v1alpha1.NodeTaint{{Key: "spot", Value: "yes", Effect: "NoSchedule"}},

			StartupTaints: []v1alpha1.NodeTaint{{Key: "agent", Value: "no", Effect: "NoExecute"}},
		},
	}))
}
