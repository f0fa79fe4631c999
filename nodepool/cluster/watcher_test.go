package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	storagevolume "k8s.io/component-helpers/storage/volume"

	"github.com/foresail/foresail/internal/objectcache"
	"github.com/foresail/foresail/test/env/controlplane"
)

const (
	soon  = 30 * time.Second
	often = 20 * time.Millisecond
)

// clock is a time that a test sets.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return epoch.AddDate(10, 0, 0).Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// watching starts a watcher that ends with the test.
func watching(t testing.TB, client kubernetes.Interface, now func() time.Time) *Watcher {
	t.Helper()
	w := NewWatcher(client, WithClock(now))
	_, err := w.Observe(t.Context())
	require.ErrorIs(t, err, ErrUnsynced)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return w
}

// objects holds all objects of a cluster.
func objects(t assert.TestingT, c *Cluster) string {
	out, err := json.MarshalIndent(c, "", " ")
	assert.NoError(t, err)
	return string(out)
}

// churn changes a cluster at random through the API, and ignores conflicts with itself.
type churn struct {
	client kubernetes.Interface
	random *rand.Rand
}

func (c *churn) step(ctx context.Context) error {
	name := func(of string, n int) string { return fmt.Sprintf("%s-%d", of, c.random.IntN(n)) }
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	core := c.client.CoreV1()
	switch c.random.IntN(16) {
	case 0:
		_, err := core.Nodes().Create(ctx,
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name("n", 8)}}, metav1.CreateOptions{})
		return err
	case 1:
		return core.Nodes().Delete(ctx, name("n", 40), now)
	case 2:
		return c.toggleNode(ctx, name("n", 8))
	case 3, 4, 14, 15:
		return c.createPod(ctx, name("p", 24), name("n", 8), name("app", 4))
	case 5:
		return core.Pods("default").Delete(ctx, name("p", 24), now)
	case 6, 7:
		return c.changePod(ctx, name("p", 24))
	case 8:
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name("d", 3)}}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"d": "d"}}
		set.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"d": "d"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i",
				Resources: corev1.ResourceRequirements{Requests: quantities("10m", "1Mi")}}}}}
		_, err := c.client.AppsV1().DaemonSets("default").Create(ctx, set, metav1.CreateOptions{})
		return err
	case 9:
		return errors.Join(c.client.AppsV1().DaemonSets("default").Delete(ctx, name("d", 6), now),
			c.client.PolicyV1().PodDisruptionBudgets("default").Delete(ctx, name("b", 9), now))
	case 10:
		return c.budget(ctx, name("b", 3), name("app", 4))
	case 11, 12:
		return c.claim(ctx, name("c", 4), name("v", 4))
	default:
		return c.volume(ctx, name("v", 4), name("class", 3))
	}
}

