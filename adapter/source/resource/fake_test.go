package resource

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source/sourcetest"
)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func cpu() Config { return Config{Name: "cpu", Interval: 15 * time.Second} }

// started returns an instance of a pod that became ready at a time.
func started(pod string, at time.Time) podtracker.Instance {
	return podtracker.Instance{ID: "uid-" + pod, Pod: key(pod), Start: at}
}

// container returns the metrics of one container.
func container(name, cores, bytes string) v1beta1.ContainerMetrics {
	return v1beta1.ContainerMetrics{Name: name, Usage: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cores), corev1.ResourceMemory: resource.MustParse(bytes),
	}}
}

func metricsOf(pod string, at time.Time, containers ...v1beta1.ContainerMetrics) v1beta1.PodMetrics {
	return v1beta1.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pod}, Timestamp: metav1.NewTime(at),
		Containers: containers,
	}
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
	sourcetest.Run(t, s.Run)
	return s
}
