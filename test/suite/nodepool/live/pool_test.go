package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/simulated"
	"github.com/foresail/foresail/nodepool/state"
	"github.com/foresail/foresail/nodepool/state/kubernetes"
	"github.com/foresail/foresail/test/env/foresail"
)

const (
	poolLabel = "live.foresail.dev/pool"  // of nodes, and asked for by all pods
	seatLabel = "live.foresail.dev/seat-" // and a name: of single nodes, for pods that belong nowhere else
	hold      = "live.foresail.dev/hold"  // finalizer of pods that take their time to leave
)

// pool is a WorkerPool under test with everything around it.
type pool struct {
	*testing.T
	name  string // of the WorkerPool, and of the namespace of its pods
	cloud *simulated.Cloud
}

// newPool makes the surroundings of a pool; create makes the pool.
func newPool(t *testing.T, name string) *pool {
	t.Helper()
	p := &pool{T: t, name: name}
	p.cloud = simulated.New(simulated.Options{
		Client: cluster.Client(), Pool: name, Now: time.Now,
		Spec: v1alpha1.SimulatedProvider{Namespace: p.cloudNamespace()},
	})
	rights, err := foresail.ReadManifest("components/simulated-nodes/rbac.yaml")
	require.NoError(t, err)
	rights = bytes.ReplaceAll(rights, []byte("namespace: foresail-simulated\n"),
		[]byte("namespace: "+p.cloudNamespace()+"\n"))
	for _, space := range []string{p.name, p.cloudNamespace()} {
		_, err := cluster.Client().CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	_, err = cluster.Apply(t.Context(), rights)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.story())
		}
	})
	return p
}

// cloudNamespace is where the instances of the pool are. Faults are those of a namespace.
func (p *pool) cloudNamespace() string { return p.name + "-cloud" }

// create makes the WorkerPool. Its times are short, and it is never idle: what makes it shrink is
// its maximum.
func (p *pool) create(least, most int32, change func(*v1alpha1.WorkerPoolSpec)) {
	p.Helper()
	seconds := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Second} }
	none := resource.MustParse("0")
	object := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Spec: v1alpha1.WorkerPoolSpec{
		Min: least, Max: most, MaxBatchUp: new(int32),
		Signals:    []v1alpha1.PoolSignal{{Name: "requests", Threshold: resource.MustParse("990m")}},
		PendingFor: seconds(1),
		Idle:       v1alpha1.IdlePolicy{CPU: &none},
		Cooldown:   v1alpha1.PoolCooldown{Up: seconds(1), Down: seconds(1)},
		Forecast:   v1alpha1.PoolForecastDisabled, Interval: seconds(1),
		Join:  v1alpha1.JoinPolicy{Timeout: seconds(90)},
		Drain: v1alpha1.DrainPolicy{Timeout: seconds(90)},
		// What is left at the end of a test is deleted by the test.
		DeletionPolicy: v1alpha1.DeletionPolicyOrphan,
		Template:       v1alpha1.NodeTemplate{Labels: map[string]string{poolLabel: p.name}},
		Provider: v1alpha1.PoolProvider{Simulated: &v1alpha1.SimulatedProvider{
			Namespace: p.cloudNamespace(), JoinDelay: seconds(1), Zones: []string{"a"},
			Shape: map[string]resource.Quantity{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"),
				"pods": resource.MustParse("20")},
		}},
	}}
	if change != nil {
		change(&object.Spec)
	}
	require.NoError(p, objects.Create(p.Context(), object))
	p.Cleanup(func() { p.delete(context.WithoutCancel(p.Context())) })
}

// delete ends the pool and what is there of it that would cost others time.
func (p *pool) delete(ctx context.Context) {
	p.Helper()
	err := objects.Delete(ctx, &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: p.name}})
	require.NoError(p, client.IgnoreNotFound(err))
	require.NoError(p, cluster.Client().CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: poolLabel + "=" + p.name}))
	require.NoError(p, cluster.Client().AppsV1().Deployments(p.name).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{}))
}

// change changes the spec of the pool.
func (p *pool) change(change func(*v1alpha1.WorkerPoolSpec)) {
	p.Helper()
	before := p.get()
	after := before.DeepCopy()
	change(&after.Spec)
	require.NoError(p, objects.Patch(p.Context(), after, client.MergeFrom(before)))
}

func (p *pool) get() *v1alpha1.WorkerPool {
	p.Helper()
	var object v1alpha1.WorkerPool
	require.NoError(p, objects.Get(p.Context(), client.ObjectKey{Name: p.name}, &object))
	return &object
}

