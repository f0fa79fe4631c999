package remotewrite

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/internal/promapi"
)

// exported is a metric of one resource as a test exports it.
type exported struct {
	metrics pmetric.Metrics
	scope   pmetric.ScopeMetrics
}

// export returns a request from a pod of shop, without metrics.
func export(pod string) exported {
	e := exported{metrics: pmetric.NewMetrics()}
	return e.and("k8s.namespace.name", "shop", "k8s.pod.name", pod)
}

// and adds a resource, to which metrics are added from now on.
func (e exported) and(attributes ...string) exported {
	r := e.metrics.ResourceMetrics().AppendEmpty()
	set(r.Resource().Attributes(), attributes...)
	e.scope = r.ScopeMetrics().AppendEmpty()
	return e
}

func set(m pcommon.Map, nameValues ...string) {
	for i := 0; i < len(nameValues); i += 2 {
		m.PutStr(nameValues[i], nameValues[i+1])
	}
}

// gauge adds a gauge.
func (e exported) gauge(name string, samples ...decode.Sample) exported {
	m := e.scope.Metrics().AppendEmpty()
	m.SetName(name)
	put(m.SetEmptyGauge().DataPoints(), samples...)
	return e
}

// counter adds a monotonic sum.
func (e exported) counter(name string, as pmetric.AggregationTemporality, samples ...decode.Sample) exported {
	m := e.scope.Metrics().AppendEmpty()
	m.SetName(name)
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(as)
	put(sum.DataPoints(), samples...)
	return e
}

// with adds attributes to all data points of the last gauge.
func (e exported) with(attributes ...string) exported {
	all := e.scope.Metrics()
	for _, p := range all.At(all.Len() - 1).Gauge().DataPoints().All() {
		set(p.Attributes(), attributes...)
	}
	return e
}

func put(points pmetric.NumberDataPointSlice, samples ...decode.Sample) {
	for _, x := range samples {
		p := points.AppendEmpty()
		p.SetTimestamp(pcommon.Timestamp(x.T * 1e6))
		p.SetStartTimestamp(pcommon.Timestamp(x.Start * 1e6))
		p.SetDoubleValue(x.V)
	}
}

// otlpForm is an encoding of OTLP/HTTP.
type otlpForm struct {
	name, contentType string
	encode            func(pmetricotlp.ExportRequest) ([]byte, error)
	decode            func(pmetricotlp.ExportResponse, []byte) error
	decodeStatus      func([]byte, proto.Message) error
}

var otlpForms = []otlpForm{
	{"protobuf", protobufType, pmetricotlp.ExportRequest.MarshalProto,
		pmetricotlp.ExportResponse.UnmarshalProto, proto.Unmarshal},
	{"JSON", jsonType, pmetricotlp.ExportRequest.MarshalJSON,
		pmetricotlp.ExportResponse.UnmarshalJSON, protojson.Unmarshal},
}

func (f otlpForm) body(e exported) []byte {
	return must(f.encode(pmetricotlp.NewExportRequestFromMetrics(e.metrics)))
}

func (f otlpForm) post(body []byte) *http.Request {
	r := httptest.NewRequest(http.MethodPost, otlpPath, bytes.NewReader(body))
	r.Header.Set("Content-Type", f.contentType)
	return r
}

// partial returns what was rejected.
func (f otlpForm) partial(t *testing.T, w *httptest.ResponseRecorder) (points int64, why string) {
	t.Helper()
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Equal(t, f.contentType, w.Header().Get("Content-Type"))
	response := pmetricotlp.NewExportResponse()
	require.NoError(t, f.decode(response, w.Body.Bytes()))
	return response.PartialSuccess().RejectedDataPoints(), response.PartialSuccess().ErrorMessage()
}

// failure returns the message of an answer that is an error.
func (f otlpForm) failure(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	require.Equal(t, f.contentType, w.Header().Get("Content-Type"))
	s := status.New(codes.OK, "").Proto()
	require.NoError(t, f.decodeStatus(w.Body.Bytes(), s))
	require.NotZero(t, s.GetCode())
	return s.GetMessage()
}

