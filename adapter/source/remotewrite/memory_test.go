//go:build !race

package remotewrite

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/golang/snappy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
	"github.com/foresail/foresail/adapter/source/sourcetest"
)

const hostile = 100_000 // series in a request

// everySeries makes one request of version 1 or 2 with that many series, each of another pod.
func everySeries(e encoding, metric string, n int) []byte {
	all := make([]pushed, n)
	for i := range all {
		all[i] = push(fmt.Sprintf("%s{namespace=shop,pod=ghost-%d}", metric, i), at(0, 1))
	}
	return snappy.Encode(nil, e.encode(all...))
}

// bomb makes a body of many fields that take little on the wire and much once they are decoded.
func bomb(number protowire.Number, inner []byte, size int) []byte {
	one := protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), inner)
	var b []byte
	for len(b)+len(one) <= size {
		b = append(b, one...)
	}
	return b
}

func TestMemoryStaysFlat(t *testing.T) {
	const v1, v2 = 0, 1
	random := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	known := [][]byte{everySeries(encodings[v1], "load", hostile), everySeries(encodings[v2], "load", hostile)}
	const large = 4 << 20
	oneSeries := func(inner []byte) []byte { return bomb(v1Series, inner, len(inner)+8) }
	for _, c := range []struct {
		name    string
		version int
		body    func() []byte
		code    int
		says    string
	}{
		{"series that no one wants, v1", v1, func() []byte { return everySeries(encodings[v1], "other", hostile) }, 204,
			""},
		{"series that no one wants, v2", v2, func() []byte { return everySeries(encodings[v2], "other", hostile) }, 204,
			""},
		{"series of pods that no one knows, v1", v1, func() []byte { return known[v1] }, 204, ""},
		{"series of pods that no one knows, v2", v2, func() []byte { return known[v2] }, 204, ""},
		{"one series more, v1", v1, func() []byte { return everySeries(encodings[v1], "load", hostile+1) }, 413,
			"more than 100000 series in one request"},
		{"one series more, v2", v2, func() []byte { return everySeries(encodings[v2], "load", hostile+1) }, 413,
			"more than 100000 series in one request"},
		{"random bytes", v1, func() []byte { return random }, 400, "snappy"},
		{"random bytes, compressed", v1, func() []byte { return snappy.Encode(nil, random) }, 400, "not the message"},
		{"cut short", v1, func() []byte { return known[v1][:len(known[v1])/2] }, 400, "snappy"},
		{"announcing 32 MiB", v1, func() []byte { return binary.AppendUvarint(nil, 32<<20) }, 400, "cannot hold"},
		{"announcing 4 GiB", v1, func() []byte { return binary.AppendUvarint(nil, 1<<32-1) }, 413,
			"larger than 33554432 bytes once decompressed"},
		{"zeros", v1, func() []byte { return snappy.Encode(nil, make([]byte, large)) }, 400, "not the message"},
		{"empty series, v1", v1, func() []byte { return snappy.Encode(nil, bomb(v1Series, nil, large)) },
			413, "more than 100000 series"},
		{"empty series, v2", v2, func() []byte { return snappy.Encode(nil, bomb(v2Series, nil, large)) },
			413, "more than 100000 series"},
		{"empty symbols", v2, func() []byte { return snappy.Encode(nil, bomb(v2Symbols, nil, large)) },
			413, "more than 800000 symbols"},
		{"empty metadata", v1, func() []byte { return snappy.Encode(nil, bomb(v1Metadata, nil, large)) }, 204, ""},
		{"empty labels", v1, func() []byte { return snappy.Encode(nil, oneSeries(bomb(v1Labels, nil, large))) }, 400,
			"no metric name"},
		{"labels of a metric that is desired", v1, func() []byte {
			return snappy.Encode(nil,
				oneSeries(append([]byte("\x0a\x10\x0a\x08"+decode.MetricName+"\x12\x04load"),
					bomb(v1Labels, nil, large)...)))
		}, 400, "more than 64 labels"},
		{"empty samples", v1, func() []byte { return snappy.Encode(nil, oneSeries(bomb(v1Samples, nil, large))) },
			413, "more than 200000 samples"},
		{"empty histograms", v1, func() []byte {
			return snappy.Encode(nil,
				oneSeries(append([]byte("\x0a\x10\x0a\x08"+decode.MetricName+"\x12\x04load"),
					bomb(v1Histograms, nil, large)...)))
		}, 204, ""},
		{"long symbols in many series", v2, func() []byte { return snappy.Encode(nil, v2Bomb(hostile)) }, 413,
			"the labels take more than 33554432 bytes once they are written out for each series"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReceiver()
			r.Set(key("m"), gauge(), newFleet("shop", "web-0"), sourcetest.NewRecorder())
			body := c.body()
			send := func() {
				w := do(r.handler, post(encodings[c.version].contentType, body))
				require.Equal(t, c.code, w.Code, w.Body)
				require.Contains(t, w.Body.String(), c.says)
			}
			flat(t, send)
			runtime.KeepAlive(body)
			assert.Empty(t, r.subscriptions[key("m")].tracks)
			assert.Zero(t, sourcetest.Gathered(t, r.registry, "foresail_remote_write_in_flight_bytes", ""))
		})
	}
}

