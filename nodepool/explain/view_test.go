package explain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/prices"
	"github.com/foresail/foresail/nodepool/state"
)

// The steps of an action have the state of each node, with its age.
func TestStepsOfAnAction(t *testing.T) {
	e := busy()
	open := e.Journal.Action
	open.Slots[1].Requested = now.Add(-20 * time.Second)
	open.Targets = []state.Removal{
		{Node: "node-7", Zone: "a", State: state.RemovalDraining, Since: now.Add(-40 * time.Second), Error: "1 pod is left"},
	}
	assert.Equal(t, &ActionView{Title: "ScaleUp up-1, started 40s ago", Reason: "cpu will be 0.91", Steps: []StepView{
		{Of: "node 1", State: "Failed", Placement: "a, t3, Spot", Error: "no capacity"},
		{Of: "node 2", State: "Launched, requested 20s ago", Placement: "b, t3, Spot", Instance: "i-2"},
		{Of: "node-7", State: "Draining for 40s", Placement: "a", Error: "1 pod is left"},
	}}, ViewOf(e).Action)
}

func TestNodesHaveTheirStateInTheJournal(t *testing.T) {
	e := busy()
	e.Journal.Action.Slots[1].Node = "node-2"
	known := []Node{
		{Name: "node-1", State: "Ready"}, {Name: "node-2", State: "Ready"}, {Name: "node-6", State: "NotReady, cordoned"},
	}
	e.AddNodes(known)
	assert.Equal(
		t,
		[]Node{
			{Name: "node-1", State: "Ready"}, {Name: "node-2", State: "Ready", Market: fleet.Spot},
			{Name: "node-6", State: "NotReady, cordoned, Draining"},
		},
		e.Nodes,
	)
	assert.Equal(t, "Ready", known[1].State)
	assert.Empty(t, known[1].Market, "the argument is shared and must not change")
}

func TestMarketOfNode(t *testing.T) {
	for label, want := range map[[2]string]fleet.Market{
		{"eks.amazonaws.com/capacityType", "ON_DEMAND"}: fleet.OnDemand,
		{"karpenter.sh/capacity-type", "spot"}:          fleet.Spot,
		{"node.kubernetes.io/lifecycle", "normal"}:      fleet.OnDemand,
		{"node.kubernetes.io/lifecycle", "other"}:       "",
		{"role", "spot"}: "",
	} {
		assert.Equal(t, want, marketOfNode(map[string]string{label[0]: label[1]}), label)
	}
}

func TestTableListsPodsWithoutANode(t *testing.T) {
	seen := &cluster.Cluster{}
	for i := range maxPods + 20 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		seen.Pending = append(seen.Pending, cluster.Pending{Pod: pod, Since: now.Add(-time.Minute), Filtered: i == 1})
	}
	seen.Pending[0].Stuck = "its claim does not exist"
	e := Explanation{At: now}
	e.AddPods(seen)
	assert.Len(t, e.Pods, maxPods)
	text := tableOf(t, e)
	assert.Contains(t, text, "Pods of the cluster that the scheduler finds no node for: 120\n"+
		"  shop/web  for 1m  no node could run it, as its claim does not exist\n"+
		"  shop/web  for 1m  the scheduler extender filters all nodes")
	assert.NotContains(t, tableOf(t, Explanation{At: now}), "finds no node")
}

func TestHourlyCost(t *testing.T) {
	usd := prices.Prices{"m5.large": {OnDemand: new(0.096), Spot: new(0.04)}, "t3.small": {OnDemand: new(0.02)}}
	for want, nodes := range map[string][]Node{
		"$0.00 an hour": nil,
		"$0.14 an hour": {{InstanceType: "m5.large", Market: fleet.Spot}, {InstanceType: "m5.large", Market: fleet.OnDemand}},
		"at most $0.12 an hour: no label shows whether 2 of the nodes are Spot": {
			{InstanceType: "m5.large"}, {InstanceType: "t3.small"},
		},
		"unknown: there is no price of c5.large OnDemand, t3.small Spot": {
			{InstanceType: "t3.small", Market: fleet.Spot}, {InstanceType: "c5.large"},
		},
		"unknown: the label node.kubernetes.io/instance-type is missing on 1": {{}, {InstanceType: "t3.small"}},
	} {
		assert.Equal(t, want, HourlyCost(nodes, usd))
	}
}

func TestLineOf(t *testing.T) {
	e := busy()
	pool := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: e.Spec, Status: e.Status}
	line := LineOf(pool, now)
	assert.Equal(t, Line{
		Name: "workers", Provider: "simulated, in zones a, b", Healthy: true, State: "Working, dry run",
		Workers: new(int32(5)), Ready: new(int32(4)), Desired: new(int32(7)),
		Min: 2, Max: 10, Action: "ScaleUp for 40s", Decision: "ScaleUp LoadPredicted",
	}, line)
	pool.Status.Conditions = append(
		pool.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDeleting, Status: metav1.ConditionTrue},
	)
	assert.Equal(t, "Deleting, dry run", LineOf(pool, now).State)
	assert.Equal(t, "no status yet", LineOf(&v1alpha1.WorkerPool{}, now).State)
	require.Nil(t, LineOf(&v1alpha1.WorkerPool{}, now).Workers)
}