func zipped(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(body)
	_ = z.Close()
	return b.Bytes()
}

const (
	cumulative = pmetric.AggregationTemporalityCumulative
	delta      = pmetric.AggregationTemporalityDelta
)

// To move from one protocol to the other, only the sender changes.
func TestOTLPGivesTheSamplesOfRemoteWrite(t *testing.T) {
	for _, c := range []struct {
		name     string
		config   Config
		pushed   []pushed
		exported func() exported
		samples  int
	}{
		{"a gauge", gauge(), []pushed{push("load{namespace=shop,pod=web-0}", at(0, 1), at(1, 2))},
			func() exported { return export("web-0").gauge("load", at(0, 1), at(1, 2)) }, 2},
		{"a counter that is reset", Config{Metric: "requests_total", Type: source.Counter, PodLabel: "pod"},
			[]pushed{push("requests_total{namespace=shop,pod=web-0}", since(-9, at(0, 100)),
				since(-9, at(1, 110)), since(2, at(3, 130)))},
			func() exported {
				return export("web-0").counter("requests", cumulative, since(-9, at(0, 100)),
					since(-9, at(1, 110)), since(2, at(3, 130)))
			}, 3},
		{"a target as a whole", whole("queue"), []pushed{push("queue{namespace=shop}", at(0, 7))},
			func() exported {
				return exported{metrics: pmetric.NewMetrics()}.and("k8s.namespace.name", "shop").gauge("queue",
					at(0, 7))
			}, 1},
		{"labels", matching(gauge(), "http_route", "/", "k8s_container_name", "app"),
			[]pushed{push("load{http_route=/,k8s_container_name=app,namespace=shop,pod=web-0}", at(0, 3))},
			func() exported {
				return exported{metrics: pmetric.NewMetrics()}.and("k8s.namespace.name", "shop", "k8s.pod.name",
					"web-0",
					"k8s.container.name", "app").gauge("load", at(0, 3)).with("http.route", "/")
			}, 1},
	} {
		for _, f := range otlpForms {
			t.Run(c.name+"/"+f.name, func(t *testing.T) {
				want, got := sourcetest.NewRecorder(), sourcetest.NewRecorder()
				r := newReceiver()
				r.at(9)
				r.Set(key("m"), c.config, newFleet("shop", "web-0"), want)
				require.Equal(t, http.StatusNoContent, r.push(encodings[1], c.pushed...).Code)

				r = newReceiver()
				r.at(9)
				r.Set(key("m"), c.config, newFleet("shop", "web-0"), got)
				points, why := f.partial(t, do(r.handler, f.post(f.body(c.exported()))))
				assert.Zero(t, points)
				assert.Empty(t, why)
				instance := "uid-web-0"
				if c.config.Whole {
					instance = source.WholeTarget
				}
				assert.NotEmpty(t, got.Samples(instance))
				assert.Equal(t, want.Samples(instance), got.Samples(instance))
				assert.Equal(t, c.samples, r.count(t, "taken"))
				assert.InDelta(t, 1, sourcetest.Gathered(t, r.registry,
					"foresail_remote_write_request_duration_seconds", "otlp"), 0)
				assert.Zero(t, sourcetest.Gathered(t, r.registry, "foresail_remote_write_in_flight_bytes", ""),
					"all is given back")
			})
		}
	}
}

// since returns a sample of a counter that counts since then.
func since(seconds float64, x decode.Sample) decode.Sample {
	x.Start = at(seconds, 0).T
	return x
}

func whole(metric string) Config {
	return Config{Metric: metric, Type: source.Gauge, Whole: true}
}

