package nodepool

import (
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/drain"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// scenario is a workflow of the pool from beginning to rest.
type scenario struct {
	name    string
	spec    v1alpha1.WorkerPoolSpec
	workers int // that there are at first
	pods    int // and perNode of them fit on a worker
	perNode int
	stride  time.Duration                         // of ticks; 0 = 5 s
	begin   func(*stage)                          // once the workers are there
	during  func(*stage, map[string]*corev1.Node) // at each step
	want    int                                   // workers at the end
	launch  int                                   // instances that it takes
	// whether it has come to what it is about; nil: what else is checked tells
	rest    func(*stage) bool
	blocked bool // it ends with a maximum that it may not come down to
	several bool // on EC2, the pool chooses among several types by price
}

func scenarios() []scenario {
	return []scenario{scaleUp(), scaleDown(), interruption(), joinFailure(), refusal(), repair()}
}

// bounds is a spec that is quick in everything, but leaves more time than it takes until another
// process has the lease: what was begun is to be gone on with, not given up.
func bounds(least, most int32) v1alpha1.WorkerPoolSpec {
	seconds := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Second} }
	return v1alpha1.WorkerPoolSpec{
		Min: least, Max: most, MaxBatchUp: new(int32(2)),
		PendingFor: seconds(0),
		Cooldown:   v1alpha1.PoolCooldown{Up: seconds(20), Down: seconds(20)},
		Join:       v1alpha1.JoinPolicy{Timeout: seconds(180), KeepFailedFor: seconds(45)},
		Drain:      v1alpha1.DrainPolicy{Timeout: seconds(150)},
	}
}

// scaleUp has two pods that no node takes.
func scaleUp() scenario {
	return scenario{
		name: "scale-up", spec: bounds(1, 5), workers: 1, pods: 1, perNode: 1, want: 3, launch: 2,
		begin: func(s *stage) {
			s.replicas.count = 3
			s.step(time.Second)
		},
	}
}

// severalTypes has two pods that no node takes, and no Spot capacity of the cheapest type.
func severalTypes() scenario {
	sc := scaleUp()
	sc.name, sc.several, sc.spec.Market.SpotRatio = "several types", true, new(resource.MustParse("1"))
	sc.begin = func(s *stage) {
		s.cloud.(*onEC2).cloud.Short(awstest.Shortage{InstanceType: instanceType, Market: "spot"})
		s.replicas.count = 3
		s.step(time.Second)
	}
	sc.rest = func(s *stage) bool {
		for _, i := range s.launched() {
			require.Equal(s.t, otherType, i.InstanceType)
		}
		return true
	}
	return sc
}

// scaleDown has two workers more than the maximum, all with pods.
func scaleDown() scenario {
	return scenario{name: "scale-down", spec: bounds(1, 2), workers: 4, pods: 6, perNode: 4, want: 2}
}

// interruption has the cloud take one of two workers back.
func interruption() scenario {
	return scenario{
		name: "interruption", spec: bounds(2, 4), workers: 2, pods: 4, perNode: 4, want: 2, launch: 1,
		begin: func(s *stage) {
			require.NoError(s.t, s.cloud.interrupt(s.t.Context(), s.living()[0].ID, 2*time.Minute))
			s.step(time.Second)
		},
	}
}

// joinFailure has an instance that never joins, in the place of which another does.
func joinFailure() scenario {
	return scenario{
		name: "join failure", spec: bounds(1, 2), perNode: 1, stride: 15 * time.Second, want: 1, launch: 2,
		begin: func(s *stage) { require.NoError(s.t, s.cloud.strand(s.t.Context(), true)) },
		during: func(s *stage, _ map[string]*corev1.Node) {
			if len(s.launched()) == 1 {
				require.NoError(s.t, s.cloud.strand(s.t.Context(), false))
			}
		},
	}
}

// refusal has a worker more than the maximum, and a budget that refuses as soon as one is chosen.
func refusal() scenario {
	return scenario{
		name: "refusal", spec: bounds(1,
			2), workers: 3, pods: 3, perNode: 4, stride: 15 * time.Second, want: 3, blocked: true,
		rest: func(s *stage) bool { return len(s.record().DrainBackoff) > 0 },
		during: func(s *stage, nodes map[string]*corev1.Node) {
			for _, node := range nodes {
				if _, marked := drain.MarkOf(node); marked {
					s.protect()
				}
			}
		},
	}
}

// repair has a worker whose kubelet has stopped, and a budget that lets none of its pods go. What
// replaces it is launched at once.
func repair() scenario {
	spec := bounds(3, 5)
	spec.Drain.Timeout = &metav1.Duration{Duration: 20 * time.Second}
	spec.Disruption.Repair.After = &metav1.Duration{Duration: time.Minute}
	return scenario{
		name: "repair", spec: spec, workers: 3, pods: 5, perNode: 4, stride: 15 * time.Second, want: 3, launch: 1,
		begin: func(s *stage) {
			s.protect()
			s.stopKubelet(s.living()[0])
			s.step(time.Second)
		},
	}
}

// stopKubelet has the Node of an instance be as one whose kubelet has stopped.
func (s *stage) stopKubelet(i fleet.Instance) {
	s.t.Helper()
	for _, node := range s.nodes() {
		if node.Spec.ProviderID != i.ProviderID {
			continue
		}
		now := metav1.NewTime(s.clock.Now())
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown,
			LastTransitionTime: now, LastHeartbeatTime: now}}
		_, err := s.client.CoreV1().Nodes().UpdateStatus(s.t.Context(), node, metav1.UpdateOptions{})
		require.NoError(s.t, err)
		return
	}
	require.Fail(s.t, "no node", "of %s", i.ID)
}

// protect adds a budget that lets no pod go, once.
func (s *stage) protect() {
	s.t.Helper()
	budgets := s.client.PolicyV1().PodDisruptionBudgets(s.name)
	list, err := budgets.List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	if len(list.Items) > 0 {
		return
	}
	all := intstr.FromString("100%")
	budget, err := budgets.Create(s.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &all,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	n := int32(s.scenario.pods)
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, CurrentHealthy: n,
		DesiredHealthy: n, ExpectedPods: n}
	_, err = budgets.UpdateStatus(s.t.Context(), budget, metav1.UpdateOptions{})
	require.NoError(s.t, err)
}
