package remotewrite

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/exp/api/remote"
	v2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
	"github.com/foresail/foresail/adapter/source/sourcetest"
)

func TestAnswersOfBothVersions(t *testing.T) {
	const good = "load{namespace=shop,pod=web-0}"
	long := strings.Repeat("x", 33)
	many := make([]pushed, 11)
	for i := range many {
		many[i] = push("other", at(0, 1))
	}
	for _, c := range []struct {
		name    string
		pushed  []pushed
		code    int
		body    string // part of it
		taken   []float64
		written string // of version 2
	}{
		{"nothing", nil, 204, "", nil, "0"},
		{"a sample", []pushed{push(good, at(0, 1))}, 204, "", []float64{1}, "1"},
		{"what no one wants", []pushed{push("other{pod=web-0}", at(0, 1))}, 204, "", nil, "1"},
		{"a pod that no one knows", []pushed{push("load{namespace=shop,pod=db-0}", at(0, 1))}, 204, "", nil, "1"},
		{"no pod", []pushed{push("load{namespace=shop}", at(0, 1))}, 204, "", nil, "1"},
		{"no namespace", []pushed{push("load{pod=web-0}", at(0, 1))}, 204, "", nil, "1"},
		{"labels that are not sorted",
			[]pushed{push("load{pod=web-0,namespace=shop}", at(0, 1))}, 204, "", []float64{1}, "1"},
		{"no samples", []pushed{push(good)}, 204, "", nil, "0"},
		{"no metric", []pushed{push("{namespace=shop,pod=web-0}", at(0, 1)), push(good, at(0, 2))}, 400,
			"invalid_labels: 1 samples, such as: a series has no metric name", []float64{2}, "1"},
		{"a label twice", []pushed{push("load{namespace=shop,pod=web-0,pod=web-0}", at(0, 1)), push(good, at(0, 2))},
			400,
			`label "pod" is there twice`, []float64{2}, "1"},
		{"a label without a name", []pushed{push("load{=x,namespace=shop,pod=web-0}", at(0, 1))}, 400,
			"a label has no name", nil, "0"},
		{"not UTF-8", []pushed{push("load{a=\xff,namespace=shop,pod=web-0}", at(0, 1))}, 400,
			`label "a" is not UTF-8`, nil, "0"},
		{"a long name", []pushed{push("load{"+long+"=x,pod=web-0}", at(0, 1))}, 400,
			"has a name of 33 bytes; at most 32", nil, "0"},
		{"a long value", []pushed{push("load{a="+long+long+",pod=web-0}", at(0, 1))}, 400,
			`label "a" has a value of 66 bytes; at most 64`, nil, "0"},
		{"many labels", []pushed{push("load{a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,namespace=shop,pod=web-0}", at(0, 1)),
			push(good, at(0, 2))}, 400, "load has more than 8 labels", []float64{2}, "1"},
		{"many labels that no one wants",
			[]pushed{push("other{a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,pod=web-0}", at(0, 1))}, 204, "", nil, "1"},
		{"many series", many, 413, "more than 10 series in one request", nil, "0"},
		{"many samples", []pushed{push(good, make([]decode.Sample, 21)...)}, 413,
			"more than 20 samples in one request", nil, "0"},
		{"two series of a pod", []pushed{push("load{job=a,namespace=shop,pod=web-0}", at(0, 1)),
			push("load{job=b,namespace=shop,pod=web-0}", at(0, 2))}, 400,
			`duplicate_series: 1 samples, such as: load of pod web-0: it has several series, none of which is read: {job="a", namespace="shop", pod="web-0"}, and another with job="b" rather than "a": select one with matchLabels`, []float64{1}, "1"},
		// in order of time, neither is late
		{"too old", []pushed{push(good, at(0, 1), at(-301, 2))}, 204, "", []float64{2, 1}, "2"},
		{"ahead", []pushed{push(good, at(0, 1), at(11, 2))}, 400,
			"from_future: 1 samples, such as: load of pod web-0: a sample is dated 2027-01-15T08:00:11Z, which is in the future",
			[]float64{1}, "1"},
	} {
		for _, e := range encodings {
			t.Run(c.name+"/"+e.name, func(t *testing.T) {
				r := newReceiver(func(o *Options) {
					o.MaxSeries, o.MaxSamples, o.MaxLabels, o.MaxLabelNameBytes, o.MaxLabelValueBytes = 10, 20, 8, 32, 64
				})
				sink := sourcetest.NewRecorder()
				r.Set(key("m"), gauge(), newFleet("shop", "web-0"), sink)
				w := r.push(e, c.pushed...)
				assert.Equal(t, c.code, w.Code)
				assert.Contains(t, w.Body.String(), c.body)
				assert.Equal(t, c.taken, sink.Values("uid-web-0"))
				if e.name == "v2" {
					assert.Equal(t, c.written, w.Header().Get("X-Prometheus-Remote-Write-Samples-Written"))
				} else {
					assert.Empty(t, w.Header().Get("X-Prometheus-Remote-Write-Samples-Written"))
				}
				assert.InDelta(t, 1, sourcetest.Gathered(t, r.registry,
					"foresail_remote_write_request_duration_seconds", fmt.Sprint(c.code)), 0)
				assert.Zero(t, sourcetest.Gathered(t, r.registry, "foresail_remote_write_in_flight_bytes", ""),
					"all is given back")
			})
		}
	}
}