func TestOTLPPartialSuccess(t *testing.T) {
	metric := func(fill func(pmetric.Metric)) func(exported) exported {
		return func(e exported) exported {
			m := e.scope.Metrics().AppendEmpty()
			m.SetName("load")
			fill(m)
			return e
		}
	}
	point := func(change func(pmetric.NumberDataPoint)) func(exported) exported {
		return metric(func(m pmetric.Metric) {
			p := m.SetEmptyGauge().DataPoints().AppendEmpty()
			p.SetTimestamp(pcommon.Timestamp(start * 1e6))
			p.SetIntValue(2)
			change(p)
		})
	}
	const histogram = `unsupported_type: 2 samples, such as: load is a histogram, of which nothing is read: push a gauge or a counter`
	for _, c := range []struct {
		name   string
		metric string // "": load
		add    func(exported) exported
		points int64
		says   string // part of it
		result string
	}{
		{"an integer", "", point(func(pmetric.NumberDataPoint) {}), 0, "", "taken"},
		{"nothing recorded", "", point(func(p pmetric.NumberDataPoint) { p.SetFlags(p.Flags().WithNoRecordedValue(true)) }),
			0, "", "stale_marker"},
		{"a stale marker", "", point(func(p pmetric.NumberDataPoint) {
			p.SetDoubleValue(math.Float64frombits(value.StaleNaN))
		}), 0, "", "stale_marker"},
		{"of no interest", "", func(e exported) exported { return e.gauge("other", at(0, 1)) }, 0, "", "unselected"},
		{"a sum that goes up and down", "", metric(func(m pmetric.Metric) {
			m.SetEmptySum().SetAggregationTemporality(cumulative)
			put(m.Sum().DataPoints(), at(0, 2))
		}), 0, "", "taken"},
		{"a delta", "load_total", func(e exported) exported { return e.counter("load", delta, at(0, 1), at(1, 1)) }, 2,
			"rejected, while everything else was taken: unsupported_type: 2 samples, such as: load_total is a sum of delta temporality, which must be cumulative: use the collector's processor deltatocumulative", "unsupported_type"},
		{"a sum of no temporality", "load_total", func(e exported) exported {
			return e.counter("load", pmetric.AggregationTemporalityUnspecified, at(0, 1))
		}, 1, "a sum of unspecified temporality", "unsupported_type"},
		{"a delta that no one wants", "",
			func(e exported) exported { return e.counter("load", delta, at(0, 1)) }, 0, "", "unselected"},
		{"a histogram", "", metric(func(m pmetric.Metric) {
			h := m.SetEmptyHistogram()
			h.DataPoints().AppendEmpty()
			h.DataPoints().AppendEmpty()
		}), 2, histogram, "unsupported_type"},
		{"the count of a histogram", "load_count", metric(func(m pmetric.Metric) {
			h := m.SetEmptyHistogram()
			h.DataPoints().AppendEmpty()
			h.DataPoints().AppendEmpty()
		}), 2, histogram, "unsupported_type"},
		{"an exponential histogram", "",
			metric(func(m pmetric.Metric) { m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty() }), 1,
			"load is a histogram", "unsupported_type"},
		{"a summary", "", metric(func(m pmetric.Metric) { m.SetEmptySummary().DataPoints().AppendEmpty() }), 1,
			"load is a summary", "unsupported_type"},
		{"a histogram that no one wants", "other",
			metric(func(m pmetric.Metric) { m.SetEmptyHistogram().DataPoints().AppendEmpty() }), 0, "", ""},
		{"a metric without data", "", metric(func(pmetric.Metric) {}), 0, "", ""},
		{"no value", "", point(func(p pmetric.NumberDataPoint) {
			pmetric.NewNumberDataPoint().CopyTo(p)
			p.SetTimestamp(1e6)
		}), 1, "invalid_labels: 1 samples, such as: load: a data point has no value", "invalid_labels"},
		{"no time", "", point(func(p pmetric.NumberDataPoint) { p.SetTimestamp(0) }), 1,
			"load: a data point has no time", "invalid_labels"},
		{"no name", "", func(e exported) exported { return e.gauge("", at(0, 1)) }, 1,
			"normalization for metric \"\" resulted in empty name", "invalid_labels"},
		{"a long name", "", func(e exported) exported { return e.gauge(strings.Repeat("x", 65), at(0, 1)) }, 1,
			"a metric has a name and a unit of 65 bytes; at most 64 are accepted", "invalid_labels"},
		{"a long attribute name", "", func(e exported) exported {
			return e.gauge("load", at(0, 1)).with(strings.Repeat("x", 33), "y")
		}, 1, "has a name of 33 bytes; at most 32", "invalid_labels"},
		{"a long value", "", func(e exported) exported {
			return e.gauge("load", at(0, 1)).with("a", strings.Repeat("y", 65))
		}, 1, `label "a" has a value of 65 bytes; at most 64`, "invalid_labels"},
		{"a nameless attribute", "", func(e exported) exported { return e.gauge("load", at(0, 1)).with("", "x") }, 1,
			"load: label name is empty", "invalid_labels"},
		{"not UTF-8", "", func(e exported) exported { return e.gauge("load", at(0, 1)).with("a", "\xff") }, 1,
			`label "a" is not UTF-8`, "invalid_labels"},
		{"many attributes", "", func(e exported) exported {
			return e.gauge("load", at(0, 1)).with("a", "", "b", "", "c", "", "d", "", "e", "", "f",
				"", "g", "", "h", "", "i", "")
		}, 1, "load has more than 8 labels", "invalid_labels"},
		{"many labels with those of the resource", "", func(e exported) exported {
			return e.gauge("load", at(0, 1)).with("a", "", "b", "", "c", "", "d", "")
		}, 1, "load has more than 8 labels", "invalid_labels"},
		{"a long data point", "", func(e exported) exported {
			return e.gauge("load", at(0, 1)).with("a", strings.Repeat("y", 768))
		}, 1, "load has a data point of", "invalid_labels"},
		{"two series of a pod", "", func(e exported) exported {
			return e.gauge("load", at(0, 2)).gauge("load", at(0, 3)).with("a", "b")
		}, 1, `duplicate_series: 1 samples, such as: load of pod web-0`, "duplicate_series"},
		{"ahead", "", func(e exported) exported { return e.gauge("load", at(11, 2)) }, 1,
			"from_future: 1 samples, such as: load of pod web-0: a sample is dated 2027-01-15T08:00:11Z",
			"from_future"},
	} {
		for _, f := range otlpForms {
			if f.name == "JSON" && (c.name == "not UTF-8" || c.name == "a stale marker") {
				continue // JSON has neither
			}
			t.Run(c.name+"/"+f.name, func(t *testing.T) {
				r := newReceiver(func(o *Options) {
					o.MaxLabels, o.MaxLabelNameBytes, o.MaxLabelValueBytes = 8, 32,
						64
				})
				config := gauge()
				if c.metric != "" {
					config.Metric = c.metric
				}
				r.Set(key("m"), config, newFleet("shop", "web-0"), sourcetest.NewRecorder())
				good := sourcetest.NewRecorder()
				r.Set(key("good"), Config{Metric: "good", Type: source.Gauge, PodLabel: "pod"},
					newFleet("shop", "web-0"), good)

				points, why := f.partial(t, do(r.handler,
					f.post(f.body(c.add(export("web-0")).gauge("good", at(0, 1))))))
				assert.Equal(t, c.points, points)
				assert.Contains(t, why, c.says)
				assert.Equal(t, c.says == "", why == "", why)
				assert.Equal(t, []float64{1}, good.Values("uid-web-0"), "the rest is taken")
				if c.result != "" {
					assert.Positive(t, r.count(t, c.result))
				}
			})
		}
	}
}

