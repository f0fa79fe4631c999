package signal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/nodequery"
	"github.com/foresail/foresail/internal/promapi"
)

// fakeSeries is a series of a fake server: its value at any time, and whether it has one.
type fakeSeries struct {
	labels map[string]string
	at     func(t time.Time) (float64, bool)
}

// load is a series of a node that has a value at any time.
func load(name string, at func(t time.Time) float64) fakeSeries {
	return fakeSeries{map[string]string{"node": name}, func(t time.Time) (float64, bool) { return at(t), true }}
}

func constant(v float64) func(time.Time) float64 { return func(time.Time) float64 { return v } }

// since is a series without its part before a time, and until one without that from a time on.
func (s fakeSeries) since(begin time.Time) fakeSeries {
	at := s.at
	s.at = func(t time.Time) (float64, bool) { v, ok := at(t); return v, ok && !t.Before(begin) }
	return s
}

func (s fakeSeries) until(end time.Time) fakeSeries {
	at := s.at
	s.at = func(t time.Time) (float64, bool) { v, ok := at(t); return v, ok && t.Before(end) }
	return s
}

// fakeProm answers range queries. It is a server and, without a network, a transport.
type fakeProm struct {
	mu      sync.Mutex
	series  []fakeSeries
	instead func(w http.ResponseWriter, r *http.Request) // answers if it is not nil
	asked   []asked
	path    string // of the last query
}

func (f *fakeProm) lastPath() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.path
}

// asked is a range that was asked for.
type asked struct {
	query      string
	start, end time.Time
	step       time.Duration
}

func (f *fakeProm) set(all ...fakeSeries) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.series, f.instead = all, nil
}

func (f *fakeProm) answer(instead func(w http.ResponseWriter, r *http.Request)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.instead = instead
}

func (f *fakeProm) queries() []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]asked{}, f.asked...)
}

func (f *fakeProm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := asked{r.FormValue("query"), stamp(r.FormValue("start")), stamp(r.FormValue("end")), 0}
	step, _ := strconv.ParseFloat(r.FormValue("step"), 64)
	q.step = time.Duration(step * float64(time.Second))
	f.mu.Lock()
	f.path = r.URL.Path
	f.asked = append(f.asked, q)
	instead, all := f.instead, f.series
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if instead != nil {
		instead(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(matrix(q, all))
}

func matrix(q asked, all []fakeSeries) any {
	type stream struct {
		Metric map[string]string `json:"metric"`
		Values [][2]any          `json:"values"`
	}
	result := []stream{}
	for _, s := range all {
		x := stream{Metric: s.labels}
		for t := q.start; !t.After(q.end); t = t.Add(q.step) {
			if v, ok := s.at(t); ok {
				x.Values = append(x.Values, [2]any{float64(t.UnixMilli()) / 1000, fmt.Sprint(v)})
			}
		}
		if len(x.Values) > 0 {
			result = append(result, x)
		}
	}
	return map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": result}}
}

func stamp(s string) time.Time {
	seconds, _ := strconv.ParseFloat(s, 64)
	return time.UnixMilli(int64(seconds*1000 + 0.5)).UTC()
}

func (f *fakeProm) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	response := w.Result()
	response.Request = r
	return response, nil
}

const promAddress = "http://prometheus:9090"

// asking returns the options of a pool that asks a fake server for one signal.
func asking(f http.RoundTripper, name string, query v1alpha1.SignalQuery, threshold string) Options {
	spec := v1alpha1.WorkerPoolSpec{Max: 100, Signals: []v1alpha1.PoolSignal{{Name: name, Threshold: quantityOf(threshold), Prometheus: &query}}}
	o := OptionsOf(&spec)
	o.DefaultAddress, o.Servers = promAddress, clients(f)
	return o
}

// large has no bound on answers that matters.
func large(f http.RoundTripper) Servers {
	return promapi.NewClients(promapi.Options{MaxSeries: nodequery.MaxSeries, MaxBytes: 1 << 30, Transport: f})
}

func clients(f http.RoundTripper) Servers {
	return promapi.NewClients(promapi.Options{MaxSeries: nodequery.MaxSeries, MaxBytes: 1 << 20, Transport: f})
}

// cpuOf is the signal cpu of a fake server.
func cpuOf(t testing.TB, f *fakeProm) *Set {
	s := newSet(t, asking(f, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m"))
	return s
}
