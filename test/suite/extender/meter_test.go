package extender

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/foresail/foresail/test/env/monitoring"
)

// Annotations of a pod that say, as quantities, what it really uses once it is Ready.
const (
	usesCPU    = "test.foresail.dev/uses-cpu"
	usesMemory = "test.foresail.dev/uses-memory"
)

// use is an amount of both resources, in cores and bytes.
type use struct{ cpu, memory float64 }

func (u use) add(v use) use { return use{u.cpu + v.cpu, u.memory + v.memory} }

// meter plays what measures nodes: it knows what pods really use, and what nodes use beside them,
// and serves it as metrics-server does. A sample of CPU is the mean since the one before, one of
// memory that of the moment.
type meter struct {
	pods, nodes cache.SharedIndexInformer

	reads sync.Mutex // held while all nodes are read

	mu      sync.Mutex
	beside  map[string]func(time.Time) use // by node
	last    map[string]reading
	samples []metricsv1beta1.NodeMetrics
}

type reading struct {
	at time.Time
	use
}

// startMeter registers a meter with the API server. It samples when it is told to.
func startMeter(ctx context.Context) (*meter, error) {
	factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
	m := &meter{
		pods: factory.Core().V1().Pods().Informer(), nodes: factory.Core().V1().Nodes().Informer(),
		beside: map[string]func(time.Time) use{}, last: map[string]reading{},
	}
	err := m.pods.AddIndexers(cache.Indexers{"node": func(object any) ([]string, error) {
		return []string{object.(*corev1.Pod).Spec.NodeName}, nil
	}})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return m, monitoring.ServeNodeMetrics(ctx, cluster, func() []metricsv1beta1.NodeMetrics {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.samples
	})
}

// now returns what a node really uses at this moment.
func (m *meter) now(node string, at time.Time) use {
	m.mu.Lock()
	beside := m.beside[node]
	m.mu.Unlock()
	var sum use
	if beside != nil {
		sum = beside(at)
	}
	pods, err := m.pods.GetIndexer().ByIndex("node", node)
	if err != nil {
		panic(err) // there is such an index
	}
	for _, object := range pods {
		if pod := object.(*corev1.Pod); isReady(pod) {
			sum = sum.add(usedBy(pod))
		}
	}
	return sum
}

// usedBy returns what a pod uses once it is Ready.
func usedBy(pod *corev1.Pod) use {
	var u use
	if q, err := resource.ParseQuantity(pod.Annotations[usesCPU]); err == nil {
		u.cpu = q.AsApproximateFloat64()
	}
	if q, err := resource.ParseQuantity(pod.Annotations[usesMemory]); err == nil {
		u.memory = q.AsApproximateFloat64()
	}
	return u
}

// sample reads every node.
func (m *meter) sample() {
	m.reads.Lock()
	defer m.reads.Unlock()
	at := time.Now()
	var samples []metricsv1beta1.NodeMetrics
	last := map[string]reading{}
	for _, object := range m.nodes.GetStore().List() {
		name := object.(*corev1.Node).Name
		present := reading{at, m.now(name, at)}
		last[name] = present
		before, ok := m.last[name]
		if !ok {
			continue // as with metrics-server, a mean takes two readings
		}
		samples = append(samples, metricsv1beta1.NodeMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Timestamp:  metav1.NewTime(at), Window: metav1.Duration{Duration: at.Sub(before.at)},
			Usage: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewMilliQuantity(int64(math.Round(500*(before.cpu+present.cpu))),
					resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(int64(present.memory), resource.BinarySI),
			},
		})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.samples = last, samples
}

// every samples from now on until the test ends or the function that is returned is called. Tests
// that run at the same time have all of their samples.
func (m *meter) every(t *testing.T, interval time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			m.sample()
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// lay has a node use something beside its pods, until the test ends.
func (m *meter) lay(t *testing.T, node string, beside func(time.Time) use) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beside[node] = beside
	t.Cleanup(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.beside, node)
	})
}

func constantly(u use) func(time.Time) use { return func(time.Time) use { return u } }