// record is the journal.
func (p *pool) record() state.Record {
	p.Helper()
	c, err := discovery.NewDiscoveryClientForConfig(cluster.RESTConfig())
	require.NoError(p, err)
	r, err := kubernetes.New(c.RESTClient()).Load(p.Context(), p.name)
	require.NoError(p, err)
	return r
}

// until waits until done says that something is so.
func (p *pool) until(what string, done func() bool) {
	p.Helper()
	p.within(patience, what, done)
}

// within is until with another patience.
func (p *pool) within(limit time.Duration, what string, done func() bool) {
	p.Helper()
	deadline := time.Now().Add(limit)
	for !done() {
		if time.Now().After(deadline) {
			require.FailNow(p, "not in time: "+what)
		}
		select {
		case <-p.Context().Done():
			require.FailNow(p, "the test has been ended while it waited: "+what)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// settled waits until the pool has so many workers, all Ready, and nothing left to do.
func (p *pool) settled(workers int) []fleet.Instance {
	p.Helper()
	var there []fleet.Instance
	p.until(fmt.Sprintf("%d workers at rest", workers), func() bool {
		there = p.instances()
		r := p.record()
		return len(there) == workers && len(p.nodes()) == workers && p.ready() == workers &&
			r.Action == nil && len(r.Interruptions) == 0 && len(r.PendingTerminations) == 0
	})
	return there
}

// instances are those that run, by id.
func (p *pool) instances() []fleet.Instance {
	p.Helper()
	all, err := p.cloud.List(p.Context())
	require.NoError(p, err)
	all = slices.DeleteFunc(all, func(i fleet.Instance) bool { return i.State == fleet.Leaving })
	slices.SortFunc(all, func(a, b fleet.Instance) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// fate is what the simulated cloud keeps of an instance, also when it has gone.
type fate struct {
	Zone       string    `json:"zone"`
	Launched   time.Time `json:"launched"`
	TakenAt    time.Time `json:"takenAt"`
	EndsAt     time.Time `json:"endsAt"`
	JoinFailed bool      `json:"joinFailed"`
}

func (p *pool) fates() map[string]fate {
	p.Helper()
	list, err := cluster.Client().CoreV1().ConfigMaps(p.cloudNamespace()).List(p.Context(),
		metav1.ListOptions{LabelSelector: "simulated.foresail.dev/pool=" + p.name})
	require.NoError(p, err)
	out := map[string]fate{}
	for _, c := range list.Items {
		var f fate
		require.NoError(p, json.Unmarshal([]byte(c.Data["instance"]), &f))
		out[c.Name] = f
	}
	return out
}

// annotate has something happen to an instance.
func (p *pool) annotate(instance, key, value string) {
	p.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	_, err := cluster.Client().CoreV1().ConfigMaps(p.cloudNamespace()).Patch(p.Context(), instance,
		types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(p, err)
}

// fault has something go wrong in the cloud.
func (p *pool) fault(key, value string) {
	p.Helper()
	_, err := cluster.Client().CoreV1().ConfigMaps(p.cloudNamespace()).Create(p.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: simulated.FaultsName}, Data: map[string]string{key: value},
	}, metav1.CreateOptions{})
	require.NoError(p, err)
}

// nodes are the pool's, by provider id.
func (p *pool) nodes() map[string]corev1.Node {
	p.Helper()
	list, err := cluster.Client().CoreV1().Nodes().List(p.Context(),
		metav1.ListOptions{LabelSelector: poolLabel + "=" + p.name})
	require.NoError(p, err)
	out := map[string]corev1.Node{}
	for _, n := range list.Items {
		out[n.Spec.ProviderID] = n
	}
	return out
}

// ready counts the nodes that take pods.
func (p *pool) ready() (n int) {
	p.Helper()
	for _, node := range p.nodes() {
		free := len(node.Spec.Taints) == 0 && !node.Spec.Unschedulable
		if free && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			n++
		}
	}
	return n
}

// untouched requires that nodes carry nothing of a drain.
func (p *pool) untouched(nodes map[string]corev1.Node) {
	p.Helper()
	for _, n := range nodes {
		_, marked := drain.MarkOf(&n)
		require.False(p, marked, "the mark of %s", n.Name)
		require.False(p, n.Spec.Unschedulable, "the cordon of %s", n.Name)
		require.NotContains(p, n.Annotations, drain.CordonedBy)
	}
}

// seat gives the node of an instance a name that pods can ask for.
func (p *pool) seat(i fleet.Instance, name string) {
	p.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:""}}}`, seatLabel+name)
	_, err := cluster.Client().CoreV1().Nodes().Patch(p.Context(), p.nodes()[i.ProviderID].Name, types.MergePatchType,
		patch, metav1.PatchOptions{})
	require.NoError(p, err)
}

// template is a pod for the pool's nodes, or for one of them.
func (p *pool) template(app, seat string) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{poolLabel: p.name},
			TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
			}}},
		},
	}
	if seat != "" {
		t.Spec.NodeSelector[seatLabel+seat] = ""
	}
	return t
}

// deploy has so many replicas of a pod run, and waits until they do.
func (p *pool) deploy(space string, replicas int, template corev1.PodTemplateSpec) {
	p.Helper()
	p.apply(space, replicas, template)
	p.runs(space, template.Labels["app"], replicas)
}

// apply asks for so many replicas of a pod.
func (p *pool) apply(space string, replicas int, template corev1.PodTemplateSpec) {
	p.Helper()
	app := template.Labels["app"]
	_, err := cluster.Client().AppsV1().Deployments(space).Create(p.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app, Labels: map[string]string{"live": p.name}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: template,
		},
	}, metav1.CreateOptions{})
	require.NoError(p, err)
}

// runs waits until so many pods of an app run, and none more is there.
func (p *pool) runs(space, app string, replicas int) {
	p.Helper()
	p.until(fmt.Sprintf("%d pods of %s", replicas, app), func() bool {
		pods := p.pods(space, app)
		return len(pods) == replicas && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !isReady(pod) })
	})
}

func isReady(pod corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (p *pool) pods(space, app string) []corev1.Pod {
	p.Helper()
	list, err := cluster.Client().CoreV1().Pods(space).List(p.Context(),
		metav1.ListOptions{LabelSelector: "app=" + app})
	require.NoError(p, err)
	return list.Items
}

// budget protects the pods of an app, and waits until the disruption controller has seen to it.
func (p *pool) budget(app string, least, allowed int) {
	p.Helper()
	budgets := cluster.Client().PolicyV1().PodDisruptionBudgets(p.name)
	available := intstr.FromInt(least)
	_, err := budgets.Create(p.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &available,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}, metav1.CreateOptions{})
	require.NoError(p, err)
	p.until("the budget of "+app, func() bool {
		b, err := budgets.Get(p.Context(), app, metav1.GetOptions{})
		require.NoError(p, err)
		return b.Status.ObservedGeneration == b.Generation && b.Status.ExpectedPods > 0 &&
			int(b.Status.DisruptionsAllowed) == allowed
	})
}

// told returns the Events about the pool that have a reason.
func (p *pool) told(reason journal.EventReason) []eventsv1.Event {
	p.Helper()
	list, err := cluster.Client().EventsV1().Events(metav1.NamespaceAll).List(p.Context(), metav1.ListOptions{})
	require.NoError(p, err)
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Kind != "WorkerPool" || e.Regarding.Name != p.name || e.Reason != string(reason)
	})
}

// event waits until the pool has told something, and returns what.
func (p *pool) event(reason journal.EventReason) string {
	p.Helper()
	var found []eventsv1.Event
	p.until("the event "+string(reason), func() bool {
		found = p.told(reason)
		return len(found) > 0
	})
	return found[0].Note
}

// decides waits for a decision, and returns its sentence.
func (p *pool) decides(reason plan.Reason) string {
	p.Helper()
	message := ""
	p.until("the decision "+string(reason), func() bool {
		decisions := p.get().Status.Decisions
		if len(decisions) == 0 || decisions[0].Reason != string(reason) {
			return false
		}
		message = decisions[0].Message
		return true
	})
	return message
}

// story is what is known when a test has failed.
func (p *pool) story() string {
	var b strings.Builder
	ctx := context.Background()
	var object v1alpha1.WorkerPool
	if err := objects.Get(ctx, client.ObjectKey{Name: p.name}, &object); err == nil {
		text, _ := json.MarshalIndent(object.Status, "", " ") // for people
		fmt.Fprintf(&b, "status: %s\n", text)
	}
	events, err := cluster.Client().EventsV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err == nil {
		for _, e := range events.Items {
			if e.Regarding.Name == p.name {
				fmt.Fprintf(&b, "%s %s: %s\n", e.EventTime.Format(time.TimeOnly), e.Reason, e.Note)
			}
		}
	}
	return b.String() + "foresail: " + logTail()
}
