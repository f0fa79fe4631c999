package scale

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// receiver counts the samples of each pod. It refuses the first request, as a receiver does that is too busy.
type receiver struct {
	t       *testing.T
	mu      sync.Mutex
	asked   int
	samples map[string]int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.asked == 1 {
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	compressed, err := io.ReadAll(request.Body)
	assert.NoError(r.t, err)
	body, err := snappy.Decode(nil, compressed)
	assert.NoError(r.t, err)
	if strings.Contains(request.Header.Get("Content-Type"), "v2") {
		r.takeV2(body)
	} else {
		r.takeV1(body)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) takeV1(body []byte) {
	var message prompb.WriteRequest
	assert.NoError(r.t, message.Unmarshal(body))
	for _, series := range message.Timeseries {
		for _, l := range series.Labels {
			if l.Name == "pod" {
				r.samples[l.Value] += len(series.Samples)
			}
		}
		assert.InDelta(r.t, 0.5, series.Samples[0].Value, 0.3)
		assert.InDelta(r.t, time.Now().UnixMilli(), series.Samples[0].Timestamp, 60_000)
	}
}

func (r *receiver) takeV2(body []byte) {
	var message writev2.Request
	assert.NoError(r.t, message.Unmarshal(body))
	for _, series := range message.Timeseries {
		for i := 0; i < len(series.LabelsRefs); i += 2 {
			if message.Symbols[series.LabelsRefs[i]] == "pod" {
				r.samples[message.Symbols[series.LabelsRefs[i+1]]] += len(series.Samples)
			}
		}
	}
}

func TestPusherSendsASampleOfEachPod(t *testing.T) {
	p := population{apps: 130, podsPerApp: 20, namespaces: 3, network: netip.MustParsePrefix("10.0.0.0/16")}
	for _, version := range []protocol{remoteWriteV1(), remoteWriteV2()} {
		t.Run(version.name, func(t *testing.T) {
			r := &receiver{t: t, samples: map[string]int{}}
			server := httptest.NewServer(r)
			defer server.Close()
			w := newPusher(p, version, strings.TrimPrefix(server.URL, "http://"))
			require.Equal(t, 2, len(w.shards))
			var buffers [2][]byte
			for _, pushes := range w.shards {
				for _, push := range pushes {
					require.NoError(t, w.send(push, time.Now(), &buffers))
				}
			}
			assert.EqualValues(t, p.pods(), w.sent.Load())
			assert.EqualValues(t, p.pods(), w.acknowledged.Load())
			assert.EqualValues(t, 1, w.retried.Load())
			assert.Len(t, r.samples, p.pods())
			for pod, n := range r.samples {
				require.Equal(t, 1, n, pod)
			}
		})
	}
}

func TestPusherEndsAtARefusal(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	p := population{apps: 1, podsPerApp: 1, namespaces: 1, network: netip.MustParsePrefix("10.0.0.0/16")}
	w := newPusher(p, remoteWriteV1(), strings.TrimPrefix(server.URL, "http://"))
	require.ErrorContains(t, w.run(t.Context()), "404")
}
