package pods

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/sourcetest"
)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func instance(name, ip string) podtracker.Instance {
	return podtracker.Instance{ID: "uid-" + name, Pod: key(name), IP: ip, Ports: map[string]int32{"metrics": 9090}}
}

func gauge(interval time.Duration) Config {
	return Config{Port: "9090", Path: "/metrics", Metric: "load", Type: source.Gauge, Interval: interval}
}

// fleetOf returns a fleet of n instances on addresses 10.0.x.y.
func fleetOf(n int) *sourcetest.Fleet {
	var all []podtracker.Instance
	for i := range n {
		all = append(all, instance(fmt.Sprint("pod-", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250)))
	}
	return sourcetest.NewFleet(all...)
}

// recorder is a sink for pods.
type recorder struct{ *sourcetest.Recorder }

func newRecorder() *recorder { return &recorder{sourcetest.NewRecorder()} }

// network is a transport whose hosts answer as a test says, and that notes when each was asked.
type network struct {
	began time.Time
	// of the n-th request to a host, from 0
	answer func(host string, n int) (body string, delay time.Duration, err error)

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