func TestOTLPNames(t *testing.T) {
	for _, c := range []struct {
		name, unit string
		monotonic  bool
		is         string
	}{
		{"nodejs.eventloop.utilization", "1", false, "nodejs_eventloop_utilization_ratio"},
		{"http.server.active_requests", "{request}", false, "http_server_active_requests"},
		{"http.requests", "{request}", true, "http_requests_total"},
		{"http_requests_total", "", true, "http_requests_total"},
		{"process.cpu.time", "s", true, "process_cpu_time_seconds_total"},
		{"queue.size", "By", false, "queue_size_bytes"},
		{"2xx", "", false, "_2xx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, sink := newReceiver(), sourcetest.NewRecorder()
			as := source.Gauge
			if c.monotonic {
				as = source.Counter
			}
			r.Set(key("m"), Config{Metric: c.is, Type: as, PodLabel: "pod"}, newFleet("shop", "web-0"), sink)
			e := export("web-0")
			if c.monotonic {
				e.counter(c.name, cumulative, at(0, 1), at(1, 2))
			} else {
				e.gauge(c.name, at(0, 1))
			}
			e.scope.Metrics().At(0).SetUnit(c.unit)
			otlpForms[0].partial(t, do(r.handler, otlpForms[0].post(otlpForms[0].body(e))))
			assert.Equal(t, []float64{1}, sink.Values("uid-web-0"))
		})
	}
}

