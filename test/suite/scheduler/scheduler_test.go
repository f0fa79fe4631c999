package scheduler

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// defaults are what every scheduler of this process shares: kube-scheduler's own default profile,
// and what costs time to make.
var defaults = sync.OnceValue(func() (d struct {
	profile  *config.KubeSchedulerProfile
	registry frameworkruntime.Registry
	recorder *metrics.MetricAsyncRecorder
	client   *fake.Clientset
}) {
	klog.SetLogger(logr.Discard())
	metrics.Register()
	c, err := latest.Default()
	if err != nil {
		panic(err)
	}
	d.profile = &c.Profiles[0]
	d.registry = plugins.NewInTreeRegistry()
	d.recorder = metrics.NewMetricsAsyncRecorder(1000, time.Second, context.Background().Done())
	d.client = fake.NewClientset()
	return d
})

// scheduler answers as kube-scheduler does, with its own plugins, in its default profile: whether
// pods pass PreFilter and Filter. It binds pods when it is told to, one after the other.
type scheduler struct {
	ctx       context.Context
	plugins   framework.Framework
	informers *staticInformers
	snapshot  *snapshot
	nodes     []*corev1.Node
	pods      []*corev1.Pod // that have a node
	undo      []func()      // of the reservations of pods that place bound
}

// snapshot is the cluster as plugins see it. It is replaced after each change.
type snapshot struct{ *schedulercache.Snapshot }

func newScheduler(ctx context.Context, w *world) (*scheduler, error) {
	d := defaults()
	s := &scheduler{ctx: ctx, informers: &staticInformers{all: map[reflect.Type]*staticInformer{}},
		snapshot: &snapshot{}}
	for _, o := range w.objects() {
		s.informers.add(o)
	}
	s.reset(w)
	claims := assumecache.NewAssumeCache(klog.Background(), s.informers.Resource().V1().ResourceClaims().Informer(),
		"ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(ctx,
		tracker.Options{SliceInformer: s.informers.Resource().V1().ResourceSlices()})
	if err != nil {
		return nil, err
	}
	s.plugins, err = frameworkruntime.NewFramework(ctx, d.registry, d.profile,
		frameworkruntime.WithInformerFactory(s.informers),
		frameworkruntime.WithClientSet(d.client),
		frameworkruntime.WithSnapshotSharedLister(s.snapshot),
		frameworkruntime.WithMetricsRecorder(d.recorder),
		frameworkruntime.WithParallelism(1),
		frameworkruntime.WithPodNominator(nominator(w.nominated())),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(s.informers.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithSharedDRAManager(dynamicresources.NewDRAManager(ctx, claims, slices, s.informers)),
	)
	return s, err
}

// reset goes back to the nodes and bound pods of a world.
func (s *scheduler) reset(w *world) {
	for _, undo := range slices.Backward(s.undo) {
		undo()
	}
	s.undo, s.nodes, s.pods = nil, slices.Clone(w.Nodes), w.bound()
	s.look()
}

// look takes a new snapshot.
func (s *scheduler) look() { s.snapshot.Snapshot = schedulercache.NewSnapshot(s.pods, s.nodes) }

// addNode adds a node with its pods.
func (s *scheduler) addNode(n *corev1.Node, pods ...*corev1.Pod) {
	s.nodes = append(s.nodes, n)
	s.pods = append(s.pods, pods...)
	s.look()
}

// evict takes the pods of a node away that a function selects, and cordons the node.
func (s *scheduler) evict(node string, leaves func(*corev1.Pod) bool) {
	i := slices.IndexFunc(s.nodes, func(n *corev1.Node) bool { return n.Name == node })
	s.nodes[i] = s.nodes[i].DeepCopy()
	cordon(s.nodes[i])
	s.pods = slices.DeleteFunc(s.pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == node && leaves(p) })
	s.look()
}

// remove deletes a node.
func (s *scheduler) remove(node string) {
	s.nodes = slices.DeleteFunc(s.nodes, func(n *corev1.Node) bool { return n.Name == node })
	s.pods = slices.DeleteFunc(s.pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == node })
	s.look()
}

func cordon(n *corev1.Node) {
	n.Spec.Unschedulable = true
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable,
		Effect: corev1.TaintEffectNoSchedule})
}

// filtered is the outcome of PreFilter and Filter for a pod.
type filtered struct {
	state fwk.CycleState
	nodes []string // that pass
}

