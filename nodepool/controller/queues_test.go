package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
)

const queue = "https://sqs.eu-central-1.amazonaws.com/123456789012/interruptions"

// ec2Pool returns a pool of EC2 instances with a queue.
func ec2Pool(name, queue string) *v1alpha1.WorkerPool {
	return &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.WorkerPoolSpec{
		Max: 5, DeletionPolicy: v1alpha1.DeletionPolicyOrphan, Provider: v1alpha1.PoolProvider{EC2: &v1alpha1.EC2Provider{
			LaunchTemplate: "lt-0123456789abcdef0", Region: "eu-central-1",
			InstanceTypes: []string{"t3.medium"}, InterruptionQueue: queue,
			Subnets: []v1alpha1.EC2Subnet{{Zone: "eu-central-1a", ID: "subnet-0123456789abcdef0"}},
		}},
	}}
}

// TestAQueueIsOfOnePool: a pool deletes messages about instances that are not its own.
func TestAQueueIsOfOnePool(t *testing.T) {
	b := newBench(t)
	first := b.createPool(ec2Pool("a-first", queue))
	next(b, b.made)
	second := b.createPool(ec2Pool("b-second", queue))
	b.eventually(func() bool {
		require.NoError(t, client.IgnoreNotFound(b.client.Get(t.Context(), client.ObjectKeyFromObject(second), second)))
		return meta.IsStatusConditionFalse(second.Status.Conditions, v1alpha1.ConditionHealthy)
	})
	condition := meta.FindStatusCondition(second.Status.Conditions, v1alpha1.ConditionHealthy)
	assert.Contains(t, condition.Message, "provider.ec2.interruptionQueue")
	assert.Contains(t, condition.Message, "WorkerPool a-first")
	assert.Empty(t, b.made)

	b.update(second, func(s *v1alpha1.WorkerPoolSpec) { s.Provider.EC2.InterruptionQueue = queue + "-2" })
	runs := next(b, b.made)
	assert.Equal(t, "b-second", runs.options.Name)
	health := func() error {
		runs.options.Reporter.Report(t.Context(), nodepool.CycleReport{Pool: "b-second"})
		return next(b, b.told).Health
	}
	require.NoError(t, health())

	b.update(first, func(s *v1alpha1.WorkerPoolSpec) { s.Provider.EC2.InterruptionQueue = queue + "-2" })
	b.eventually(func() bool { return health() != nil })
	require.ErrorContains(t, health(), "WorkerPool a-first")
	require.NoError(t, b.client.Delete(t.Context(), first))
	b.eventually(func() bool { return health() == nil })
}

func TestTheOlderOfTwoPoolsIsFirst(t *testing.T) {
	at := func(name string, second int) *v1alpha1.WorkerPool {
		created := metav1.NewTime(time.Unix(int64(second), 0))
		return &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: created}}
	}
	assert.True(t, wasFirst(at("b", 1), at("a", 2)))
	assert.False(t, wasFirst(at("a", 2), at("b", 1)))
	assert.True(t, wasFirst(at("a", 1), at("b", 1)))
	assert.False(t, wasFirst(at("a", 1), at("a", 1)), "nor is a pool before itself")
}
