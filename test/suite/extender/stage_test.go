package extender

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stageLabel is on the nodes of a test, and asked for by its pods.
const stageLabel = "test.foresail.dev/stage"

// stage is a part of the cluster that one test, or one variant of it, has to itself.
type stage struct {
	*testing.T
	name string // of the namespace, and of the nodes' label
}

func newStage(t *testing.T, name string) *stage {
	t.Helper()
	s := &stage{T: t, name: name}
	_, err := cluster.Client().CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.until("the service account of "+name, func() bool {
		_, err := cluster.Client().CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	t.Cleanup(s.clear)
	return s
}

// clear removes what would cost other tests time.
func (s *stage) clear() {
	ctx := context.WithoutCancel(s.Context())
	now := *metav1.NewDeleteOptions(0)
	require.NoError(s, cluster.Client().AppsV1().Deployments(s.name).DeleteCollection(ctx, *metav1.NewDeleteOptions(1),
		metav1.ListOptions{}))
	require.NoError(s, cluster.Client().CoreV1().Nodes().DeleteCollection(ctx, now,
		metav1.ListOptions{LabelSelector: stageLabel + "=" + s.name}))
	require.NoError(s, cluster.Client().CoreV1().Namespaces().Delete(ctx, s.name, now))
	require.NoError(s, cluster.Client().CoreV1().Pods(s.name).DeleteCollection(ctx, now, metav1.ListOptions{}))
}

// size is what a node can allocate.
type size struct{ cpu, memory, pods string }

var worker = size{"4", "8Gi", "110"}

func (z size) use() use {
	cpu, memory := resource.MustParse(z.cpu), resource.MustParse(z.memory)
	return use{cpu.AsApproximateFloat64(), memory.AsApproximateFloat64()}
}

// addNodes returns the names of nodes once they are Ready.
func (s *stage) addNodes(n int, z size) []string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	names, err := cluster.AddNodesLike(ctx, n, func(node *corev1.Node) {
		node.Labels[stageLabel] = s.name
		capacity := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(z.cpu), corev1.ResourceMemory: resource.MustParse(z.memory),
			corev1.ResourcePods: resource.MustParse(z.pods),
		}
		node.Status.Capacity, node.Status.Allocatable = capacity, capacity
	})
	require.NoError(s, err)
	return names
}

// until waits until done says that something is so.
func (s *stage) until(what string, done func() bool) {
	s.Helper()
	require.Truef(s, s.within(patience, done), "not in time: %s", what)
}

// within tells whether something became so in time.
func (s *stage) within(limit time.Duration, done func() bool) bool {
	deadline := time.Now().Add(limit)
	for !done() {
		if time.Now().After(deadline) || s.Context().Err() != nil {
			return false
		}
		time.Sleep(100 * time.Millisecond)
	}
	return true
}

// spec is what pods are like.
type spec struct {
	app            string
	scheduler      string
	cpu, memory    string // requests
	maxCPU, maxMem string // limits; "" for none
	uses           use    // really
	change         func(*corev1.Pod)
}

// pod returns one for the stage's nodes. No controller brings it back.
func (s *stage) pod(name string, p spec) *corev1.Pod {
	requirements := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, q := range []struct {
		list  corev1.ResourceList
		name  corev1.ResourceName
		value string
	}{
		{requirements.Requests, corev1.ResourceCPU, p.cpu}, {requirements.Requests, corev1.ResourceMemory, p.memory},
		{requirements.Limits, corev1.ResourceCPU, p.maxCPU}, {requirements.Limits, corev1.ResourceMemory, p.maxMem},
	} {
		if q.value != "" {
			q.list[q.name] = resource.MustParse(q.value)
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: s.name, Labels: map[string]string{"app": p.app},
			Annotations: map[string]string{
				usesCPU:    resource.NewMilliQuantity(int64(1000*p.uses.cpu), resource.DecimalSI).String(),
				usesMemory: resource.NewQuantity(int64(p.uses.memory), resource.BinarySI).String(),
			},
		},
		Spec: corev1.PodSpec{
			SchedulerName: p.scheduler, NodeSelector: map[string]string{stageLabel: s.name},
			TerminationGracePeriodSeconds: new(int64(1)), AutomountServiceAccountToken: new(bool),
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: requirements}},
		},
	}
	if p.change != nil {
		p.change(pod)
	}
	return pod
}

// put creates a pod.
func (s *stage) put(pod *corev1.Pod) {
	s.Helper()
	_, err := cluster.Client().CoreV1().Pods(s.name).Create(s.Context(), pod, metav1.CreateOptions{})
	require.NoError(s, err)
}

// resident puts a pod on a node, past all schedulers, and waits until it is Ready.
func (s *stage) resident(node string, p spec) {
	s.Helper()
	pod := s.pod(p.app+"-"+node, p)
	pod.Spec.NodeName = node
	s.put(pod)
	s.until("pod "+pod.Name+" to be ready", func() bool {
		pod, err := cluster.Client().CoreV1().Pods(s.name).Get(s.Context(), pod.Name, metav1.GetOptions{})
		return err == nil && isReady(pod)
	})
}

// create creates so many pods, as fast as the API server takes them; uses may differ from one to the next.
func (s *stage) create(n int, p spec, each func(i int, pod *corev1.Pod)) {
	s.Helper()
	require.NoError(s, s.tryCreate(n, p, each))
}

// tryCreate is for goroutines of their own.
func (s *stage) tryCreate(n int, p spec, each func(i int, pod *corev1.Pod)) error {
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		pod := s.pod(fmt.Sprintf("%s-%04d", p.app, i), p)
		if each != nil {
			each(i, pod)
		}
		group.Go(func() error {
			_, err := cluster.Client().CoreV1().Pods(s.name).Create(s.Context(), pod, metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

// podsOf lists the pods of an app.
func (s *stage) podsOf(app string) []corev1.Pod {
	s.Helper()
	list, err := cluster.Client().CoreV1().Pods(s.name).List(s.Context(),
		metav1.ListOptions{LabelSelector: "app=" + app, ResourceVersion: "0"})
	require.NoError(s, err)
	return list.Items
}

// placed waits until so many pods of an app are on nodes, and returns them.
func (s *stage) placed(app string, n int) []corev1.Pod {
	s.Helper()
	var pods []corev1.Pod
	s.until(fmt.Sprintf("%d pods of %s to be on nodes", n, app), func() bool {
		pods = slices.DeleteFunc(s.podsOf(app), func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" })
		return len(pods) >= n
	})
	return pods
}

// ready waits until so many pods of an app are Ready.
func (s *stage) ready(app string, n int) []corev1.Pod {
	s.Helper()
	var pods []corev1.Pod
	s.until(fmt.Sprintf("%d pods of %s to be ready", n, app), func() bool {
		pods = slices.DeleteFunc(s.podsOf(app), func(pod corev1.Pod) bool { return !isReady(&pod) })
		return len(pods) >= n
	})
	return pods
}

// on counts pods by node.
func on(pods []corev1.Pod) map[string]int {
	counts := map[string]int{}
	for _, pod := range pods {
		counts[pod.Spec.NodeName]++
	}
	return counts
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