// filter runs PreFilter, and Filter for every node.
func (s *scheduler) filter(pod *corev1.Pod) filtered {
	out := filtered{state: framework.NewCycleState()}
	result, status, _ := s.plugins.RunPreFilterPlugins(s.ctx, out.state, pod)
	if !status.IsSuccess() {
		return out
	}
	for _, n := range s.nodes {
		if s.passes(pod, n.Name, out.state, result) {
			out.nodes = append(out.nodes, n.Name)
		}
	}
	return out
}

// passes runs Filter for a node.
func (s *scheduler) passes(pod *corev1.Pod, node string, state fwk.CycleState, result *fwk.PreFilterResult) bool {
	if !result.AllNodes() && !result.NodeNames.Has(node) {
		return false
	}
	info, err := s.snapshot.NodeInfos().Get(node)
	if err != nil {
		panic(err)
	}
	return s.plugins.RunFilterPluginsWithNominatedPods(s.ctx, state, pod, info).IsSuccess()
}

// search runs PreFilter, and Filter for nodes until one passes, which it returns; "" if none does.
func (s *scheduler) search(pod *corev1.Pod, nodes iter.Seq[string]) string {
	state := framework.NewCycleState()
	result, status, _ := s.plugins.RunPreFilterPlugins(s.ctx, state, pod)
	if !status.IsSuccess() {
		return ""
	}
	for n := range nodes {
		if s.passes(pod, n, state, result) {
			return n
		}
	}
	return ""
}

// place binds a pod to one of the nodes that pass and are allowed, and reports whether there is
// one: the first, or one chosen by chance.
func (s *scheduler) place(pod *corev1.Pod, r *rand.Rand, allowed func(node string) bool) bool {
	f := s.filter(pod)
	nodes := slices.DeleteFunc(f.nodes, func(n string) bool { return !allowed(n) })
	if len(nodes) == 0 {
		return false
	}
	node := nodes[0]
	if r != nil {
		node = nodes[r.IntN(len(nodes))]
	}
	bound := s.bind(pod, node)
	if status := s.plugins.RunReservePluginsReserve(s.ctx, f.state, bound, node); !status.IsSuccess() {
		panic(fmt.Sprintf("reserve: %s", status.Message()))
	}
	s.undo = append(s.undo, func() { s.plugins.RunReservePluginsUnreserve(s.ctx, f.state, bound, node) })
	return true
}

// nominator has the pods that nodes are promised to.
type nominator map[string][]fwk.PodInfo

func (nominator) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}

func (nominator) DeleteNominatedPodIfExists(*corev1.Pod) {}

func (nominator) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo) {}

func (n nominator) NominatedPodsForNode(node string) []fwk.PodInfo { return n[node] }

// staticInformers are informers of objects that do not change. They are never started, so that
// thousands of worlds cost no goroutines.
type staticInformers struct {
	informers.SharedInformerFactory // nil: plugins use what is below
	all                             map[reflect.Type]*staticInformer
}

type staticInformer struct{ cache.SharedIndexInformer }

func (f *staticInformers) InformerFor(o runtime.Object,
	newInformer internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	kind := reflect.TypeOf(o)
	if f.all[kind] == nil {
		f.all[kind] = &staticInformer{newInformer(defaults().client, 0)}
	}
	return f.all[kind]
}

func (f *staticInformers) Apps() apps.Interface             { return apps.New(f, "", nil) }
func (f *staticInformers) Core() core.Interface             { return core.New(f, "", nil) }
func (f *staticInformers) Policy() policy.Interface         { return policy.New(f, "", nil) }
func (f *staticInformers) Resource() resource.Interface     { return resource.New(f, "", nil) }
func (f *staticInformers) Scheduling() scheduling.Interface { return scheduling.New(f, "", nil) }
func (f *staticInformers) Storage() storage.Interface       { return storage.New(f, "", nil) }

// add adds an object for informers that plugins will ask for.
func (f *staticInformers) add(o runtime.Object) {
	informer := f.informerOf(o)
	if informer == nil {
		return
	}
	if err := informer.GetIndexer().Add(o); err != nil {
		panic(err)
	}
}

// AddEventHandler delivers all objects at once.
func (i *staticInformer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, o := range i.GetIndexer().List() {
		h.OnAdd(o, true)
	}
	return i.SharedIndexInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{})
}

// AddEventHandlerWithOptions is AddEventHandler.
func (i *staticInformer) AddEventHandlerWithOptions(h cache.ResourceEventHandler,
	_ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}
