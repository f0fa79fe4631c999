package drain

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

func TestEvictEmptiesTheNode(t *testing.T) {
	f := newFixture(t)
	f.addPod("movable")
	f.addPod("other-node", func(pod *corev1.Pod) { pod.Spec.NodeName = "elsewhere" })
	f.addPod("daemon", ownedBy("DaemonSet"))
	f.addPod(
		"mirror", bare, func(pod *corev1.Pod) { pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} },
	)
	f.addPod("succeeded", bare, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
	f.addPod("failed", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	everything := func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	f.addPod("tolerant", everything)

	assert.Equal(t, Progress{Remaining: 1}, f.evict(Limits{}), "it counts the pods that the pass found")
	assert.Equal(t, Progress{}, f.evict(Limits{}))
	assert.Equal(t, Progress{}, f.evict(Limits{Force: true, Grace: time.Second}), "force deletes no others either")
	assert.Equal(t, []string{"daemon", "failed", "mirror", "other-node", "succeeded", "tolerant"}, f.names())
	f.addPod(
		"tolerant-critical", everything, func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "system-cluster-critical" },
	)
	assert.Len(t, f.evict(Limits{}).Blocked, 1, "it blocks the drain")
	assert.Equal(t, Progress{}, f.evict(Limits{Force: true}), "it would be created again if it were deleted")
}

func TestEvictAwaitsDeletedPods(t *testing.T) {
	f := newFixture(t)
	f.addPod("slow", grace(600))
	assert.Equal(t, 1, f.evict(Limits{}).Remaining)
	assert.EqualValues(t, 600, *f.getPod("slow").DeletionGracePeriodSeconds)
	assert.Equal(t, 1, f.evict(Limits{Grace: time.Minute}).Remaining)
	assert.EqualValues(t, 600, *f.getPod("slow").DeletionGracePeriodSeconds, "without force the grace period stays")

	f.now = f.now.Add(10 * time.Minute)
	assert.Equal(t, 1, f.evict(Limits{}).Remaining)
	f.now = f.now.Add(time.Minute + time.Second)
	assert.Equal(t, 0, f.evict(Limits{}).Remaining, "no kubelet confirms its end")
	assert.Equal(t, []string{"slow"}, f.names())

	// Another process has not seen the deletion before, and may have another time.
	f.drainer = &Drainer{Client: f.client, Now: func() time.Time { return f.now.Add(time.Hour) }}
	assert.Equal(t, 1, f.evict(Limits{}).Remaining)
}

// While a watch shows only pods that were seen to be deleted, nothing is read from the API server.
func TestEvictReadsNothingWhileWatchedPodsAreDeleted(t *testing.T) {
	f := newFixture(t)
	f.addPod("slow", grace(600))
	watched := []types.NamespacedName{{Namespace: f.namespace, Name: "slow"}}
	f.drainer.Leaving = func(string) ([]types.NamespacedName, bool) { return watched, len(watched) > 0 }
	f.evict(Limits{})
	assert.Equal(t, 1, f.evict(Limits{}).Remaining, "now the deletion is seen")
	zero := int64(0)
	require.NoError(
		t, f.client.CoreV1().Pods(f.namespace).Delete(t.Context(), "slow", metav1.DeleteOptions{GracePeriodSeconds: &zero}),
	)
	assert.Equal(t, Progress{Remaining: 1}, f.evict(Limits{}), "the watch has not shown its end")

	f.addPod("another", grace(600))
	assert.Equal(t, 1, f.evict(Limits{Force: true}).Remaining, "force reads pods again")
	assert.NotNil(t, f.getPod("another").DeletionTimestamp)
	watched[0].Name = "another"
	f.now = f.now.Add(12 * time.Minute)
	assert.Equal(t, 1, f.evict(Limits{}).Remaining, "its deletion is seen only now")
	f.now = f.now.Add(12 * time.Minute)
	assert.Equal(t, 0, f.evict(Limits{}).Remaining, "it overstays")
	watched = nil
	assert.Equal(t, 0, f.evict(Limits{}).Remaining)
}

func TestEvictLimitsGrace(t *testing.T) {
	f := newFixture(t)
	f.addPod("slow", grace(600))
	f.addPod("quick", grace(5))
	assert.Equal(t, 2, f.evict(Limits{Grace: 30500 * time.Millisecond}).Remaining)
	assert.EqualValues(t, 31, *f.getPod("slow").DeletionGracePeriodSeconds)
	assert.EqualValues(t, 5, *f.getPod("quick").DeletionGracePeriodSeconds)
}

