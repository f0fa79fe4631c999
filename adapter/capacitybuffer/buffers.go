package capacitybuffer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/owned"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/objectcache"
)

const (
	// absentPeriod is how often it is asked whether CapacityBuffers are served, while they are not.
	absentPeriod = 30 * time.Second
	// versionPeriod is how often it is asked in which version, while they are.
	versionPeriod = 5 * time.Minute
)

type table = objectcache.Table[types.NamespacedName, *unstructured.Unstructured, row]

// buffers knows all CapacityBuffers, by a watch that begins when somebody asks for one.
type buffers struct {
	client     client.WithWatch
	discovery  Discovery
	namespaces []string
	now        func() time.Time

	version string    // that is watched, "" for none
	asked   time.Time // when it was asked which versions are served
	end     context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex // of the tables
	tables  []*table   // one for each namespace
}

func newBuffers(c client.WithWatch, d Discovery, namespaces []string, now func() time.Time) *buffers {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &buffers{client: c, discovery: d, namespaces: namespaces, now: now}
}

// stop ends all watches.
func (b *buffers) stop() {
	if b.end != nil {
		b.end()
	}
	b.running.Wait()
	b.end, b.tables, b.version = nil, nil, ""
}

// follow watches CapacityBuffers in the version that is preferred now. It returns whether they are served.
func (b *buffers) follow(ctx context.Context) (bool, error) {
	period := versionPeriod
	if b.version == "" || b.state() != nil {
		period = absentPeriod
	}
	if !b.asked.IsZero() && b.now().Sub(b.asked) < period {
		return b.version != "", nil
	}
	version, err := served(ctx, b.discovery)
	if err != nil {
		return b.version != "", err
	}
	b.asked = b.now()
	if version != b.version {
		b.stop()
		b.watch(ctx, version)
	}
	return version != "", nil
}

// watch begins to watch a version; "" is none.
func (b *buffers) watch(ctx context.Context, version string) {
	b.version = version
	if version == "" {
		return
	}
	ctx, b.end = context.WithCancel(ctx)
	for _, namespace := range b.namespaces {
		t := objectcache.New(objectcache.Options[types.NamespacedName, *unstructured.Unstructured, row]{
			What: resource, Lock: &b.mu, Now: b.now, Keep: rowOf, Key: objectcache.NameOf[*unstructured.Unstructured],
		})
		b.tables = append(b.tables, t)
		like := &unstructured.Unstructured{}
		like.SetGroupVersionKind(kindOf(version))
		all := owned.Lists[*unstructured.UnstructuredList]{
			Client: b.client, Namespace: namespace, Empty: func() *unstructured.UnstructuredList { return emptyList(version) },
		}
		b.running.Go(func() { objectcache.Reflect(ctx, all, t, like, all) })
	}
}

func (b *buffers) state() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.tables {
		if err := t.State(b.now()); err != nil {
			return err
		}
	}
	return nil
}

func emptyList(version string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	gvk := kindOf(version)
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	return list
}

// observed is all CapacityBuffers at one time.
type observed struct {
	buffers  map[types.NamespacedName]row
	byTarget map[owned.Target][]row
	metrics  map[owned.Target][]*v1alpha1.PredictedMetric // with spec.capacityBuffer, the oldest first
}

// observe fails while CapacityBuffers are out of reach. A list that is forbidden is an error of that kind.
func (b *buffers) observe(metrics map[types.UID]*v1alpha1.PredictedMetric) (*observed, error) {
	if err := b.state(); err != nil {
		return nil, err
	}
	o := &observed{buffers: map[types.NamespacedName]row{}, byTarget: map[owned.Target][]row{}}
	b.mu.Lock()
	for _, t := range b.tables {
		maps.Copy(o.buffers, t.Rows())
	}
	b.mu.Unlock()
	for _, r := range o.buffers {
		o.byTarget[r.target] = append(o.byTarget[r.target], r)
	}
	o.metrics = owned.ByTarget(metrics, func(pm *v1alpha1.PredictedMetric) bool { return pm.Spec.CapacityBuffer != nil && !pm.Spec.DryRun })
	return o, nil
}

// rivalOf returns what else has spare pods of the target of a PredictedMetric, "" if nothing has. Of two PredictedMetrics that have no
// buffer yet the older one is to have one.
func (o *observed) rivalOf(pm *v1alpha1.PredictedMetric, hasBuffer bool) string {
	t := owned.TargetOfMetric(pm)
	for _, r := range slices.SortedFunc(slices.Values(o.byTarget[t]), func(a, b row) int { return cmp.Compare(a.name, b.name) }) {
		predecessors := r.owner != "" && r.name == pm.Name // it goes by itself
		if r.owner != pm.UID && !predecessors {
			return fmt.Sprintf("CapacityBuffer %s%s has spare pods of %s %s too", r.name, r.origin, t.Kind.Kind, t.Name)
		}
	}
	if first := o.metrics[t][0]; !hasBuffer && first.UID != pm.UID {
		return fmt.Sprintf("PredictedMetric %s, which is older, has spec.capacityBuffer for %s %s too", first.Name, t.Kind.Kind, t.Name)
	}
	return ""
}