func TestOTLPLabels(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, c := range []struct {
		name       string
		resource   []string
		attributes []string
		is         string
	}{
		{"of the resource", []string{"k8s.pod.name", "web-0", "k8s.namespace.name", "shop"}, nil,
			`load{k8s_namespace_name="shop", k8s_pod_name="web-0", namespace="shop", otel_scope_name="meter", pod="web-0"}`},
		{"of the data point, which win", []string{"k8s.pod.name", "web-0", "region", "eu"},
			[]string{"region", "us", "k8s.pod.name", "web-2"},
			`load{k8s_pod_name="web-2", otel_scope_name="meter", pod="web-0", region="us"}`},
		{"a pod and a namespace that a data point claims",
			[]string{"k8s.pod.name", "web-0", "k8s.namespace.name", "shop"},
			[]string{"pod", "web-1", "namespace", "bank"},
			`load{k8s_namespace_name="shop", k8s_pod_name="web-0", namespace="shop", otel_scope_name="meter", pod="web-0"}`},
		{"pod and namespace of the resource itself", []string{"k8s.pod.name", "web-0", "pod", "web-1"}, nil,
			`load{k8s_pod_name="web-0", otel_scope_name="meter", pod="web-0"}`},
		{"other attributes that name them", []string{"pod", "web-1", "namespace", "shop"}, nil,
			`load{namespace="shop", otel_scope_name="meter", pod="web-1"}`},
		{"a pod and a namespace where the resource has none", []string{"region", "eu"},
			[]string{"pod", "web-1", "namespace", "bank", "job", "x"},
			`load{job="x", otel_scope_name="meter", region="eu"}`},
		{"job and instance", []string{"service.name", "checkout", "service.namespace", "shop", "service.instance.id",
			"1"},
			[]string{"job", "x"},
			`load{instance="1", job="shop/checkout", otel_scope_name="meter", service_instance_id="1", service_name="checkout", service_namespace="shop"}`},
		{"names that become one", nil, []string{"a.b", "1", "a-b", "2"}, `load{a_b="2;1", otel_scope_name="meter"}`},
		{"names that labels cannot have", nil, []string{"1st", "1", "_x", "2", "__name__", "other"},
			`load{key_1st="1", key_x="2", otel_scope_name="meter"}`},
		{"what is too long of a resource", []string{"process.command_line", long, long, "1", "", "2"}, nil,
			`load{otel_scope_name="meter"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := exported{metrics: pmetric.NewMetrics()}.and(c.resource...).gauge("load",
				at(0, 1)).with(c.attributes...)
			e.scope.Scope().SetName("meter")
			got := &listed{}
			o := newReceiver().options
			require.NoError(t, decode.New(o.limits(), o.Tenancy, nil).OTLP(otlpForms[0].body(e), got))
			assert.Equal(t, []string{c.is}, got.series)
		})
	}
}

// TestDataPointsDoNotNameTheirPod has an application claim the pod of another one, by the label that the
// PredictedMetric names pods with.
func TestDataPointsDoNotNameTheirPod(t *testing.T) {
	for _, form := range otlpForms {
		for _, label := range []string{"pod", "k8s_pod_name", "instance_of"} {
			r, sink := newReceiver(), sourcetest.NewRecorder()
			c := gauge()
			c.PodLabel = label
			r.Set(key("m"), c, newFleet("shop", "web-0"), sink)
			claims := exported{metrics: pmetric.NewMetrics()}.and("k8s.namespace.name", "shop").gauge("load",
				at(0, 1)).with(label, "web-0")
			form.partial(t, do(r.handler, form.post(form.body(claims))))
			unowned := exported{metrics: pmetric.NewMetrics()}.and("region", "eu").gauge("load", at(0, 1)).with(label,
				"web-0", "namespace", "shop")
			form.partial(t, do(r.handler, form.post(form.body(unowned))))
			assert.Empty(t, sink.Values("uid-web-0"), label)
			assert.Equal(t, 1, r.count(t, "no_pod_label"), label)
			assert.Equal(t, 1, r.count(t, "no_namespace_label"), label)
			named := exported{metrics: pmetric.NewMetrics()}.and("k8s.namespace.name", "shop", label,
				"web-0").gauge("load", at(0, 1))
			form.partial(t, do(r.handler, form.post(form.body(named))))
			assert.Equal(t, []float64{1}, sink.Values("uid-web-0"), label)
		}
	}
}

// TestDataPointsDoNotNameTheirPodWhicheverTheTenancy has the namespace of a resource follow from each thing that it can
// follow from.
func TestDataPointsDoNotNameTheirPodWhicheverTheTenancy(t *testing.T) {
	type tenancy = promapi.Tenancy
	for name, test := range map[string]struct {
		tenancy  tenancy
		resource []string
	}{
		"k8s.namespace.name":                {tenancy{}, []string{"k8s.namespace.name", "shop"}},
		"an attribute that is the label":    {tenancy{}, []string{"namespace", "shop"}},
		"an attribute that makes the label": {tenancy{NamespaceLabel: "team_name"}, []string{"team.name", "shop"}},
		"k8s.namespace.name for another label": {tenancy{NamespaceLabel: "team"},
			[]string{"k8s.namespace.name", "shop"}},
		"both, of which the target's is used":   {tenancy{}, []string{"namespace", "x", "k8s.namespace.name", "shop"}},
		"the namespace of what has no label":    {tenancy{Unlabelled: "shop"}, []string{"region", "eu"}},
		"the same of a namespace that is empty": {tenancy{Unlabelled: "shop"}, []string{"k8s.namespace.name", ""}},
		"the job, which is the label":           {tenancy{NamespaceLabel: "job"}, []string{"service.name", "shop"}},
		"the job, which comes after the namespace": {tenancy{NamespaceLabel: "job"},
			[]string{"service.name", "shop", "k8s.namespace.name", "x"}},
		"the attribute's own label": {tenancy{NamespaceLabel: "k8s_namespace_name"},
			[]string{"k8s.namespace.name", "shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, sink := newReceiver(func(o *Options) { o.Tenancy = test.tenancy }), sourcetest.NewRecorder()
			c := gauge()
			c.PodLabel = "replica"
			r.Set(key("m"), c, newFleet("shop", "web-0"), sink)
			form := otlpForms[0]
			push := func(e exported) { form.partial(t, do(r.handler, form.post(form.body(e)))) }
			e := func() exported { return exported{metrics: pmetric.NewMetrics()} }
			push(e().and(test.resource...).gauge("load", at(0, 1)).with("replica", "web-0"))
			assert.Empty(t, sink.Values("uid-web-0"), "an application claims to be a pod")
			assert.Equal(t, 1, r.count(t, "no_pod_label"))
			push(e().and(append(test.resource, "replica", "web-0")...).gauge("load", at(1, 2)))
			assert.Equal(t, []float64{2}, sink.Values("uid-web-0"))
		})
	}
}

// TestTheKindOfTheSenderDecides has each kind of OTLP read as each type.
func TestTheKindOfTheSenderDecides(t *testing.T) {
	upDown := func(e exported) {
		m := e.scope.Metrics().AppendEmpty()
		m.SetName("load")
		sum := m.SetEmptySum()
		sum.SetAggregationTemporality(cumulative)
		put(sum.DataPoints(), at(0, 1), at(1, 3))
	}
	for _, test := range []struct {
		name   string
		metric string
		as     source.Type
		add    func(exported)
		want   []float64
		says   string
	}{
		{"a monotonic sum as a counter", "load_total", source.Counter,
			func(e exported) { e.counter("load", cumulative, at(0, 1), at(1, 3)) }, []float64{2}, ""},
		{"a monotonic sum as a gauge", "load_total", source.Gauge,
			func(e exported) { e.counter("load", cumulative, at(0, 1), at(1, 3)) }, nil,
			"load_total is a counter by its sender: source.remoteWrite.type must be Counter"},
		{"an UpDownCounter as a gauge", "load", source.Gauge, upDown, []float64{1, 3}, ""},
		{"an UpDownCounter as a counter", "load", source.Counter, upDown, nil,
			"load is a gauge by its sender: source.remoteWrite.type must be Gauge"},
		{"a gauge as a counter", "load", source.Counter,
			func(e exported) { e.gauge("load", at(0, 1), at(1, 3)) }, nil, "type must be Gauge"},
	} {
		for _, form := range otlpForms {
			t.Run(test.name+" "+form.name, func(t *testing.T) {
				r, sink := newReceiver(), sourcetest.NewRecorder()
				r.Set(key("m"), Config{Metric: test.metric, Type: test.as, PodLabel: "pod"}, newFleet("shop", "web-0"),
					sink)
				e := export("web-0")
				test.add(e)
				accepted, why := form.partial(t, do(r.handler, form.post(form.body(e))))
				assert.Empty(t, why, "the sender is right")
				assert.Zero(t, accepted)
				assert.Equal(t, test.want, sink.Values("uid-web-0"))
				if test.says == "" {
					assert.Empty(t, sink.Failing("uid-web-0"))
					return
				}
				assert.Contains(t, sink.Failing("uid-web-0"), test.says)
				assert.Equal(t, 2, r.count(t, "wrong_type"))
			})
		}
	}
}

// listed is a consumer that lists the series that it takes.
type listed struct{ series []string }

func (*listed) Desired(string, int) bool { return true }

func (l *listed) Add(of decode.Labels, _ []decode.Sample, _ []byte) {
	l.series = append(l.series, of.String())
}

func (l *listed) Invalid(reason error, _ int) { l.series = append(l.series, reason.Error()) }

func (l *listed) Unsupported(reason error, _ int) { l.series = append(l.series, reason.Error()) }

// More data points than are decoded at once, of several resources.
func TestOTLPDecodesInParts(t *testing.T) {
	r, sink := newReceiver(), sourcetest.NewRecorder()
	r.Set(key("m"), matching(gauge(), "n", "1999"), newFleet("shop", "web-0", "web-1"), sink)
	e := export("web-0")
	for _, pod := range []string{"web-0", "web-1"} {
		e = e.and("k8s.namespace.name", "shop", "k8s.pod.name", pod)
		points := e.scope.Metrics().AppendEmpty()
		points.SetName("load")
		for n := range 2000 {
			p := points.SetEmptyGauge
			if n > 0 {
				p = points.Gauge
			}
			x := p().DataPoints().AppendEmpty()
			x.SetTimestamp(pcommon.Timestamp(start * 1e6))
			x.SetIntValue(int64(n))
			x.Attributes().PutStr("n", fmt.Sprint(n))
			x.Exemplars().AppendEmpty().SetIntValue(1)
		}
	}
	_, why := otlpForms[0].partial(t, do(r.handler, otlpForms[0].post(otlpForms[0].body(e))))
	assert.Empty(t, why)
	assert.Equal(t, []float64{1999}, sink.Values("uid-web-0"))
	assert.Equal(t, []float64{1999}, sink.Values("uid-web-1"))
	assert.InDelta(t, 4000, sourcetest.Gathered(t, r.registry, "foresail_remote_write_ignored_total", "exemplar"), 0)
	assert.Equal(t, 3998, r.count(t, "unselected"))
}