func TestForceShortensTheGracePeriod(t *testing.T) {
	f := newFixture(t)
	f.addPod("slow", grace(600))
	f.evict(Limits{})
	assert.Equal(t, 1, f.evict(Limits{Force: true}).Remaining)
	assert.EqualValues(t, 600, *f.getPod("slow").DeletionGracePeriodSeconds, "no limit was given")
	assert.Equal(t, 1, f.evict(Limits{Force: true, Grace: 20 * time.Second}).Remaining)
	assert.EqualValues(t, 20, *f.getPod("slow").DeletionGracePeriodSeconds)
	version := f.getPod("slow").ResourceVersion
	f.evict(Limits{Force: true, Grace: 20 * time.Second})
	assert.Equal(t, version, f.getPod("slow").ResourceVersion, "it is not deleted twice")
}

// TestPodsEndInTime: remaining pods are deleted as late as their own grace period allows, regardless of budgets, and
// have at least a second.
func TestPodsEndInTime(t *testing.T) {
	f := newFixture(t)
	f.now = time.Now()
	ends := f.now.Add(10 * time.Minute)
	f.addPod("guarded", grace(60))
	f.addPod("system", grace(60), func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "system-cluster-critical" })
	f.addPod("slow", grace(3600))
	f.addBudget("never", "guarded", 0)
	progress := f.evict(Limits{Ends: ends})
	assert.Len(t, progress.Refused, 1)
	assert.Len(t, progress.Blocked, 1)
	assert.InDelta(t, 600, *f.getPod("slow").DeletionGracePeriodSeconds, 1, "its own grace period is longer")
	f.now = ends.Add(-61 * time.Second)
	assert.Len(t, f.evict(Limits{Ends: ends, EndsAll: true}).Refused, 1)
	f.now = ends.Add(-59 * time.Second)
	assert.Equal(t, 3, f.evict(Limits{Ends: ends}).Remaining)
	assert.EqualValues(t, 59, *f.getPod("guarded").DeletionGracePeriodSeconds)
	assert.Nil(t, f.getPod("system").DeletionTimestamp)
	f.now = ends.Add(time.Minute)
	f.evict(Limits{Ends: ends, EndsAll: true})
	assert.EqualValues(t, 1, *f.getPod("system").DeletionGracePeriodSeconds)
}

func TestEvictKeepsBlockingPods(t *testing.T) {
	f := newFixture(t)
	f.addPod("bare", bare)
	f.addPod("movable")
	blockers, err := f.drainer.Blockers(t.Context(), f.node)
	require.NoError(t, err)
	require.Len(t, blockers, 1)
	assert.Contains(t, blockers[0], f.namespace+"/bare has no controller")

	progress := f.evict(Limits{})
	assert.Equal(t, 2, progress.Remaining)
	assert.Equal(t, blockers, progress.Blocked)
	assert.Equal(t, 1, f.evict(Limits{}).Remaining)
	assert.Equal(t, []string{"bare"}, f.names())

	assert.Equal(t, Progress{Remaining: 1}, f.evict(Limits{Force: true}))
	assert.Equal(t, Progress{}, f.evict(Limits{Force: true}))
	assert.Empty(t, f.names())
}

func TestAttached(t *testing.T) {
	f := newFixture(t)
	for volume, node := range map[string]string{"pv-b": f.node, "pv-a": f.node, "pv-c": "elsewhere"} {
		_, err := f.client.StorageV1().VolumeAttachments().Create(t.Context(), &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: f.node + "-" + volume},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "test", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new(volume)},
			},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		got, err := f.drainer.Attached(t.Context())
		require.NoError(c, err)
		assert.ElementsMatch(c, []string{"pv-a", "pv-b"}, got[f.node])
	}, 30*time.Second, 20*time.Millisecond)
}

func TestArriving(t *testing.T) {
	f := newFixture(t)
	arriving := func() bool {
		t.Helper()
		got, err := f.drainer.Arriving(t.Context())
		require.NoError(t, err)
		return got
	}
	unbound := func(pod *corev1.Pod) { pod.Spec.NodeName = "" }
	f.addPod("bound")
	f.addPod("ended", unbound, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	f.addPod("gated", unbound, func(pod *corev1.Pod) {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "test.foresail.dev/wait"}}
	})
	f.addPod("unschedulable", unbound, func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}
	})
	require.False(t, arriving())

	f.addPod("new", unbound)
	require.True(t, arriving())
	require.NoError(t, f.client.CoreV1().Pods(f.namespace).Delete(t.Context(), "new", metav1.DeleteOptions{}))
	require.False(t, arriving())
}