func TestAnswersToInvalidRequests(t *testing.T) {
	valid := encodings[0].encode(push("load{namespace=shop,pod=web-0}", at(0, 1)))
	zipped := snappy.Encode(nil, valid)
	type change = func(*http.Request)
	header := func(name, value string) change { return func(r *http.Request) { r.Header.Set(name, value) } }
	for _, c := range []struct {
		name   string
		body   []byte
		change change
		code   int
		says   string
	}{
		{"valid", zipped, nil, 204, ""},
		{"no Content-Type", zipped, func(r *http.Request) { r.Header.Del("Content-Type") }, 204, ""},
		{"no Content-Encoding", zipped, func(r *http.Request) { r.Header.Del("Content-Encoding") }, 204, ""},
		{"its message named", zipped,
			header("Content-Type", "application/x-protobuf; proto=prometheus.WriteRequest"), 204, ""},
		{"version 2 behind a space", snappy.Encode(nil, encodeV2(push("load"))),
			header("Content-Type", "application/x-protobuf; proto=io.prometheus.write.v2.Request"), 204, ""},
		{"JSON", zipped, header("Content-Type", "application/json"), 415,
			"expected application/x-protobuf as the first (media) part, got application/json content-type"},
		{"another message", zipped, header("Content-Type", "application/x-protobuf;proto=prometheus.ReadRequest"), 415,
			"unknown type for remote write protobuf message prometheus.ReadRequest, supported: prometheus.WriteRequest, io.prometheus.write.v2.Request"},
		{"garbled Content-Type", zipped, header("Content-Type", "application/x-protobuf;proto"), 415,
			"expected parameters to be key-values, got proto"},
		{"gzip", zipped, header("Content-Encoding", "gzip"), 415, `Content-Encoding: "gzip": must be snappy`},
		{"GET", nil, func(r *http.Request) { r.Method = http.MethodGet }, 405, ""},
		{"another path", zipped, func(r *http.Request) { r.URL.Path = "/api/v1/read" }, 404, ""},
		{"empty", nil, nil, 400, "not in snappy's block format"},
		{"not compressed", valid, nil, 400, "not in snappy's block format"},
		{"cut short", zipped[:len(zipped)-3], nil, 400, "not in snappy's block format"},
		{"not a message", snappy.Encode(nil, []byte("load 1\n")), nil, 400,
			"not the message that the Content-Type names"},
		{"a message cut short", snappy.Encode(nil, valid[:len(valid)-3]), nil, 400,
			"not the message that the Content-Type names"},
		{"version 1 as 2", zipped, header("Content-Type", encodings[1].contentType), 400, "fields of another version"},
		{"version 2 as 1", snappy.Encode(nil, encodeV2(push("load"))), nil, 400, "fields of another version"},
		{"large", make([]byte, 101), nil, 413, "larger than 100 bytes as sent"},
		{"large, without saying so", make([]byte, 101), func(r *http.Request) { r.ContentLength = -1 }, 413,
			"larger than 100 bytes as sent"},
		{"large once decompressed", snappy.Encode(nil, make([]byte, 1001)), nil, 413,
			"larger than 1000 bytes once decompressed"},
		{"announcing more than it can hold", []byte{0xe7, 0x07, 0}, nil, 400,
			"3 bytes cannot hold the 999 that they announce"},
		{"announcing what no machine holds", []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, nil, 413,
			"larger than 1000 bytes once decompressed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReceiver(func(o *Options) { o.MaxBodyBytes, o.MaxDecodedBytes = 100, 1000 })
			request := post("application/x-protobuf", c.body)
			if c.change != nil {
				c.change(request)
			}
			w := do(r.handler, request)
			assert.Equal(t, c.code, w.Code, w.Body)
			assert.Contains(t, w.Body.String(), c.says)
			assert.Zero(t, sourcetest.Gathered(t, r.registry, "foresail_remote_write_in_flight_bytes", ""),
				"all is given back")
		})
	}
}

