//go:build !race

package remotewrite

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"testing"

	"github.com/golang/snappy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

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
	known := everySeries(encodings[v1], "load", hostile)
	const large = 4 << 20
	oneSeries := func(inner []byte) []byte { return bomb(v1Series, inner, len(inner)+8) }
	for _, c := range []struct {
		name    string
		version int
		body    func() []byte
		code    int
		says    string
	}{
		{"series that nobody wants, v1", v1, func() []byte { return everySeries(encodings[v1], "other", hostile) }, 204, ""},
		{"series that nobody wants, v2", v2, func() []byte { return everySeries(encodings[v2], "other", hostile) }, 204, ""},
		{"series of pods that nobody knows, v1", v1, func() []byte { return known }, 204, ""},
		{"series of pods that nobody knows, v2", v2, func() []byte { return everySeries(encodings[v2], "load", hostile) }, 204, ""},
		{"one series more, v1", v1, func() []byte { return everySeries(encodings[v1], "load", hostile+1) }, 413, "more than 100000 series in one request"},
		{"one series more, v2", v2, func() []byte { return everySeries(encodings[v2], "load", hostile+1) }, 413, "more than 100000 series in one request"},
		{"random bytes", v1, func() []byte { return random }, 400, "snappy"},
		{"random bytes, compressed", v1, func() []byte { return snappy.Encode(nil, random) }, 400, "not the message"},
		{"cut short", v1, func() []byte { return known[:len(known)/2] }, 400, "snappy"},
		{"announcing 32 MiB", v1, func() []byte { return binary.AppendUvarint(nil, 32<<20) }, 400, "cannot hold"},
		{"announcing 4 GiB", v1, func() []byte { return binary.AppendUvarint(nil, 1<<32-1) }, 413, "larger than 33554432 bytes once decompressed"},
		{"zeros", v1, func() []byte { return snappy.Encode(nil, make([]byte, large)) }, 400, "not the message"},
		{"empty series, v1", v1, func() []byte { return snappy.Encode(nil, bomb(v1Series, nil, large)) }, 413, "more than 100000 series"},
		{"empty series, v2", v2, func() []byte { return snappy.Encode(nil, bomb(v2Series, nil, large)) }, 413, "more than 100000 series"},
		{"empty symbols", v2, func() []byte { return snappy.Encode(nil, bomb(v2Symbols, nil, large)) }, 413, "more than 800000 symbols"},
		{"empty metadata", v1, func() []byte { return snappy.Encode(nil, bomb(v1Metadata, nil, large)) }, 204, ""},
		{"empty labels", v1, func() []byte { return snappy.Encode(nil, oneSeries(bomb(v1Labels, nil, large))) }, 400, "no metric name"},
		{"labels of a metric that is desired", v1, func() []byte {
			return snappy.Encode(nil, oneSeries(append([]byte("\x0a\x10\x0a\x08"+metricName+"\x12\x04load"), bomb(v1Labels, nil, large)...)))
		}, 400, "more than 64 labels"},
		{"empty samples", v1, func() []byte { return snappy.Encode(nil, oneSeries(bomb(v1Samples, nil, large))) }, 413, "more than 200000 samples"},
		{"empty histograms", v1, func() []byte {
			return snappy.Encode(nil, oneSeries(append([]byte("\x0a\x10\x0a\x08"+metricName+"\x12\x04load"), bomb(v1Histograms, nil, large)...)))
		}, 204, ""},
		{"long symbols in many series", v2, func() []byte { return snappy.Encode(nil, v2Bomb(hostile)) }, 413, "the labels take more than 33554432 bytes once their symbols are resolved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReceiver()
			require.NoError(t, r.Set(key("m"), gauge(), newFleet("shop", "web-0"), sourcetest.NewRecorder()))
			body := c.body()
			send := func() {
				w := do(r.handler, post(encodings[c.version].contentType, body))
				require.Equal(t, c.code, w.Code, w.Body)
				require.Contains(t, w.Body.String(), c.says)
			}
			send()
			before := sourcetest.HeapInUse()
			peak := sourcetest.PeakOf(func() {
				for range 2 {
					send()
				}
			})
			left := sourcetest.HeapInUse() - before
			runtime.KeepAlive(body)
			t.Logf("heap: %d KiB before, %+d KiB after, %+d MiB at most in between", before>>10, left/1024, (peak-before)>>20)
			assert.Less(t, left, int64(256<<10), "nothing is left behind")
			// In between, a request takes its body as sent and decompressed, and its labels where they are desired, with
			// the garbage of having made room for them step by step.
			assert.Less(t, peak-before, int64(160<<20))
			assert.Empty(t, r.subscriptions[key("m")].tracks)
			assert.Zero(t, sourcetest.Gathered(t, r.registry, "foresail_remote_write_in_flight_bytes", ""))
		})
	}
}

func TestBodiesInMemoryAreLimited(t *testing.T) {
	r := newReceiver(func(o *Options) { o.MaxInFlightBytes = 1; o.MaxBodyBytes = 8 << 20 })
	assert.Equal(t, int64(40<<20), r.options.MaxInFlightBytes, "one request of the greatest size always fits")
	body := everySeries(encodings[0], "load", 10)
	require.NoError(t, r.acquire(r.options.MaxInFlightBytes-int64(len(body))))
	assert.Equal(t, http.StatusServiceUnavailable, do(r.handler, post("", body)).Code, "as sent it fits, decompressed it does not")
	assert.Zero(t, r.count(t, "unselected"))
}