// Messages of OTLP in which little on the wire would be much once it is decoded.
func TestMemoryStaysFlatWithOTLP(t *testing.T) {
	const large = 4 << 20
	field := func(number protowire.Number, message []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), message)
	}
	metric := func(kind protowire.Number, data []byte) []byte {
		return field(otlpResourceMetrics,
			field(otlpScopeMetrics, field(otlpMetrics, append(field(otlpName, []byte("load")), field(kind, data)...))))
	}
	points := func(of exported, n int) []byte {
		all := of.scope.Metrics().At(0).Gauge().DataPoints()
		for i := range n {
			p := all.AppendEmpty()
			p.SetTimestamp(pcommon.Timestamp(start * 1e6))
			p.SetIntValue(1)
			p.Attributes().PutStr("n", fmt.Sprint(i))
		}
		return otlpForms[0].body(of)
	}
	long := exported{metrics: pmetric.NewMetrics()}.and("k8s.namespace.name", "shop", "k8s.pod.name", "ghost",
		"a", strings.Repeat("x", 2000))
	for _, c := range []struct {
		name string
		body []byte
		code int
		says string
	}{
		{"series that no one wants", points(export("web-0").gauge("other"), hostile), 200, ""},
		{"series of a pod that no one knows", points(export("ghost").gauge("load"), hostile), 200, ""},
		{"one series more", points(export("web-0").gauge("load"), hostile+1), 413,
			"more than 100000 series in one request"},
		{"a long label of many series", points(long.gauge("load"), hostile), 413,
			"the labels take more than 33554432 bytes once they are written out for each series"},
		{"empty resources", bomb(otlpResourceMetrics, nil, large), 200, ""},
		{"empty scopes", field(otlpResourceMetrics, bomb(otlpScopeMetrics, nil, large)), 200, ""},
		{"empty metrics", field(otlpResourceMetrics, field(otlpScopeMetrics, bomb(otlpMetrics, nil, large))),
			413, "more than 100000 series"},
		{"empty data points", metric(otlpGauge, bomb(otlpPoints, nil, large)), 413, "more than 100000 series"},
		{"empty histograms", metric(otlpHistogram, bomb(otlpPoints, nil, large)), 413, "more than 100000 series"},
		{"buckets", metric(otlpHistogram, field(otlpPoints, field(6, make([]byte, large)))), 200, "unsupported_type"},
		{"empty attributes", metric(otlpGauge, field(otlpPoints, bomb(otlpAttributes, nil, large))), 200,
			"more than 64 labels"},
		{"empty exemplars", metric(otlpGauge, field(otlpPoints, bomb(otlpExemplars, nil, large))),
			200, "a data point has no time"},
		{"deep attributes", unexpected(20_000), 200, "a data point of"},
		{"deep attributes that are decoded", unexpected(5_000), 200, "has a value of"},
		{"attributes of the resource",
			field(otlpResourceMetrics, append(field(otlpResource, bomb(otlpResourceAttributes, nil, large)),
				field(otlpScopeMetrics, field(otlpMetrics,
					append(field(otlpName, []byte("load")), field(otlpGauge, field(otlpPoints, nil))...)))...)),
			200, "a data point has no time"},
		{"a long name", field(otlpResourceMetrics,
			field(otlpScopeMetrics, field(otlpMetrics,
				append(field(otlpName, bytes.Repeat([]byte("a."), large/2)),
					field(otlpGauge, field(otlpPoints, nil))...)))), 200,
			"a metric has a name and a unit of 4194304 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReceiver()
			r.Set(key("m"), gauge(), newFleet("shop", "web-0"), sourcetest.NewRecorder())
			body := zipped(c.body)
			send := func() {
				request := otlpForms[0].post(body)
				request.Header.Set("Content-Encoding", "gzip")
				w := do(r.handler, request)
				require.Equal(t, c.code, w.Code, w.Body)
				require.Contains(t, w.Body.String(), c.says)
			}
			flat(t, send)
			assert.Empty(t, r.subscriptions[key("m")].tracks)
			assert.Zero(t, sourcetest.Gathered(t, r.registry, "foresail_remote_write_in_flight_bytes", ""))
			runtime.KeepAlive(body)
		})
	}
}

// flat requires that requests leave nothing behind, and take no more than their bodies as sent and
// decompressed, and their labels where they are desired, with the garbage of having made room for
// them step by step.
func flat(t *testing.T, send func()) {
	t.Helper()
	send()
	before := sourcetest.HeapInUse()
	peak := sourcetest.PeakOf(send)
	left := sourcetest.HeapInUse() - before
	t.Logf("heap: %d KiB before, %+d KiB after, %+d MiB at most in between", before>>10, left/1024, (peak-before)>>20)
	assert.Less(t, left, int64(256<<10), "nothing is left behind")
	assert.Less(t, peak-before, int64(160<<20))
}

func TestBodiesInMemoryAreLimited(t *testing.T) {
	r := newReceiver(func(o *Options) { o.MaxInFlightBytes = 1; o.MaxBodyBytes = 8 << 20 })
	assert.Equal(t, int64(40<<20), r.options.MaxInFlightBytes, "one request of the greatest size always fits")
	body := everySeries(encodings[0], "load", 10)
	synctest.Test(t, func(t *testing.T) {
		others := r.occupy(t, r.options.MaxInFlightBytes-minRoom)
		assert.Equal(t, http.StatusServiceUnavailable, do(r.handler, post("", body)).Code,
			"as sent it fits, decompressed it does not")
		others.End()
	})
	assert.Zero(t, r.count(t, "unselected"))
}
