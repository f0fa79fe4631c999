package prometheus

import (
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

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

const address = "http://prometheus:9090"

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func gauge() Config {
	return Config{
		Address: address, Query: "load", PodLabel: "pod",
		Type: source.Gauge, Interval: time.Second, Window: 10 * time.Second,
	}
}

// instance is one of a pod that has been there for an hour.
func instance(pod string) podtracker.Instance {
	return podtracker.Instance{ID: "uid-" + pod, Pod: key(pod), Start: time.Now().Add(-time.Hour)}
}

// fleetOf returns a fleet of pods that have been there for an hour.
func fleetOf(pods ...string) *sourcetest.Fleet {
	var all []podtracker.Instance
	for _, pod := range pods {
		all = append(all, instance(pod))
	}
	return sourcetest.NewFleet(all...)
}

// recorder is a sink that a test asks by the names of pods.
type recorder struct{ *sourcetest.Recorder }

func newRecorder() *recorder { return &recorder{sourcetest.NewRecorder()} }

func (r *recorder) of(pod string) []pipeline.Sample { return r.Samples("uid-" + pod) }

func (r *recorder) values(pod string) []float64 { return r.Values("uid-" + pod) }

// failure returns what was last said of a pod, whatever came after that.
func (r *recorder) failure(pod string) string {
	all := r.Failures("uid-" + pod)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
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
		out = append(out, fmt.Sprintf(`{"metric":{%s},"values":[%s]}`, strings.Join(labels, ","),
			strings.Join(values, ",")))
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

// answering returns a server whose answers have the series that a function returns, cut to what is requested.
func answering(all func() []fakeSeries) *fakeServer {
	return newServer(func(_ int, q asked) (int, io.Reader, error) {
		now := time.Now().UnixMilli()
		var out []fakeSeries
		for _, s := range all() {
			s.samples = slices.DeleteFunc(slices.Clone(s.samples),
				func(x pipeline.Sample) bool { return x.T <= now-q.span.Milliseconds() })
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
	if open := strings.LastIndexByte(q.query, '['); open >= 0 && strings.HasSuffix(q.query, "]") {
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
	sourcetest.Run(t, s.Run)
	synctest.Wait()
	return s
}

// once asks a server once about pods a and b, in virtual time, and returns what the sink was told.
func once(t *testing.T, server *fakeServer, fleet *sourcetest.Fleet) *recorder {
	t.Helper()
	s := running(t, Options{}, server)
	sink := newRecorder()
	require.NoError(t, s.Set(key("pm"), gauge(), fleet, sink))
	sourcetest.Pass(time.Second)
	s.Remove(key("pm"))
	return sink
}

// only returns the one group that there is.
func only(groups map[groupKey]*group) *group {
	for _, g := range groups {
		return g
	}
	return nil
}