// claim makes a claim, or changes what is bound to it, or what node its volume is made for; or removes it.
func (c *churn) claim(ctx context.Context, name, volume string) error {
	claims := c.client.CoreV1().PersistentVolumeClaims("default")
	found, err := claims.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		made := claimed(fmt.Sprintf("class-%d", c.random.IntN(3)), "1Gi")
		made.Name = name
		made.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		_, err = claims.Create(ctx, made, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	switch c.random.IntN(4) {
	case 0:
		return errors.Join(
			claims.Delete(ctx, name, metav1.DeleteOptions{}),
			func() error {
				_, err := claims.Patch(ctx, name, types.MergePatchType,
					[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				return err
			}())
	case 1:
		metav1.SetMetaDataAnnotation(&found.ObjectMeta, storagevolume.AnnSelectedNode, "n-1")
	default:
		boundTo(volume)(found)
	}
	_, err = claims.Update(ctx, found, metav1.UpdateOptions{})
	return err
}

// volume makes a volume, or a StorageClass; or removes them.
func (c *churn) volume(ctx context.Context, name, class string) error {
	volumes, classes := c.client.CoreV1().PersistentVolumes(), c.client.StorageV1().StorageClasses()
	switch c.random.IntN(5) {
	case 0:
		return errors.Join(
			volumes.Delete(ctx, name, metav1.DeleteOptions{}),
			func() error {
				_, err := volumes.Patch(ctx, name, types.MergePatchType,
					[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				return err
			}())
	case 1:
		return classes.Delete(ctx, class, metav1.DeleteOptions{})
	case 2:
		made := classNamed([]string{"ebs.csi.aws.com", storagevolume.NotSupportedProvisioner}[c.random.IntN(2)],
			storagev1.VolumeBindingWaitForFirstConsumer)
		made.Name = class
		_, err := classes.Create(ctx, made, metav1.CreateOptions{})
		return err
	default:
		made := volumeIn(corev1.LabelTopologyZone, string(rune('a'+c.random.IntN(3))))
		made.Name, made.Spec.StorageClassName = name, class
		made.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		made.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/x"}
		_, err := volumes.Create(ctx, made, metav1.CreateOptions{})
		return err
	}
}

func (c *churn) toggleNode(ctx context.Context, name string) error {
	n, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(epoch)}}
	if c.random.IntN(3) == 0 {
		n.Status.Conditions[0].Status = corev1.ConditionFalse
	}
	n.Status.Images = []corev1.ContainerImage{{Names: []string{"large"}, SizeBytes: 1}}
	n, err = c.client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	n.Spec.Unschedulable = c.random.IntN(2) == 0
	_, err = c.client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
	return err
}

func (c *churn) createPod(ctx context.Context, name, node, app string) error {
	p := onNode(name)
	p.Labels["app"] = app
	p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = app, "uid-"+p.OwnerReferences[0].UID
	p.Spec.NodeName = node
	p.Spec.AutomountServiceAccountToken = new(false)
	p.Spec.Containers[0].Image = "i"
	if c.random.IntN(2) == 0 {
		using(fmt.Sprintf("c-%d", c.random.IntN(4)))(p)
	}
	switch c.random.IntN(6) {
	case 0, 1:
		p.Spec.NodeName = ""
	case 2:
		p.OwnerReferences = nil
	case 3:
		p.Finalizers = []string{"example.com/slow"}
	case 4:
		terms := []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
		p.Spec.Affinity = &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}
	_, err := c.client.CoreV1().Pods("default").Create(ctx, p, metav1.CreateOptions{})
	return err
}

func (c *churn) changePod(ctx context.Context, name string) error {
	p, err := c.client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	switch kind := c.random.IntN(6); {
	case p.Spec.NodeName == "" && kind < 3:
		unschedulable(epoch.Add(time.Duration(c.random.IntN(100)) * time.Second))(p)
	case p.Spec.NodeName == "":
		return c.client.CoreV1().Pods("default").Bind(ctx,
			&corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name},
				Target: corev1.ObjectReference{Kind: "Node", Name: "n-1"}}, metav1.CreateOptions{})
	case kind == 0:
		p.Status.Phase = corev1.PodSucceeded
	case kind < 3:
		p.Labels["app"] = fmt.Sprintf("app-%d", c.random.IntN(4))
		_, err := c.client.CoreV1().Pods("default").Update(ctx, p, metav1.UpdateOptions{})
		return err
	default:
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady,
			Status: []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}[c.random.IntN(2)]}}
	}
	_, err = c.client.CoreV1().Pods("default").UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}

func (c *churn) budget(ctx context.Context, name, app string) error {
	budgets := c.client.PolicyV1().PodDisruptionBudgets("default")
	b, err := budgets.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		b = budgetFor(name, 0)
		b.Spec.Selector.MatchLabels["app"] = app
		b, err = budgets.Create(ctx, b, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation,
		DisruptionsAllowed: int32(c.random.IntN(2))}
	_, err = budgets.UpdateStatus(ctx, b, metav1.UpdateOptions{})
	return err
}