func TestBlockersAreReadFromTheServer(t *testing.T) {
	for name, test := range map[string]struct {
		edits []func(*corev1.Pod)
		want  bool
	}{
		"of-a-replicaset": {want: false},
		"daemonset":       {edits: []func(*corev1.Pod){ownedBy("DaemonSet")}},
		"mirror": {edits: []func(*corev1.Pod){bare, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}}},
		"finished":  {edits: []func(*corev1.Pod){bare, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }}},
		"elsewhere": {edits: []func(*corev1.Pod){bare, func(pod *corev1.Pod) { pod.Spec.NodeName = "elsewhere" }}},
		"bare":      {edits: []func(*corev1.Pod){bare}, want: true},
		"not-safe": {
			edits: []func(*corev1.Pod){annotated("cluster-autoscaler.kubernetes.io/safe-to-evict", "false")}, want: true,
		},
		"safe":        {edits: []func(*corev1.Pod){annotated("cluster-autoscaler.kubernetes.io/safe-to-evict", "true")}},
		"undisrupted": {edits: []func(*corev1.Pod){annotated("karpenter.sh/do-not-disrupt", "true")}, want: true},
		"for-a-time":  {edits: []func(*corev1.Pod){annotated("karpenter.sh/do-not-disrupt", "4h")}, want: true},
		"critical": {
			edits: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "system-cluster-critical" }},
			want:  true,
		},
		"system": {
			edits: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Namespace = metav1.NamespaceSystem }}, want: true,
		},
		"system-owned": {
			edits: []func(*corev1.Pod){ownedBy("DaemonSet"), func(pod *corev1.Pod) { pod.Namespace = metav1.NamespaceSystem }},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.addPod(name, test.edits...)
			blockers, err := f.drainer.Blockers(t.Context(), f.node)
			require.NoError(t, err)
			assert.Equal(t, test.want, len(blockers) == 1, "%v", blockers)
		})
	}
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations = map[string]string{key: value} }
}

func TestDeletedPodsBlockNothing(t *testing.T) {
	f := newFixture(t)
	f.addPod("bare", bare, grace(600))
	require.NoError(t, f.client.CoreV1().Pods(f.namespace).Delete(t.Context(), "bare", metav1.DeleteOptions{}))
	blockers, err := f.drainer.Blockers(t.Context(), f.node)
	require.NoError(t, err)
	assert.Empty(t, blockers)
	assert.Equal(t, Progress{Remaining: 1}, f.evict(Limits{}))
}

func TestBudgetsRefuseEvictions(t *testing.T) {
	f := newFixture(t)
	f.addPod("guarded")
	f.addPod("free")
	f.addBudget("never", "guarded", 0)

	progress := f.evict(Limits{})
	assert.Equal(t, 2, progress.Remaining)
	require.Len(t, progress.Refused, 1)
	assert.Contains(
		t, progress.Refused[0],
		f.namespace+"/guarded: The disruption budget never needs 1 healthy pods and has 1 currently",
	)
	assert.Equal(t, []string{"guarded"}, f.names(), "one refusal does not block the others")

	f.allow("never", 1)
	assert.Equal(t, Progress{Remaining: 1}, f.evict(Limits{}))
	assert.Equal(t, Progress{}, f.evict(Limits{}))
}

// TestNewBudgetsRefuseEvictions: the pass does not wait for the ten seconds that the server names.
func TestNewBudgetsRefuseEvictions(t *testing.T) {
	f := newFixture(t)
	f.addPod("guarded")
	f.createBudget("new", "guarded")
	config := server.RESTConfig()
	requests := 0
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			requests++
			return next.RoundTrip(r)
		})
	})
	f.drainer.Client = kubernetes.NewForConfigOrDie(config)
	progress := f.evict(Limits{})
	require.Len(t, progress.Refused, 1)
	assert.Contains(t, progress.Refused[0], "The disruption budget new is still being processed")
	assert.Equal(t, 2, requests, "a list and one eviction")
}

func TestSeveralBudgetsRefuseEvictions(t *testing.T) {
	f := newFixture(t)
	f.addPod("guarded")
	f.addBudget("one", "guarded", 1)
	f.addBudget("two", "guarded", 1)
	progress := f.evict(Limits{})
	require.Len(t, progress.Refused, 1)
	assert.Contains(t, progress.Refused[0], "more than one PodDisruptionBudget")
	assert.Equal(t, []string{"guarded"}, f.names())
	assert.Equal(t, Progress{Remaining: 1}, f.evict(Limits{Force: true}))
	assert.Empty(t, f.names())
}

