package remotewrite

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/golang/snappy"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
	"github.com/foresail/foresail/pipeline"
)

// strict is a sink that checks the samples that it takes.
type strict struct{ t *testing.T }

func (s strict) Append(instance string, samples ...pipeline.Sample) {
	require.Equal(s.t, "uid-web-0", instance)
	require.NotEmpty(s.t, samples)
	for _, x := range samples {
		require.LessOrEqual(s.t, x.T, start+10_000)
		require.Zero(s.t, x.V-x.V, "neither NaN nor infinite")
	}
}

func (s strict) Fail(instance string, err error) {
	require.Equal(s.t, "uid-web-0", instance)
	require.Error(s.t, err)
}

func (strict) SourceFailed(error) {}

// FuzzHandler has bodies answered, twice, compressed here or as they come.
func FuzzHandler(f *testing.F) {
	for i, e := range encodings {
		f.Add(i == 1, true, e.encode(push(seriesA, at(0, 1), at(1, 2)), push(seriesB, at(0, 1)),
			push("other", at(0, 3))))
		f.Add(i == 1, false, snappy.Encode(nil, e.encode(push("load{namespace=shop,pod=web-0}", at(0, 1)))))
	}
	f.Add(true, true, v2Bomb(2))
	f.Fuzz(func(t *testing.T, second, compress bool, body []byte) {
		r := newReceiver(func(o *Options) {
			o.MaxSeries, o.MaxSamples, o.MaxLabels, o.MaxDecodedBytes = 20, 50, 8,
				1<<16
		})
		r.Set(key("gauge"), gauge(), newFleet("shop", "web-0"), strict{t})
		r.Set(key("counter"), counter(), newFleet("shop", "web-0"), strict{t})
		e := encodings[0]
		if second {
			e = encodings[1]
		}
		if compress {
			body = snappy.Encode(nil, body)
		}
		for range 2 {
			w := do(r.handler, post(e.contentType, body))
			require.Contains(t, []int{http.StatusNoContent, http.StatusBadRequest, http.StatusRequestEntityTooLarge},
				w.Code)
			require.Zero(t, r.ingester.bodies.budget.InUse(), "all is given back")
		}
	})
}

// FuzzOTLP has bodies of OTLP answered, twice, in protobuf or JSON, compressed or not.
func FuzzOTLP(f *testing.F) {
	for i, form := range otlpForms {
		f.Add(i == 1, false, form.body(export("web-0").gauge("load", at(0, 1), at(1, 2)).with("a", "b").counter("load",
			cumulative, since(-1, at(1, 2)))))
		f.Add(i == 1, true, zipped(form.body(export("web-0").gauge("other", at(0, 1)).counter("load", delta,
			at(0, 1)))))
		f.Add(i == 1, false, form.body(strange()))
	}
	f.Add(false, false, unexpected(3))
	f.Add(true, false, []byte("\xae")) // which the answer quotes
	f.Fuzz(func(t *testing.T, json, compressed bool, body []byte) {
		r := newReceiver(func(o *Options) {
			o.MaxSeries, o.MaxSamples, o.MaxLabels, o.MaxDecodedBytes = 20, 50, 8,
				1<<16
		})
		r.Set(key("gauge"), gauge(), newFleet("shop", "web-0"), strict{t})
		r.Set(key("counter"), Config{Metric: "load_total", Type: source.Counter, PodLabel: "pod"},
			newFleet("shop", "web-0"), strict{t})
		form := otlpForms[0]
		if json {
			form = otlpForms[1]
		}
		for range 2 {
			request := form.post(body)
			if compressed {
				request.Header.Set("Content-Encoding", "gzip")
			}
			w := do(r.handler, request)
			require.Contains(t, []int{http.StatusOK, http.StatusBadRequest, http.StatusRequestEntityTooLarge}, w.Code)
			if w.Code == http.StatusOK {
				form.partial(t, w)
			} else {
				form.failure(t, w)
			}
			require.Zero(t, r.ingester.bodies.budget.InUse(), "all is given back")
		}
	})
}

// strange is a request with attributes of all types, exemplars, and metrics that are not read.
func strange() exported {
	e := export("web-0").gauge("load", at(0, 1))
	all := e.scope.Metrics()
	p := all.At(0).Gauge().DataPoints().At(0)
	p.Exemplars().AppendEmpty().SetIntValue(1)
	p.Attributes().PutBool("bool", true)
	p.Attributes().PutDouble("double", 0.5)
	p.Attributes().PutEmptyBytes("bytes").Append(1, 2)
	p.Attributes().PutEmptyMap("map").PutEmptySlice("slice").AppendEmpty().SetInt(1)
	all.AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty().BucketCounts().Append(1, 2)
	all.AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Positive().BucketCounts().Append(1)
	all.AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty().QuantileValues().AppendEmpty().SetValue(1)
	return e
}

// unexpected has a value within so many lists in an attribute of a data point, which comes before the resource.
func unexpected(depth int) []byte {
	field := func(number protowire.Number, message []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), message)
	}
	var nested []byte
	for range depth {
		nested = field(5, field(1, nested)) // a list in a value
	}
	point := append(field(otlpAttributes, append(field(1, []byte("a")), field(2, nested)...)), 0x19, 0, 0, 0, 0, 0, 0,
		0,
		0x10, 0x31, 1, 0, 0, 0, 0, 0, 0, 0)
	metric := append(field(otlpGauge, field(otlpPoints, point)), field(otlpName, []byte("load"))...)
	resource := append(field(otlpScopeMetrics, field(otlpMetrics, metric)), field(otlpResource, nil)...)
	return field(otlpResourceMetrics, resource)
}

// v2Bomb makes many series out of few long symbols.
func v2Bomb(series int) []byte {
	symbols := [][]byte{nil, []byte(decode.MetricName), []byte("load"), []byte("pod"), []byte("web-0")}
	for i := range 50 {
		symbols = append(symbols, fmt.Appendf(nil, "label_%02d", i))
	}
	long := make([]byte, 2000)
	for i := range long {
		long[i] = 'x'
	}
	symbols = append(symbols, long)
	var b, refs []byte
	for _, s := range symbols {
		b = protowire.AppendBytes(protowire.AppendTag(b, v2Symbols, protowire.BytesType), s)
	}
	refs = append(refs, 1, 2, 3, 4)
	for i := range 50 {
		refs = append(refs, byte(5+i), byte(len(symbols)-1))
	}
	inner := protowire.AppendBytes(protowire.AppendTag(nil, v2Labels, protowire.BytesType), refs)
	inner = append(inner, 0x12, 0)
	for range series {
		b = protowire.AppendBytes(protowire.AppendTag(b, v2Series, protowire.BytesType), inner)
	}
	return b
}
