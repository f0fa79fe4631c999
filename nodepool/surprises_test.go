package nodepool

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/plan"
)

// town is a cluster whose scheduler has reasons that a pool does not know: taints, labels and pods of new nodes
// that no template contains, and rules of its own. Its controllers replace what is evicted.
type town struct {
	*rig
	random *rand.Rand
	pods   []*corev1.Pod
	made   int
	// refuses has, of kinds of pods, those that the scheduler refuses nodes for a reason of its own: some nodes or all.
	refuses map[string]string
	evicted int
}

// newTown has workloads of up to four pods each, and up to three surprises.
func newTown(t *testing.T, seed uint64) *town {
	w := &town{rig: newRig(t), random: rand.New(rand.NewPCG(seed, 1)), refuses: map[string]string{}}
	spec := config.Of("workers", v1alpha1.WorkerPoolSpec{Max: 8})
	spec.LaunchSpec, spec.Disruption.Budgets = "", budgets("100%")
	spec.Plan.Idle.CPU, spec.Plan.Idle.Memory, spec.Plan.PendingFor = 1, 1, 15*time.Second
	w.spec = spec
	w.world.dress, w.world.namedByToken = w.dress(), true
	w.change(func(o *Options) { o.Drainer = w })
	for kind := range 2 + w.random.IntN(3) {
		name := fmt.Sprint("app-", kind)
		for range 1 + w.random.IntN(4) {
			w.add(name, fmt.Sprint(200+100*w.random.IntN(12), "m"))
		}
		if w.random.IntN(3) == 0 {
			w.refuses[name] = []string{"all", "some"}[w.random.IntN(2)]
		}
	}
	return w
}

// dress returns the properties of new nodes apart from the promised ones.
func (w *town) dress() func(*fakeNode) {
	taint, smaller, unlabelled := w.random.IntN(4) == 0, w.random.IntN(4) == 0, w.random.IntN(4) == 0
	return func(n *fakeNode) {
		n.free = true
		n.object.Labels[corev1.LabelHostname] = n.object.Name
		if taint {
			n.object.Spec.Taints = append(n.object.Spec.Taints, foreignTaint)
		}
		if unlabelled {
			delete(n.object.Labels, corev1.LabelTopologyZone)
		}
		if smaller { // a static pod that is not announced
			w.pods = append(w.pods, w.pod("static-"+n.object.Name, "static", "900m"))
			static := w.pods[len(w.pods)-1]
			static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
			w.bind(static, n.object.Name)
		}
	}
}

func (w *town) pod(name, app, cpu string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		Labels: map[string]string{"app": app}, UID: types.UID(name)}}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app,
		UID: types.UID(app), Controller: new(true)}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}}
	if app == "app-1" {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"}
	}
	return p
}

// add adds a pod that waits for a node.
func (w *town) add(app, cpu string) {
	w.made++
	p := w.pod(fmt.Sprint(app, "-", w.made), app, cpu)
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		LastTransitionTime: metav1.NewTime(w.clock.now()),
	}}
	p.Status.Phase = corev1.PodPending
	w.pods = append(w.pods, p)
}

func (w *town) bind(p *corev1.Pod, node string) {
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

// schedule binds pods that fit on a node, and replaces the pods of nodes that are gone.
func (w *town) schedule() {
	for _, p := range slices.Clone(w.pods) {
		if p.Spec.NodeName != "" && w.world.nodes[p.Spec.NodeName] == nil {
			w.remove(p)
		}
	}
	for _, p := range w.pods {
		if p.Spec.NodeName != "" {
			continue
		}
		for _, name := range w.nodeNames() {
			if w.takes(name, p) {
				w.bind(p, name)
				break
			}
		}
	}
	w.world.objects = []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
	for _, p := range w.pods {
		w.world.objects = append(w.world.objects, p.DeepCopy())
	}
}

func (w *town) takes(name string, p *corev1.Pod) bool {
	n, app := w.world.nodes[name], p.Labels["app"]
	some := w.refuses[app] == "some" && (name[len(name)-1]+app[len(app)-1])%2 == 0
	if !n.ready || n.cordon || n.mark != "" || w.refuses[app] == "all" || some {
		return false
	}
	if _, untolerated := schedulingv1.FindMatchingUntoleratedTaint(logr.Discard(), n.object.Spec.Taints,
		p.Spec.Tolerations, nil, false); untolerated {
		return false
	}
	for key, value := range p.Spec.NodeSelector {
		if n.object.Labels[key] != value {
			return false
		}
	}
	free := n.object.Status.Allocatable.Cpu().MilliValue()
	for _, other := range append(slices.Clone(w.pods), p) {
		if other.Spec.NodeName == name || other == p {
			free -= other.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
	}
	return free >= 0
}

// remove ends a pod, which its controller replaces; a static pod ends with its node.
func (w *town) remove(p *corev1.Pod) {
	w.pods = slices.DeleteFunc(w.pods, func(other *corev1.Pod) bool { return other == p })
	if !cluster.IsMirror(p) {
		w.add(p.Labels["app"], p.Spec.Containers[0].Resources.Requests.Cpu().String())
	}
}

// The town is its own drainer: pods end at once.

func (w *town) Taint(ctx context.Context, node, action string) error {
	return w.world.Taint(ctx, node, action)
}
func (w *town) Cordon(ctx context.Context, node string) error      { return w.world.Cordon(ctx, node) }
func (w *town) Restore(ctx context.Context, node string) error     { return w.world.Restore(ctx, node) }
func (w *town) Blockers(context.Context, string) ([]string, error) { return nil, nil }
func (w *town) Arriving(context.Context) (bool, error)             { return false, nil }
func (w *town) Attached(context.Context) (map[string][]string, error) {
	return nil, nil
}

func (w *town) NodeOf(ctx context.Context, providerID, instanceID string) (string, error) {
	return w.world.NodeOf(ctx, providerID, instanceID)
}

func (w *town) DeleteNode(ctx context.Context, node, providerID string) error {
	return w.world.DeleteNode(ctx, node, providerID)
}

func (w *town) Evict(_ context.Context, node string, _ drain.Limits) (progress drain.Progress, err error) {
	for _, p := range slices.Clone(w.pods) {
		if p.Spec.NodeName == node && !cluster.IsMirror(p) {
			progress.Remaining++
			w.evicted++
			w.remove(p)
		}
	}
	return progress, nil
}

// live lets time pass.
func (w *town) live(d time.Duration) {
	for end := w.clock.now().Add(d); w.clock.now().Before(end); {
		w.schedule()
		w.tick()
		w.clock.advance(w.step())
	}
}

// TestAQuietWorldStaysQuiet: whatever reasons the scheduler has, futile launches become so rare that nothing is
// launched or evicted for three hours.
func TestAQuietWorldStaysQuiet(t *testing.T) {
	testQuietWorlds(t, 0, 1, 2, 3, 11522238591354514907, 11199539437792608221)
}

func testQuietWorlds(t *testing.T, seeds ...uint64) {
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newTown(t, seed)
			for quiet, hours := 0, 0; quiet < 3; hours++ {
				require.Less(t, hours, 12, "the last decision: %s", w.last.Decision.Message)
				before := w.world.launches + w.evicted
				w.live(time.Hour)
				if quiet++; w.world.launches+w.evicted > before {
					quiet = 0
				}
			}
			require.LessOrEqual(t, w.evicted, 150)
			require.NotEqual(t, plan.WorkersUnknown, w.last.Decision.Reason)
		})
	}
}
