package scheduler

import (
	"maps"
	"os"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/nodepool/provider"
)

// world is a small cluster with a pool of workers.
type world struct {
	Seed           uint64
	Namespaces     []*corev1.Namespace
	Nodes          []*corev1.Node
	CSINodes       []*storagev1.CSINode
	Pods           []*corev1.Pod
	Claims         []*corev1.PersistentVolumeClaim
	Volumes        []*corev1.PersistentVolume
	StorageClasses []*storagev1.StorageClass
	DaemonSets     []*appsv1.DaemonSet
	DeviceClasses  []*resourcev1.DeviceClass
	DeviceClaims   []*resourcev1.ResourceClaim
	Devices        []*resourcev1.ResourceSlice
	Pool           pool
}

// pool is what the pool of workers can launch, and what it has launched lately.
type pool struct {
	Offers        []provider.Offer
	Labels        map[string]string
	Taints        []corev1.Taint
	StartupTaints []corev1.Taint
	OnTheWay      []fleet.Placement          // without a Node
	Joining       map[string]fleet.Placement // by the name of a Node that is Ready
}

// objects are all that the API server has.
func (w *world) objects() []runtime.Object {
	var out []runtime.Object
	out = appendObjects(out, w.Namespaces)
	out = appendObjects(out, w.Nodes)
	out = appendObjects(out, w.CSINodes)
	out = appendObjects(out, w.Pods)
	out = appendObjects(out, w.Claims)
	out = appendObjects(out, w.Volumes)
	out = appendObjects(out, w.StorageClasses)
	out = appendObjects(out, w.DaemonSets)
	out = appendObjects(out, w.DeviceClasses)
	out = appendObjects(out, w.DeviceClaims)
	return appendObjects(out, w.Devices)
}

func appendObjects[O runtime.Object](out []runtime.Object, all []O) []runtime.Object {
	for _, o := range all {
		out = append(out, o)
	}
	return out
}

// informerOf returns the informer of an object's kind, nil if no plugin reads that.
func (f *staticInformers) informerOf(o runtime.Object) cache.SharedIndexInformer {
	switch o.(type) {
	case *corev1.Namespace:
		return f.Core().V1().Namespaces().Informer()
	case *corev1.Node:
		return f.Core().V1().Nodes().Informer()
	case *corev1.Pod:
		return f.Core().V1().Pods().Informer()
	case *corev1.PersistentVolumeClaim:
		return f.Core().V1().PersistentVolumeClaims().Informer()
	case *corev1.PersistentVolume:
		return f.Core().V1().PersistentVolumes().Informer()
	case *storagev1.CSINode:
		return f.Storage().V1().CSINodes().Informer()
	case *storagev1.StorageClass:
		return f.Storage().V1().StorageClasses().Informer()
	case *resourcev1.DeviceClass:
		return f.Resource().V1().DeviceClasses().Informer()
	case *resourcev1.ResourceClaim:
		return f.Resource().V1().ResourceClaims().Informer()
	case *resourcev1.ResourceSlice:
		return f.Resource().V1().ResourceSlices().Informer()
	}
	return nil
}

// bound are the pods that have a node that exists.
func (w *world) bound() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range w.Pods {
		if w.node(p.Spec.NodeName) != nil {
			out = append(out, p)
		}
	}
	return out
}

// pending are the pods that the scheduler has found no node for.
func (w *world) pending() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range w.Pods {
		if p.Spec.NodeName == "" {
			out = append(out, p)
		}
	}
	return out
}

// nominated are the pods that nodes are promised to, by node.
func (w *world) nominated() map[string][]fwk.PodInfo {
	out := map[string][]fwk.PodInfo{}
	for _, p := range w.pending() {
		if node := p.Status.NominatedNodeName; node != "" {
			info, err := framework.NewPodInfo(p)
			if err != nil {
				panic(err)
			}
			out[node] = append(out[node], info)
		}
	}
	return out
}

func (w *world) node(name string) *corev1.Node {
	i := slices.IndexFunc(w.Nodes, func(n *corev1.Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return w.Nodes[i]
}

func (w *world) podsOf(node string) []*corev1.Pod {
	return slices.DeleteFunc(w.bound(), func(p *corev1.Pod) bool { return p.Spec.NodeName != node })
}

// String returns the world as YAML that readWorld reads, without what is the same in all worlds.
func (w *world) String() string {
	out, err := yaml.Marshal(w)
	if err != nil {
		panic(err)
	}
	var all map[string]any
	if err := yaml.Unmarshal(out, &all); err != nil {
		panic(err)
	}
	if out, err = yaml.Marshal(pruned(all)); err != nil {
		panic(err)
	}
	return string(out)
}

// same are fields that have one value in all worlds, or follow from others.
var same = []string{
	"uid", "resourceVersion", "creationTimestamp", "capacity", "dnsPolicy", "enableServiceLinks", "image",
	"imagePullPolicy", "restartPolicy", "schedulerName",
	"terminationGracePeriodSeconds", "terminationMessagePath", "terminationMessagePolicy", "daemonEndpoints",
}

// pruned returns a value without empty parts and those that are always the same.
func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) { // a schedulerName comes after the restartPolicy
			of := v[key]
			sidecar := key == "restartPolicy" && v["schedulerName"] == nil
			if v[key] = pruned(of); v[key] == nil || slices.Contains(same, key) && !sidecar {
				delete(v, key)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			if v[i] = pruned(v[i]); v[i] == nil {
				v[i] = map[string]any{}
			}
		}
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	}
	return v
}

func readWorld(file string) (*world, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	w := &world{}
	if err := yaml.UnmarshalStrict(data, w); err != nil {
		return nil, err
	}
	for _, o := range w.objects() {
		m, err := meta.Accessor(o)
		if err != nil {
			return nil, err
		}
		m.SetUID(types.UID("uid-" + m.GetNamespace() + "-" + m.GetName()))
		m.SetResourceVersion("1")
		m.SetCreationTimestamp(metav1.NewTime(noon.Add(-time.Hour)))
	}
	return w, nil
}

// copy returns a world that can be changed: its lists and objects are its own.
func (w *world) copy() *world {
	out := *w
	out.Nodes, out.CSINodes = copyAll(w.Nodes), copyAll(w.CSINodes)
	out.Pods = copyAll(w.Pods)
	out.Claims, out.Volumes, out.StorageClasses = copyAll(w.Claims), copyAll(w.Volumes), copyAll(w.StorageClasses)
	out.DaemonSets = copyAll(w.DaemonSets)
	out.DeviceClaims, out.Devices = copyAll(w.DeviceClaims), copyAll(w.Devices)
	out.Pool.Offers, out.Pool.OnTheWay = slices.Clone(w.Pool.Offers), slices.Clone(w.Pool.OnTheWay)
	return &out
}

func copyAll[O interface{ DeepCopyObject() runtime.Object }](all []O) []O {
	out := make([]O, len(all))
	for i := range all {
		out[i] = all[i].DeepCopyObject().(O)
	}
	return out
}