func TestMalformedMessagesAreRejectedAsAWhole(t *testing.T) {
	r := newReceiver()
	sink := sourcetest.NewRecorder()
	r.Set(key("m"), gauge(), newFleet("shop", "web-0"), sink)
	series := func(refs ...uint32) writev2.TimeSeries {
		return writev2.TimeSeries{LabelsRefs: refs, Samples: []writev2.Sample{{Timestamp: start, Value: 1}}}
	}
	symbols := []string{"", decode.MetricName, "load", "pod", "web-0", "namespace", "shop"}
	good := series(1, 2, 3, 4, 5, 6)

	w := do(r.handler, post(encodings[1].contentType, snappy.Encode(nil, must((&writev2.Request{
		Symbols: symbols, Timeseries: []writev2.TimeSeries{series(1, 2, 3), series(1, 9), good},
	}).Marshal()))))
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.Contains(t, w.Body.String(), "invalid_labels: 2 samples, such as: a series has 3 references to symbols")
	assert.Equal(t, []float64{1}, sink.Values("uid-web-0"), "series that cannot be resolved do not spoil the others")

	// A series whose sample is cut short, behind a good one.
	message := must((&writev2.Request{Symbols: symbols, Timeseries: []writev2.TimeSeries{good}}).Marshal())
	message = append(message, 0x2a, 4, 0x12, 2, 0x09, 1)
	w = do(r.handler, post(encodings[1].contentType, snappy.Encode(nil, message)))
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.Equal(t, []float64{1}, sink.Values("uid-web-0"))

	message = append(encodings[0].encode(push("load{namespace=shop,pod=web-0}", at(0, 1))), 0x0a, 22, 0x0a, 16, 0x0a, 8)
	message = append(message, decode.MetricName+"\x12\x04load\x12\x02\x09\x01"...)
	w = do(r.handler, post(encodings[0].contentType, snappy.Encode(nil, message)))
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.Equal(t, []float64{1}, sink.Values("uid-web-0"))
}

func TestHistogramsExemplarsAndMetadataAreIgnored(t *testing.T) {
	bodies := map[string][]byte{
		"v1": must((&prompb.WriteRequest{
			Timeseries: []prompb.TimeSeries{{
				Labels: []prompb.Label{{Name: decode.MetricName, Value: "load"}, {Name: "namespace", Value: "shop"},
					{Name: "pod", Value: "web-0"}},
				Samples:    []prompb.Sample{{Timestamp: start, Value: 1}},
				Exemplars:  []prompb.Exemplar{{Value: 1}},
				Histograms: []prompb.Histogram{{Sum: 1}, {Sum: 2}},
			}},
			Metadata: []prompb.MetricMetadata{{MetricFamilyName: "load"}},
		}).Marshal()),
		"v2": must((&writev2.Request{
			Symbols: []string{"", decode.MetricName, "load", "pod", "web-0", "namespace", "shop"},
			Timeseries: []writev2.TimeSeries{{
				LabelsRefs: []uint32{1, 2, 3, 4, 5, 6},
				Samples:    []writev2.Sample{{Timestamp: start, Value: 1}},
				Exemplars:  []writev2.Exemplar{{Value: 1}},
				Histograms: []writev2.Histogram{{Sum: 1}, {Sum: 2}},
				Metadata:   writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_GAUGE},
			}},
		}).Marshal()),
	}
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			r := newReceiver()
			sink := sourcetest.NewRecorder()
			r.Set(key("m"), gauge(), newFleet("shop", "web-0"), sink)
			w := do(r.handler, post(e.contentType, snappy.Encode(nil, bodies[e.name])))
			assert.Equal(t, http.StatusNoContent, w.Code, w.Body)
			assert.Equal(t, []float64{1}, sink.Values("uid-web-0"))
			for kind, n := range map[string]float64{"histogram": 2, "exemplar": 1, "metadata": 1} {
				assert.InDelta(t, n, sourcetest.Gathered(t, r.registry, "foresail_remote_write_ignored_total", kind), 0,
					kind)
			}
		})
	}
}

