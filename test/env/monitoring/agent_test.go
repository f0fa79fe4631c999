package monitoring

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
)

// receiver counts the samples of one metric that it is sent, by pod.
type receiver struct {
	auth BasicAuth

	mu       sync.Mutex
	failures []error
	samples  map[string]int
	newest   map[string]int64
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.receive(request); err != nil {
		r.failures = append(r.failures, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) receive(request *http.Request) error {
	if username, password, ok := request.BasicAuth(); !ok || username != r.auth.Username ||
		password != r.auth.Password {
		return fmt.Errorf("a sender that calls itself %q", username)
	}
	compressed, err := io.ReadAll(request.Body)
	if err != nil {
		return err
	}
	body, err := snappy.Decode(nil, compressed)
	if err != nil {
		return err
	}
	if strings.Contains(request.Header.Get("Content-Type"), "io.prometheus.write.v2.Request") {
		return r.receiveV2(body)
	}
	return r.receiveV1(body)
}

func (r *receiver) receiveV1(body []byte) error {
	var message prompb.WriteRequest
	if err := message.Unmarshal(body); err != nil {
		return err
	}
	for _, series := range message.Timeseries {
		labels := map[string]string{}
		for _, label := range series.Labels {
			labels[label.Name] = label.Value
		}
		for _, sample := range series.Samples {
			r.count("v1", labels, sample.Timestamp)
		}
	}
	return nil
}

func (r *receiver) receiveV2(body []byte) error {
	var message writev2.Request
	if err := message.Unmarshal(body); err != nil {
		return err
	}
	for _, series := range message.Timeseries {
		labels := map[string]string{}
		for i := 0; i+1 < len(series.LabelsRefs); i += 2 {
			labels[message.Symbols[series.LabelsRefs[i]]] = message.Symbols[series.LabelsRefs[i+1]]
		}
		for _, sample := range series.Samples {
			r.count("v2", labels, sample.Timestamp)
		}
	}
	return nil
}

func (r *receiver) count(version string, labels map[string]string, timestamp int64) {
	if labels["__name__"] == "nodejs_eventloop_utilization" && labels["namespace"] == namespace {
		key := version + " " + labels["pod"]
		r.samples[key]++
		r.newest[key] = max(r.newest[key], timestamp)
	}
}

// has reports whether so many samples of each pod, and of no other, have come in, all of them newer
// than a time in ms.
func (r *receiver) has(version string, pods []string, samples int, after int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, pod := range pods {
		if key := version + " " + pod; r.samples[key] < samples || r.newest[key] <= after {
			return false
		}
	}
	return len(r.samples) == len(pods)
}

func testAgent(t *testing.T, s *suite, version int) {
	r := &receiver{auth: BasicAuth{Username: "agent", Password: "secret"}, samples: map[string]int{},
		newest: map[string]int64{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	name := fmt.Sprintf("v%d", version)
	p := s.startPrometheus(t, PrometheusOptions{
		Name: "agent-" + name, Agent: true,
		RemoteWrite: []RemoteWrite{{URL: server.URL, Version: version, BatchSendDeadline: time.Second,
			BasicAuth: &r.auth}},
	})
	require.Eventually(t, func() bool { return r.has(name, s.pods, 5, 0) }, time.Minute, pollInterval)

	require.NoError(t, p.Kill())
	crash := time.Now().UnixMilli()
	require.NoError(t, p.Restart())
	require.Eventually(t, func() bool { return r.has(name, s.pods, 8, crash) }, time.Minute, pollInterval,
		"goes on after a crash")
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Empty(t, r.failures)
}
