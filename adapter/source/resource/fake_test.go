package resource

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/foresail/foresail/adapter/instances"
	"github.com/foresail/foresail/pipeline"
)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func cpu() Config { return Config{Name: "cpu", Interval: 15 * time.Second} }

// started returns an instance of a pod that became ready at a time.
func started(pod string, at time.Time) instances.Instance {
	return instances.Instance{ID: "uid-" + pod, Pod: key(pod), Start: at}
}

// container returns the metrics of one container.
func container(name, cores, bytes string) v1beta1.ContainerMetrics {
	return v1beta1.ContainerMetrics{Name: name, Usage: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cores), corev1.ResourceMemory: resource.MustParse(bytes),
	}}
}

func metricsOf(pod string, at time.Time, containers ...v1beta1.ContainerMetrics) v1beta1.PodMetrics {
	return v1beta1.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pod}, Timestamp: metav1.NewTime(at), Containers: containers,
	}
}

// fakeFleet is a fleet whose instances a test sets.
type fakeFleet struct {
	mu       sync.Mutex
	all      []instances.Instance
	observer instances.Observer
}

func newFleet(all ...instances.Instance) *fakeFleet { return &fakeFleet{all: all} }

func (f *fakeFleet) Instances(time.Time) []instances.Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all)
}

func (f *fakeFleet) Watch(o instances.Observer) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observer = o
	return func() {}
}

func (f *fakeFleet) set(all ...instances.Instance) {
	f.mu.Lock()
	f.all = all
	o := f.observer
	f.mu.Unlock()
	o.Changed()
}

// recorder is a sink that keeps what it is given.
type recorder struct {
	mu       sync.Mutex
	samples  map[string][]pipeline.Sample
	failures map[string][]string
	troubles []error
}

func newRecorder() *recorder {
	return &recorder{samples: map[string][]pipeline.Sample{}, failures: map[string][]string{}}
}

func (r *recorder) Append(instance string, samples ...pipeline.Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples[instance] = append(r.samples[instance], samples...)
}

func (r *recorder) Fail(instance string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures[instance] = append(r.failures[instance], err.Error())
}

func (r *recorder) Trouble(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.troubles = append(r.troubles, err)
}

// values returns the values of an instance's samples.
func (r *recorder) values(instance string) []float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []float64
	for _, x := range r.samples[instance] {
		out = append(out, x.V)
	}
	return out
}

func (r *recorder) failed(instance string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.failures[instance])
}

// told returns what Trouble was last called with, and how often it was called.
func (r *recorder) told() (calls int, last error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.troubles) > 0 {
		last = r.troubles[len(r.troubles)-1]
	}
	return len(r.troubles), last
}

// api is a metrics.k8s.io whose answers a test gives, and that notes when each namespace was listed.
type api struct {
	began  time.Time
	answer func(ctx context.Context, now time.Time) ([]v1beta1.PodMetrics, error)

	mu     sync.Mutex
	listed map[string][]time.Duration
}

func newAPI(answer func(ctx context.Context, now time.Time) ([]v1beta1.PodMetrics, error)) *api {
	return &api{began: time.Now(), answer: answer, listed: map[string][]time.Duration{}}
}

// serving returns an API in which the pods have the containers' usage as of each list.
func serving(pods ...string) *api {
	return newAPI(func(_ context.Context, now time.Time) ([]v1beta1.PodMetrics, error) {
		var out []v1beta1.PodMetrics
		for _, pod := range pods {
			out = append(out, metricsOf(pod, now, container("app", "250m", "1Mi")))
		}
		return out, nil
	})
}

func (a *api) PodMetricses(namespace string) metricsclient.PodMetricsInterface {
	return &lister{api: a, namespace: namespace}
}

type lister struct {
	metricsclient.PodMetricsInterface // anything but a list is not expected
	api                               *api
	namespace                         string
}

func (l *lister) List(ctx context.Context, _ metav1.ListOptions) (*v1beta1.PodMetricsList, error) {
	now := time.Now()
	l.api.mu.Lock()
	l.api.listed[l.namespace] = append(l.api.listed[l.namespace], now.Sub(l.api.began))
	l.api.mu.Unlock()
	items, err := l.api.answer(ctx, now)
	return &v1beta1.PodMetricsList{Items: items}, err
}

// times returns when a namespace was listed, since the API was made.
func (a *api) times(namespace string) []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.listed[namespace])
}

// running starts a source on an API, and ends it with the test's bubble.
func running(t *testing.T, o Options) *Source {
	t.Helper()
	s := New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	return s
}

// pass lets virtual time pass and everything come to rest.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// gathered sums a metric of a registry over the series that have a label value ("" = all).
func gathered(t *testing.T, r *prometheus.Registry, name, labelValue string) float64 {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		sum := 0.0
		for _, m := range f.GetMetric() {
			if labelValue == "" || len(m.GetLabel()) > 0 && m.GetLabel()[0].GetValue() == labelValue {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
		return sum
	}
	assert.Fail(t, "no metric "+name)
	return 0
}