func TestSendersAreAskedToTryAgain(t *testing.T) {
	unknown := errors.New("pods have not been listed yet")
	r := newReceiver(func(o *Options) { o.Ready = func() error { return unknown } })
	w := r.push(encodings[0], push("load{namespace=shop,pod=web-0}", at(0, 1)))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	assert.Contains(t, w.Body.String(), "samples cannot be assigned to pods yet: pods have not been listed yet")
	unknown = nil
	assert.Equal(t, http.StatusNoContent, r.push(encodings[0], push("load{namespace=shop,pod=web-0}", at(0, 1))).Code)

	synctest.Test(t, r.busy)
}

func (r *receiver) busy(t *testing.T) {
	all := r.occupy(t, r.options.MaxInFlightBytes)
	w := r.push(encodings[0], push("load{namespace=shop,pod=web-0}", at(0, 1)))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	assert.Contains(t, w.Body.String(), "too much is being received at once")
	all.End()
	assert.Equal(t, http.StatusNoContent, r.push(encodings[0], push("load{namespace=shop,pod=web-0}", at(0, 1))).Code)
}

func TestPrometheusClient(t *testing.T) {
	r := newReceiver()
	sink := sourcetest.NewRecorder()
	r.Set(key("m"), gauge(), newFleet("shop", "web-0"), sink)
	server := httptest.NewServer(r.handler)
	defer server.Close()
	client, err := remote.NewAPI(server.URL,
		remote.WithAPIBackoff(remote.BackoffConfig{Min: time.Millisecond, Max: time.Millisecond, MaxRetries: 1}))
	require.NoError(t, err)

	one := func(metric string, value float64, t int64) *v2.Request {
		symbols := v2.NewSymbolTable()
		refs := symbols.SymbolizeLabels([]string{decode.MetricName, metric, "namespace", "shop", "pod", "web-0"}, nil)
		return &v2.Request{
			Timeseries: []*v2.TimeSeries{{LabelsRefs: refs, Samples: []*v2.Sample{{Value: value, Timestamp: t}}}},
			Symbols:    symbols.Symbols(),
		}
	}
	stats, err := client.Write(t.Context(), remote.WriteV2MessageType, one("load", 1, start))
	require.NoError(t, err)
	assert.Equal(t, 1, stats.Samples)
	stats, err = client.Write(t.Context(), remote.WriteV2MessageType, one("other", 2, start))
	require.NoError(t, err, "what no one wants is no failure")
	assert.Equal(t, 1, stats.Samples)
	_, err = client.Write(t.Context(), remote.WriteV2MessageType, one("load", 3, start+60_000))
	assert.ErrorContains(t, err, "400 Bad Request: rejected, while everything else was taken: from_future")

	_, err = client.Write(t.Context(), remote.WriteV1MessageType, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels: []prompb.Label{{Name: decode.MetricName, Value: "load"}, {Name: "namespace", Value: "shop"},
			{Name: "pod", Value: "web-0"}},
		Samples: []prompb.Sample{{Value: 4, Timestamp: start + 1000}},
	}}})
	require.NoError(t, err)
	assert.Equal(t, []float64{1, 4}, sink.Values("uid-web-0"))
}