// harmless reports whether a step only came at a bad moment: its object exists already, is gone, or is not allowed.
func harmless(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if !harmless(e) {
				return false
			}
		}
		return true
	}
	return err == nil || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) ||
		apierrors.IsConflict(err) || apierrors.IsInvalid(err)
}

func TestWatcherSeesWhatListSees(t *testing.T) {
	api := controlplane.BorrowFor(t)
	c := churn{api.Client(), rand.New(rand.NewPCG(1, 2))}
	for range 60 {
		require.NoError(t, ignoring(c.step(t.Context())))
	}
	now := new(clock).now
	w := watching(t, api.Client(), now)
	seen, located, stuck, replaced := 0, 0, 0, 0
	for range 8 {
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			got, err := w.Observe(context.Background())
			if !assert.NoError(t, err) {
				return
			}
			want, err := List(context.Background(), api.Client(), now())
			if assert.NoError(t, err) && assert.Equal(t, objects(t, want), objects(t, got)) {
				seen += len(got.Nodes) * len(got.Pending) * len(got.DaemonSets)
				for _, p := range got.Pending {
					located += len(p.Volumes)
					stuck += len(p.Stuck)
				}
				for i := range want.Nodes {
					replacements := want.Replacements(&want.Nodes[i])
					assert.Equal(t, replacements, got.Replacements(&got.Nodes[i]))
					for _, p := range replacements {
						replaced += len(p.Volumes) + len(p.Stuck)
					}
				}
			}
		}, soon, often)
		for range 80 {
			require.NoError(t, ignoring(c.step(t.Context())))
		}
	}
	assert.Positive(t, seen, "there was something to see")
	assert.Positive(t, located, "there were volumes")
	assert.Positive(t, stuck, "there were claims without volumes")
	assert.Positive(t, replaced, "bound pods had claims")
}

func ignoring(err error) error {
	if harmless(err) {
		return nil
	}
	return err
}

func TestWake(t *testing.T) {
	api := controlplane.BorrowFor(t)
	c := churn{api.Client(), rand.New(rand.NewPCG(1, 2))}
	w := watching(t, api.Client(), new(clock).now)
	ctx := t.Context()
	woken := func(why string) {
		t.Helper()
		select {
		case <-w.Wake():
		case <-time.After(soon):
			require.Fail(t, "not woken", why)
		}
	}
	nodes := api.Client().CoreV1().Nodes()
	n, err := nodes.Create(ctx, nodeNamed("n"), metav1.CreateOptions{})
	require.NoError(t, err)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{})
	require.NoError(t, err)
	woken("a Node became Ready")
	require.NoError(t, c.createPod(ctx, "p", "", "app"))
	p, err := api.Client().CoreV1().Pods("default").Get(ctx, "p", metav1.GetOptions{})
	require.NoError(t, err)
	unschedulable(epoch)(p)
	_, err = api.Client().CoreV1().Pods("default").UpdateStatus(ctx, p, metav1.UpdateOptions{})
	require.NoError(t, err)
	woken("a pod became unschedulable")
	require.NoError(t, nodes.Delete(ctx, "n", metav1.DeleteOptions{}))
	woken("a Node went")
}

func TestWakeOnlyForWhatMatters(t *testing.T) {
	w := NewWatcher(nil)
	quiet := func(why string) {
		t.Helper()
		select {
		case <-w.Wake():
			assert.Fail(t, "woken", why)
		default:
		}
	}
	ready := nodeNamed("n")
	ready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	require.NoError(t, w.nodes.Add(nodeNamed("n")))
	quiet("a Node that is not Ready")
	require.NoError(t, w.nodes.Update(ready))
	assert.NotEmpty(t, w.Wake())
	<-w.Wake()
	require.NoError(t, w.nodes.Update(ready.DeepCopy()))
	quiet("a Node that is Ready still")
	require.NoError(t, w.nodes.Update(nodeNamed("n")))
	quiet("a Node that is not Ready any more")
	require.NoError(t, w.pods.Add(onNode("p")))
	quiet("a pod that has a node")
	require.NoError(t, w.pods.Add(onNode("q", unschedulable(epoch))))
	assert.NotEmpty(t, w.Wake())
	<-w.Wake()
	require.NoError(t, w.pods.Update(onNode("q", unschedulable(epoch))))
	quiet("a pod that is unschedulable still")
	require.NoError(t, w.pods.Delete(onNode("q", unschedulable(epoch))))
	quiet("a pod that is gone")
	require.NoError(t, w.nodes.Replace(nil, ""))
	assert.NotEmpty(t, w.Wake())
}

