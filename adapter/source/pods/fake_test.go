package pods

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/instances"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func instance(name, ip string) instances.Instance {
	return instances.Instance{ID: "uid-" + name, Pod: key(name), IP: ip, Ports: map[string]int32{"metrics": 9090}}
}

func gauge(interval time.Duration) Config {
	return Config{Port: "9090", Path: "/metrics", Metric: "load", Type: source.Gauge, Interval: interval}
}

// fakeFleet is a fleet whose instances a test sets.
type fakeFleet struct {
	mu       sync.Mutex
	active   []instances.Instance
	watchers map[int]instances.Observer
	watched  int
}

func newFleet(active ...instances.Instance) *fakeFleet {
	return &fakeFleet{active: active, watchers: map[int]instances.Observer{}}
}

// fleetOf returns a fleet of n instances on addresses 10.0.x.y.
func fleetOf(n int) *fakeFleet {
	f := newFleet()
	for i := range n {
		f.active = append(f.active, instance(fmt.Sprint("pod-", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250)))
	}
	return f
}

func (f *fakeFleet) Active() []instances.Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.active)
}

func (f *fakeFleet) Watch(o instances.Observer) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.watched
	f.watched++
	f.watchers[n] = o
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, n)
	}
}

func (f *fakeFleet) set(active ...instances.Instance) {
	f.mu.Lock()
	f.active = active
	var watchers []instances.Observer
	for _, o := range f.watchers {
		watchers = append(watchers, o)
	}
	f.mu.Unlock()
	for _, o := range watchers {
		o.Changed()
	}
}

// recorder is a sink that keeps what it is given.
type recorder struct {
	mu      sync.Mutex
	samples map[string][]pipeline.Sample
	errors  map[string][]string
}

func newRecorder() *recorder {
	return &recorder{samples: map[string][]pipeline.Sample{}, errors: map[string][]string{}}
}

func (r *recorder) Append(instance string, samples ...pipeline.Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples[instance] = append(r.samples[instance], samples...)
}

func (r *recorder) Trouble(err error) { panic(err) } // reading pods has no trouble that is not a pod's own

func (r *recorder) Fail(instance string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors[instance] = append(r.errors[instance], err.Error())
}

func (r *recorder) of(instance string) []pipeline.Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.samples[instance])
}

func (r *recorder) failures(instance string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.errors[instance])
}

// calls counts all calls of the sink.
func (r *recorder) calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for i := range r.samples {
		n += len(r.samples[i])
	}
	for i := range r.errors {
		n += len(r.errors[i])
	}
	return n
}

// network is a transport whose hosts answer as a test says, and that notes when each was asked.
type network struct {
	began  time.Time
	answer func(host string, n int) (body string, delay time.Duration, err error) // of the n-th request to a host, from 0

	mu    sync.Mutex
	asked map[string][]time.Duration
}

func newNetwork(answer func(host string, n int) (string, time.Duration, error)) *network {
	return &network{began: time.Now(), answer: answer, asked: map[string][]time.Duration{}}
}

func (w *network) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Hostname()
	w.mu.Lock()
	n := len(w.asked[host])
	w.asked[host] = append(w.asked[host], time.Since(w.began))
	w.mu.Unlock()
	body, delay, err := w.answer(host, n)
	if delay > 0 {
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(delay):
		}
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Request: r,
		Header: http.Header{"Content-Type": {"text/plain; version=0.0.4"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// times returns when a host was asked, since the network was made.
func (w *network) times(host string) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked[host])
}

func answering(body string) func(string, int) (string, time.Duration, error) {
	return func(string, int) (string, time.Duration, error) { return body, 0, nil }
}

// seconds rounds times down to seconds, relative to the first.
func seconds(times []time.Duration) []int {
	var out []int
	for _, t := range times {
		out = append(out, int((t-times[0]).Round(10*time.Millisecond)/time.Second))
	}
	return out
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
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
		return sum
	}
	assert.Fail(t, "no metric "+name)
	return 0
}
