package loadgen

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func pod(name, ip string, isReady corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "main", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 3000}}},
		}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: isReady},
			},
		},
	}
}

func TestReadyPodsFollowTheCluster(t *testing.T) {
	other := pod("other", "127.1.0.9", corev1.ConditionTrue)
	other.Labels = nil
	client := fake.NewClientset(pod("two", "127.1.0.2", corev1.ConditionTrue),
		pod("one", "127.1.0.1", corev1.ConditionTrue),
		pod("starting", "127.1.0.3", corev1.ConditionFalse), other)
	ready, err := NewReadyPods(client, "test", "app=web", 0)
	require.NoError(t, err)
	assert.Empty(t, ready.Endpoints(), "none before Start")
	require.NoError(t, ready.Start(t.Context()))
	assert.Equal(t, []string{"127.1.0.1:3000", "127.1.0.2:3000"}, ready.Endpoints(), "those there are known at once")

	become := func(what string, want ...string) {
		t.Helper()
		require.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, ready.Endpoints()) }, 20*time.Second,
			5*ms, what)
	}
	pods := client.CoreV1().Pods("test")
	_, err = pods.UpdateStatus(t.Context(), pod("starting", "127.1.0.3", corev1.ConditionTrue), metav1.UpdateOptions{})
	require.NoError(t, err)
	become("ready now", "127.1.0.1:3000", "127.1.0.2:3000", "127.1.0.3:3000")
	_, err = pods.UpdateStatus(t.Context(), pod("one", "127.1.0.1", corev1.ConditionFalse), metav1.UpdateOptions{})
	require.NoError(t, err)
	become("ready no more", "127.1.0.2:3000", "127.1.0.3:3000")
	require.NoError(t, pods.Delete(t.Context(), "two", metav1.DeleteOptions{}))
	become("deleted", "127.1.0.3:3000")
	leaving := pod("starting", "127.1.0.3", corev1.ConditionTrue)
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: time.Unix(1,
		0)}, []string{"test.foresail.dev/stay"}
	_, err = pods.Update(t.Context(), leaving, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(ready.Endpoints()) == 0 }, 20*time.Second, 5*ms, "being deleted")
}

func TestReadyPodsAreNoticedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready, err := NewReadyPods(fake.NewClientset(), "", "", 5*time.Second)
		require.NoError(t, err)
		ready.set(pod("one", "127.1.0.1", corev1.ConditionTrue), true)
		assert.Equal(t, []string{"127.1.0.1:3000"}, ready.Endpoints())

		ready.set(pod("two", "127.1.0.2", corev1.ConditionTrue), false)
		<-time.After(2 * time.Second)
		ready.set(pod("one", "127.1.0.1", corev1.ConditionFalse), false)
		ready.set(pod("one", "127.1.0.1", corev1.ConditionFalse), false) // nothing new
		<-time.After(2999 * ms)
		assert.Equal(t, []string{"127.1.0.1:3000"}, ready.Endpoints())
		<-time.After(ms)
		assert.Equal(t, []string{"127.1.0.1:3000", "127.1.0.2:3000"}, ready.Endpoints())
		<-time.After(1999 * ms)
		assert.Len(t, ready.Endpoints(), 2)
		<-time.After(ms)
		assert.Equal(t, []string{"127.1.0.2:3000"}, ready.Endpoints())
		assert.Len(t, ready.history, 1, "what is past is forgotten")
	})
}

func TestFirstPodIsNoticedLateToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready, err := NewReadyPods(fake.NewClientset(), "", "", 5*time.Second)
		require.NoError(t, err)
		ready.set(pod("one", "127.1.0.1", corev1.ConditionTrue), false)
		<-time.After(4999 * ms)
		assert.Empty(t, ready.Endpoints())
		<-time.After(ms)
		assert.Len(t, ready.Endpoints(), 1)
	})
}

func TestReadyPodsErrors(t *testing.T) {
	_, err := NewReadyPods(fake.NewClientset(), "", "a=b=c", 0)
	require.ErrorContains(t, err, "label selector")
	_, err = NewReadyPods(fake.NewClientset(), "", "", -1)
	require.ErrorContains(t, err, "delay")
	ready, err := NewReadyPods(fake.NewClientset(), "", "", 0)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, ready.Start(ctx), context.Canceled)
}
