package prometheus

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/instances"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

const address = "http://prometheus:9090"

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func gauge() Config {
	return Config{
		Address: address, Query: "load", PodLabel: "pod", NamespaceLabel: "namespace",
		Type: source.Gauge, Interval: time.Second, Window: 10 * time.Second,
	}
}

// fakeFleet is a fleet whose instances a test sets.
type fakeFleet struct {
	mu       sync.Mutex
	all      []instances.Instance
	watchers map[int]instances.Observer
	watched  int
}

func newFleet(all ...instances.Instance) *fakeFleet {
	return &fakeFleet{all: all, watchers: map[int]instances.Observer{}}
}

// instance is one of a pod that has been there for an hour.
func instance(pod string) instances.Instance {
	return instances.Instance{ID: "uid-" + pod, Pod: key(pod), Start: time.Now().Add(-time.Hour)}
}

// fleetOf returns a fleet of pods that have been there for an hour.
func fleetOf(pods ...string) *fakeFleet {
	f := newFleet()
	for _, pod := range pods {
		f.all = append(f.all, instance(pod))
	}
	return f
}

func (f *fakeFleet) Instances(time.Time) []instances.Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all)
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

func (f *fakeFleet) set(all ...instances.Instance) {
	f.mu.Lock()
	f.all = all
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
	mu       sync.Mutex
	samples  map[string][]pipeline.Sample
	errors   map[string][]string
	troubles []string // "" for nil
}

func newRecorder() *recorder {
	return &recorder{samples: map[string][]pipeline.Sample{}, errors: map[string][]string{}}
}

func (r *recorder) Append(instance string, samples ...pipeline.Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples[instance] = append(r.samples[instance], samples...)
}

func (r *recorder) Trouble(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.troubles = append(r.troubles, text)
}

func (r *recorder) Fail(instance string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors[instance] = append(r.errors[instance], err.Error())
}

func (r *recorder) of(pod string) []pipeline.Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.samples["uid-"+pod])
}

func (r *recorder) values(pod string) []float64 {
	var out []float64
	for _, x := range r.of(pod) {
		out = append(out, x.V)
	}
	return out
}

// failure returns what was last said of a pod.
func (r *recorder) failure(pod string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return last(r.errors["uid-"+pod])
}

// trouble returns what was last said of the source, or that nothing was.
func (r *recorder) trouble() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.troubles) == 0 {
		return "(nothing said)"
	}
	return last(r.troubles)
}

func last(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[len(texts)-1]
}

// calls counts all calls of the sink, a sample as one.
func (r *recorder) calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.troubles)
	for i := range r.samples {
		n += len(r.samples[i])
	}
	for i := range r.errors {
		n += len(r.errors[i])
	}
	return n
}

// fakeSeries is a series of a fake server.
type fakeSeries struct {
	labels  map[string]string
	samples []pipeline.Sample
}

// pod returns a series of a pod in the namespace shop that has samples a second apart up to now.
func pod(name string, values ...float64) fakeSeries {
	x := fakeSeries{labels: map[string]string{"__name__": "load", "pod": name, "namespace": "shop"}}
	return x.with(time.Second, 0, values...)
}

// with returns a series with samples a step apart, the last of them so long ago.
func (s fakeSeries) with(step, ago time.Duration, values ...float64) fakeSeries {
	s.samples = nil
	for i, v := range values {
		at := time.Now().Add(-ago - time.Duration(len(values)-1-i)*step)
		s.samples = append(s.samples, pipeline.Sample{T: at.UnixMilli(), V: v})
	}
	return s
}

// label returns a series with another value of a label; "" takes the label away.
func (s fakeSeries) label(name, value string) fakeSeries {
	labels := map[string]string{name: value}
	for n, v := range s.labels {
		if n != name {
			labels[n] = v
		}
	}
	if value == "" {
		delete(labels, name)
	}
	s.labels = labels
	return s
}

