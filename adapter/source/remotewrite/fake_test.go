package remotewrite

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/internal/share"
)

// start is when tests begin (ms).
const start = int64(1_800_000_000_000)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func instance(namespace, pod string) podtracker.Instance {
	return podtracker.Instance{
		ID: "uid-" + pod, Pod: types.NamespacedName{Namespace: namespace, Name: pod},
		Start: time.UnixMilli(start - 60_000),
	}
}

func gauge() Config {
	return Config{Metric: "load", Type: source.Gauge, PodLabel: "pod"}
}

func counter() Config {
	c := gauge()
	c.Type = source.Counter
	return c
}

func matching(c Config, nameValues ...string) Config {
	c.MatchLabels = map[string]string{}
	for i := 0; i < len(nameValues); i += 2 {
		c.MatchLabels[nameValues[i]] = nameValues[i+1]
	}
	return c
}

// newFleet returns a fleet of pods.
func newFleet(namespace string, pods ...string) *sourcetest.Fleet {
	var all []podtracker.Instance
	for _, pod := range pods {
		all = append(all, instance(namespace, pod))
	}
	return sourcetest.NewFleet(all...)
}

// pushed is a series as a test pushes it: "name{a=b,c=d}" and its samples, at times in seconds after the start.
type pushed struct {
	series  string
	samples []decode.Sample
}

func push(series string, samples ...decode.Sample) pushed { return pushed{series, samples} }

func at(seconds float64, v float64) decode.Sample {
	return decode.Sample{T: start + int64(seconds*1000), V: v}
}

// labelsOf parses "name{a=b,c=d}" into names and values, in order of name.
func labelsOf(series string) []string {
	name, rest, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	var out []string
	if name != "" {
		out = append(out, decode.MetricName, name)
	}
	if rest == "" {
		return out
	}
	for pair := range strings.SplitSeq(rest, ",") {
		n, v, _ := strings.Cut(pair, "=")
		out = append(out, n, v)
	}
	return out
}

// encoding writes requests in one version of the protocol.
type encoding struct {
	name, contentType string
	encode            func(all ...pushed) []byte
}

var encodings = []encoding{
	{"v1", "application/x-protobuf", encodeV1},
	{"v2", "application/x-protobuf;proto=io.prometheus.write.v2.Request", encodeV2},
}

func encodeV1(all ...pushed) []byte {
	var m prompb.WriteRequest
	for _, p := range all {
		var s prompb.TimeSeries
		l := labelsOf(p.series)
		for i := 0; i < len(l); i += 2 {
			s.Labels = append(s.Labels, prompb.Label{Name: l[i], Value: l[i+1]})
		}
		for _, x := range p.samples {
			s.Samples = append(s.Samples, prompb.Sample{Timestamp: x.T, Value: x.V})
		}
		m.Timeseries = append(m.Timeseries, s)
	}
	return must(m.Marshal())
}

func encodeV2(all ...pushed) []byte {
	symbols := writev2.NewSymbolTable()
	var m writev2.Request
	for _, p := range all {
		var s writev2.TimeSeries
		for _, text := range labelsOf(p.series) {
			s.LabelsRefs = append(s.LabelsRefs, symbols.Symbolize(text))
		}
		s.Metadata.HelpRef = symbols.Symbolize("How much.")
		for _, x := range p.samples {
			s.Metadata.Type = map[decode.Kind]writev2.Metadata_MetricType{
				decode.Gauge: writev2.Metadata_METRIC_TYPE_GAUGE, decode.Counter: writev2.Metadata_METRIC_TYPE_COUNTER,
			}[x.Kind]
			s.Samples = append(s.Samples, writev2.Sample{Timestamp: x.T, StartTimestamp: x.Start, Value: x.V})
		}
		m.Timeseries = append(m.Timeseries, s)
	}
	m.Symbols = symbols.Symbols()
	return must(m.Marshal())
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func (e encoding) request(all ...pushed) *http.Request {
	return post(e.contentType, snappy.Encode(nil, e.encode(all...)))
}

func post(contentType string, body []byte) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Content-Encoding", "snappy")
	return r
}

// do has a handler answer a request.
func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// receiver is a source with a clock that stands at a second after the start.
type receiver struct {
	*Source
	handler  http.Handler
	registry *prometheus.Registry
	now      time.Time
}

func newReceiver(change ...func(*Options)) *receiver {
	r := &receiver{registry: prometheus.NewRegistry(), now: time.UnixMilli(start)}
	o := Options{Registerer: r.registry, Now: func() time.Time { return r.now }}
	for _, f := range change {
		f(&o)
	}
	r.Source = New(o)
	r.handler = r.Source.handler()
	return r
}

func (r *receiver) at(seconds float64) {
	r.now = time.UnixMilli(start).Add(time.Duration(seconds * float64(time.Second)))
}

// push pushes series in one request.
func (r *receiver) push(e encoding, all ...pushed) *httptest.ResponseRecorder {
	return do(r.handler, e.request(all...))
}

// count returns how many samples came to a result.
func (r *receiver) count(t *testing.T, result string) int {
	t.Helper()
	return int(sourcetest.Gathered(t, r.registry, "foresail_remote_write_samples_total", result))
}

// occupy takes memory for bodies that nothing gives back before the end of the lease.
func (r *receiver) occupy(t *testing.T, n int64) *share.Lease {
	t.Helper()
	l := r.ingester.bodies.budget.Lease("another", nil)
	require.NoError(t, l.Take(t.Context(), n))
	return l
}