func TestOutOfTouch(t *testing.T) {
	// its own, to stop it
	api, err := controlplane.Start(t.Context(), controlplane.Options{APIOnly: true, Progress: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, api.Stop()) })
	var c clock
	w := watching(t, api.Client(), c.now)
	observe := func() error {
		_, err := w.Observe(context.Background())
		return err
	}
	require.Eventually(t, func() bool { return observe() == nil }, soon, often)
	c.advance(time.Hour)
	require.NoError(t, observe(), "nothing happens for an hour")
	require.NoError(t, api.Stop())
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		later := c.now().Add(objectcache.MaxOutage + time.Second)
		return w.nodes.State(later) != nil && w.pods.State(later) != nil
	}, soon, often)
	require.NoError(t, observe(), "a restart of the API server is borne")
	c.advance(objectcache.MaxOutage + time.Second)
	require.ErrorContains(t, observe(), "pods: out of touch for 31s")
}

// A drain waits for the pods of a node if all are being deleted, and lists them if one is not, or
// the watch may be stale.
func TestLeaving(t *testing.T) {
	w := NewWatcher(nil)
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: epoch} }
	slow, daemon := onNode("slow", leaving), onNode("daemon", ownedBy("DaemonSet"))
	node := slow.Spec.NodeName
	_, all := w.Leaving(node)
	assert.False(t, all, "nothing has been listed")
	require.NoError(t, w.pods.Replace([]any{slow, daemon}, ""))
	pods, all := w.Leaving(node)
	assert.True(t, all)
	assert.Equal(t, []types.NamespacedName{keyOf("slow")}, pods)
	require.NoError(t, w.pods.Add(onNode("stays")))
	_, all = w.Leaving(node)
	assert.False(t, all)
	require.NoError(t, w.pods.Replace([]any{daemon}, ""))
	_, all = w.Leaving(node)
	assert.False(t, all, "it may be empty, which is read")
}

func TestPodsOfOneControllerShare(t *testing.T) {
	w := NewWatcher(nil)
	for i := range 3 {
		require.NoError(t, w.pods.Add(onNode(fmt.Sprint("p", i))))
	}
	require.NoError(t, w.pods.Add(onNode("other", func(p *corev1.Pod) { p.Labels["app"] = "db" })))
	kinds := map[*Kind]int{}
	for _, r := range w.pods.Rows() {
		kinds[r.pod.Kind]++
	}
	assert.ElementsMatch(t, []int{3, 1},
		[]int{kinds[w.pods.Rows()[keyOf("p0")].pod.Kind], kinds[w.pods.Rows()[keyOf("other")].pod.Kind]})
}

func TestPodsOfADaemonSetShare(t *testing.T) {
	w := NewWatcher(nil)
	var kinds []*Kind
	for _, node := range []string{"n", "m"} {
		require.NoError(t, w.pods.Add(onNode(node, ownedBy("DaemonSet"), func(p *corev1.Pod) {
			p.Spec.NodeName = node
			named := corev1.NodeSelectorRequirement{
				Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{
						{MatchFields: []corev1.NodeSelectorRequirement{named}}}}}}
		})))
		kinds = append(kinds, w.pods.Rows()[keyOf(node)].pod.Kind)
	}
	assert.Same(t, kinds[0], kinds[1])
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}