// matrix writes a successful answer.
func matrix(all ...fakeSeries) string {
	var out []string
	for _, s := range all {
		var labels, values []string
		for name, value := range s.labels {
			labels = append(labels, fmt.Sprintf("%q:%q", name, value))
		}
		for _, x := range s.samples {
			values = append(values, fmt.Sprintf(`[%d.%03d,"%s"]`, x.T/1000, x.T%1000, number(x.V)))
		}
		out = append(out, fmt.Sprintf(`{"metric":{%s},"values":[%s]}`, strings.Join(labels, ","), strings.Join(values, ",")))
	}
	return `{"status":"success","data":{"resultType":"matrix","result":[` + strings.Join(out, ",") + `]}}`
}

func number(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return fmt.Sprint(v)
}

// asked is a query as a server got it.
type asked struct {
	at    time.Duration // since the server was made
	host  string
	query string
	form  url.Values
	span  time.Duration
}

// fakeServer is a transport that answers as a test says, and that notes what it was asked.
type fakeServer struct {
	began  time.Time
	answer func(n int, q asked) (status int, body io.Reader, err error) // of the n-th query, from 0

	mu    sync.Mutex
	asked []asked
	hang  time.Duration
}

func newServer(answer func(n int, q asked) (int, io.Reader, error)) *fakeServer {
	return &fakeServer{began: time.Now(), answer: answer}
}

// answering returns a server whose answers have the series that a function returns, cut to what is asked for.
func answering(all func() []fakeSeries) *fakeServer {
	return newServer(func(_ int, q asked) (int, io.Reader, error) {
		now := time.Now().UnixMilli()
		var out []fakeSeries
		for _, s := range all() {
			s.samples = slices.DeleteFunc(slices.Clone(s.samples), func(x pipeline.Sample) bool { return x.T <= now-q.span.Milliseconds() })
			if len(s.samples) > 0 {
				out = append(out, s)
			}
		}
		return http.StatusOK, strings.NewReader(matrix(out...)), nil
	})
}

// saying returns a server that always gives the same answer.
func saying(status int, body string) *fakeServer {
	return newServer(func(int, asked) (int, io.Reader, error) { return status, strings.NewReader(body), nil })
}

func (f *fakeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	q := asked{at: time.Since(f.began), host: r.URL.Host, query: r.Form.Get("query"), form: r.Form}
	if open := strings.LastIndexByte(q.query, '['); open >= 0 {
		span, err := model.ParseDuration(strings.TrimSuffix(q.query[open+1:], "]"))
		if err != nil {
			return nil, err
		}
		q.span = time.Duration(span)
	}
	f.mu.Lock()
	n, hang := len(f.asked), f.hang
	f.asked = append(f.asked, q)
	f.mu.Unlock()
	if hang > 0 {
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(hang):
		}
	}
	status, body, err := f.answer(n, q)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Request: r, ContentLength: -1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body),
	}, nil
}

func (f *fakeServer) queries() []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func (f *fakeServer) spans() []int {
	var out []int
	for _, q := range f.queries() {
		out = append(out, int(q.span/time.Second))
	}
	return out
}

// growing has a server's series grow by a sample a second, whose value a function of the seconds tells.
func growing(began time.Time, value func(pod string, second int) float64, names ...string) func() []fakeSeries {
	return func() []fakeSeries {
		var out []fakeSeries
		for _, name := range names {
			s := pod(name)
			for i := -20; ; i++ {
				at := began.Add(time.Duration(i) * time.Second)
				if at.After(time.Now()) {
					break
				}
				s.samples = append(s.samples, pipeline.Sample{T: at.UnixMilli(), V: value(name, i)})
			}
			out = append(out, s)
		}
		return out
	}
}

// running starts a source on a server, and ends it with the test's bubble.
func running(t *testing.T, o Options, transport http.RoundTripper) *Source {
	t.Helper()
	s := newSource(o.withDefaults(), transport)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	synctest.Wait()
	return s
}

// pass lets virtual time pass and everything come to rest.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// once asks a server once about pods a and b, in virtual time, and returns what the sink was told.
func once(t *testing.T, server *fakeServer, fleet *fakeFleet) *recorder {
	t.Helper()
	s := running(t, Options{}, server)
	sink := newRecorder()
	require.NoError(t, s.Set(key("pm"), gauge(), fleet, sink))
	pass(time.Second)
	s.Remove(key("pm"))
	return sink
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