// TestEvictKeepsReplacedPods replaces a pod on another node, with the same name, between the list and the eviction.
func TestEvictKeepsReplacedPods(t *testing.T) {
	for name, limits := range map[string]Limits{"evict": {}, "force": {Force: true}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.addPod("stateful-0")
			config := server.RESTConfig()
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Method != http.MethodGet {
						require.NoError(t, f.client.CoreV1().Pods(f.namespace).Delete(t.Context(), "stateful-0", metav1.DeleteOptions{}))
						f.addPod("stateful-0", func(pod *corev1.Pod) { pod.Spec.NodeName = "elsewhere" })
					}
					return next.RoundTrip(r)
				})
			})
			f.drainer.Client = kubernetes.NewForConfigOrDie(config)
			assert.Equal(t, 1, f.evict(limits).Remaining)
			assert.Nil(t, f.getPod("stateful-0").DeletionTimestamp)
			assert.Equal(t, 0, f.evict(limits).Remaining)
		})
	}
}

// TestEvictReturnsForbidden has a user who may not evict.
func TestEvictReturnsForbidden(t *testing.T) {
	f := newFixture(t)
	f.addPod("movable")
	f.drainer.Client = f.clientWith(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	)
	progress, err := f.drainer.Evict(t.Context(), f.node, Limits{})
	require.ErrorContains(t, err, "evict pod "+f.namespace+"/movable: ")
	assert.Equal(t, Progress{Remaining: 1}, progress)
}

// TestPermissionsSuffice uses a drainer with only the permissions that the package documents.
func TestPermissionsSuffice(t *testing.T) {
	f := newFixture(t)
	f.addPod("movable")
	f.addPod("bare", bare)
	f.drainer.Client = f.clientWith(
		rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch", "delete"},
		},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
	)
	require.NoError(t, f.drainer.Taint(t.Context(), f.node, "one"))
	require.NoError(t, f.drainer.Cordon(t.Context(), f.node))
	_, err := f.drainer.Marked(t.Context())
	require.NoError(t, err)
	f.evict(Limits{})
	f.evict(Limits{Force: true})
	assert.Equal(t, Progress{}, f.evict(Limits{}))
	require.NoError(t, f.drainer.Restore(t.Context(), f.node))
	require.NoError(t, f.drainer.DeleteNode(t.Context(), f.node, "test:///"+f.node))
}

// clientWith returns the client of a user with only these permissions.
func (f *fixture) clientWith(rules ...rbacv1.PolicyRule) kubernetes.Interface {
	f.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.node}, Rules: rules}
	_, err := f.client.RbacV1().ClusterRoles().Create(f.Context(), role, metav1.CreateOptions{})
	require.NoError(f, err)
	_, err = f.client.RbacV1().ClusterRoleBindings().Create(f.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.node},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.node},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: f.node}},
	}, metav1.CreateOptions{})
	require.NoError(f, err)
	config, err := server.RESTConfigFor(f.node)
	require.NoError(f, err)
	client := kubernetes.NewForConfigOrDie(config)
	// The API server watches roles.
	require.EventuallyWithT(f, func(c *assert.CollectT) {
		_, err := client.CoreV1().Pods("").List(f.Context(), metav1.ListOptions{Limit: 1})
		assert.NoError(c, err)
	}, 10*time.Second, 20*time.Millisecond)
	return client
}

func (f *fixture) getPod(name string) *corev1.Pod {
	f.Helper()
	pod, err := f.client.CoreV1().Pods(f.namespace).Get(f.Context(), name, metav1.GetOptions{})
	require.NoError(f, err)
	return pod
}

// createBudget adds a budget for the pods of an app, without the status that a controller sets.
func (f *fixture) createBudget(name, app string) {
	f.Helper()
	one := intstr.FromInt32(1)
	_, err := f.client.PolicyV1().PodDisruptionBudgets(f.namespace).Create(f.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &one,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}, metav1.CreateOptions{})
	require.NoError(f, err)
}

// addBudget adds a budget, with the status that the controller would set for one healthy pod.
func (f *fixture) addBudget(name, app string, allowed int32) {
	f.createBudget(name, app)
	f.allow(name, allowed)
}

func (f *fixture) allow(name string, allowed int32) {
	f.Helper()
	budgets := f.client.PolicyV1().PodDisruptionBudgets(f.namespace)
	budget, err := budgets.Get(f.Context(), name, metav1.GetOptions{})
	require.NoError(f, err)
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, DisruptionsAllowed: allowed, CurrentHealthy: 1, DesiredHealthy: 1,
		ExpectedPods: 1,
	}
	_, err = budgets.UpdateStatus(f.Context(), budget, metav1.UpdateOptions{})
	require.NoError(f, err)
}
