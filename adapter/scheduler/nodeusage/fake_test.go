package nodeusage

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/foresail/foresail/internal/nodequery"
	"github.com/foresail/foresail/pipeline"
)

// fakeAPI is a metrics.k8s.io whose answers a test gives.
type fakeAPI struct {
	mu     sync.Mutex
	answer func(now time.Time) ([]v1beta1.NodeMetrics, error)
	listed []time.Time
}

func (f *fakeAPI) set(answer func(now time.Time) ([]v1beta1.NodeMetrics, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// times returns when it was listed, and forgets it.
func (f *fakeAPI) times() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.listed
	f.listed = nil
	return out
}

func (f *fakeAPI) NodeMetricses() metricsclient.NodeMetricsInterface { return nodeLister{api: f} }

type nodeLister struct {
	metricsclient.NodeMetricsInterface // anything but a list is not expected
	api                                *fakeAPI
}

func (l nodeLister) List(ctx context.Context, _ metav1.ListOptions) (*v1beta1.NodeMetricsList, error) {
	l.api.mu.Lock()
	l.api.listed = append(l.api.listed, time.Now())
	answer := l.api.answer
	l.api.mu.Unlock()
	if answer == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	items, err := answer(time.Now())
	if err != nil {
		return nil, err
	}
	return &v1beta1.NodeMetricsList{Items: items}, nil
}

// metricsOf returns what a node uses, as metrics-server tells it.
func metricsOf(name string, at time.Time, cores, bytes string) v1beta1.NodeMetrics {
	return v1beta1.NodeMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Timestamp: metav1.NewTime(at),
		Window: metav1.Duration{Duration: 20 * time.Second},
		Usage: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores),
			corev1.ResourceMemory: resource.MustParse(bytes)},
	}
}

// scraped is when metrics-server, which reads each 15 s, has read last.
func scraped(now time.Time) time.Time { return now.Truncate(15 * time.Second) }

// serving answers with constant use of some nodes.
func serving(names ...string) func(now time.Time) ([]v1beta1.NodeMetrics, error) {
	return func(now time.Time) (out []v1beta1.NodeMetrics, _ error) {
		for _, name := range names {
			out = append(out, metricsOf(name, scraped(now), "1500m", "4Gi"))
		}
		return out, nil
	}
}

// running starts a Forecaster and ends it with the test's bubble.
func running(t *testing.T, o Options) *Forecaster {
	t.Helper()
	f, err := New(o)
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		end()
		require.NoError(t, <-ended)
	})
	return f
}

// nodesOf returns Nodes of names, the UIDs of which are made of them.
func nodesOf(names ...string) []nodequery.Node {
	out := []nodequery.Node{}
	for _, name := range names {
		out = append(out, nodequery.Node{Name: name, UID: types.UID("uid-" + name)})
	}
	return out
}

// scripted is a source that a test calls back.
type scripted func(now time.Time) ([]Reading, error)

func (s scripted) Read(_ context.Context, now time.Time) ([]Reading, error) { return s(now) }

// every returns samples a step of 15 s apart, the last at a time.
func every(last int64, values ...float64) []pipeline.Sample {
	var out []pipeline.Sample
	for i, v := range values {
		out = append(out, pipeline.Sample{T: last - int64(len(values)-1-i)*15_000, V: v})
	}
	return out
}

// same returns n times a value.
func same(n int, v float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// climbing returns n values, each above the one before by as much.
func climbing(n int, from, by float64) []float64 {
	out := same(n, from)
	for i := range out {
		out[i] += by * float64(i)
	}
	return out
}

func names(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("node-%04d", i))
	}
	return out
}
