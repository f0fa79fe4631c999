package monitoring

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const rangeQuery = `nodejs_eventloop_utilization{namespace="shop"}[30s]`

// ranges asks for a range vector and returns the samples by pod.
func ranges(ctx context.Context, p *Prometheus, query string) (map[string]*model.SampleStream, error) {
	api, err := p.API()
	if err != nil {
		return nil, err
	}
	value, _, err := api.Query(ctx, query, time.Now())
	if err != nil {
		return nil, err
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, errors.New("no range vector: " + value.Type().String())
	}
	byPod := map[string]*model.SampleStream{}
	for _, stream := range matrix {
		byPod[string(stream.Metric["pod"])] = stream
	}
	if len(byPod) != len(matrix) {
		return nil, errors.New("several series of one pod")
	}
	return byPod, nil
}

// waitRanges waits until each pod of the suite, and no other, has so many samples.
func (s *suite) waitRanges(t *testing.T, p *Prometheus, query string, samples int) map[string]*model.SampleStream {
	t.Helper()
	var (
		streams map[string]*model.SampleStream
		err     error
	)
	require.Eventually(t, func() bool {
		if streams, err = ranges(t.Context(), p, query); err != nil {
			return false
		}
		for _, pod := range s.pods {
			if streams[pod] == nil || len(streams[pod].Values) < samples {
				return false
			}
		}
		return true
	}, time.Minute, pollInterval, "%d samples of each of %v", samples, s.pods)
	require.NoError(t, err)
	require.Len(t, streams, len(s.pods))
	return streams
}

func testServer(t *testing.T, s *suite) {
	p := s.startPrometheus(t, PrometheusOptions{})
	streams := s.waitRanges(t, p, rangeQuery, 10)
	for pod, stream := range streams {
		assert.Equal(t, model.LabelValue("web"), stream.Metric["app"])
		assert.Equal(t, model.LabelValue(namespace), stream.Metric["namespace"])
		assert.Contains(t, []model.LabelValue{"node-1", "node-2"}, stream.Metric["node"])
		last := stream.Values[len(stream.Values)-1]
		assert.InDelta(t, askedCPU, float64(mean(stream.Values)), 0.2, pod)
		spacing := last.Timestamp.Sub(stream.Values[0].Timestamp) / time.Duration(len(stream.Values)-1)
		assert.InDelta(t, time.Second, spacing, float64(500*time.Millisecond), pod)
	}
	t.Run("goes on after a crash", func(t *testing.T) { testCrash(t, s, p) })
	t.Run("answers nothing while paused", func(t *testing.T) { testPause(t, p) })
}

func mean(values []model.SamplePair) model.SampleValue {
	sum := model.SampleValue(0)
	for _, value := range values {
		sum += value.Value
	}
	return sum / model.SampleValue(len(values))
}

// testCrash looks for the samples from before the crash beside those from after it.
func testCrash(t *testing.T, s *suite, p *Prometheus) {
	const query = `nodejs_eventloop_utilization{namespace="shop"}[10m]`
	before := s.waitRanges(t, p, query, 1)
	require.Error(t, p.Restart(), "one runs already")
	require.NoError(t, p.Kill())
	_, err := ranges(t.Context(), p, query)
	require.ErrorContains(t, err, "refused")

	require.NoError(t, p.Restart())
	require.NoError(t, p.WaitReady(within(t, time.Minute)))
	most := 0
	for _, stream := range before {
		most = max(most, len(stream.Values))
	}
	after := s.waitRanges(t, p, query, most+3)
	for pod := range before {
		assert.Equal(t, before[pod].Values[0], after[pod].Values[0], pod)
	}
}

func testPause(t *testing.T, p *Prometheus) {
	require.NoError(t, p.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := ranges(ctx, p, rangeQuery)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, p.Continue())
	_, err = ranges(within(t, time.Minute), p, rangeQuery)
	require.NoError(t, err)

	require.NoError(t, p.Pause())
	require.NoError(t, p.Stop(), "also while it is paused")
	require.Contains(t, p.LogTail(), "See you next time!", "it ended by itself")
}

func testServerAuthentication(t *testing.T, s *suite) {
	p := s.startPrometheus(t, PrometheusOptions{
		Name: "guarded", TLS: true, BasicAuth: &BasicAuth{Username: "reader", Password: "secret"},
	})
	s.waitRanges(t, p, rangeQuery, 1)
	stranger, err := config.NewClientFromConfig(config.HTTPClientConfig{TLSConfig: config.TLSConfig{CA: string(s.cluster.CA())}}, "stranger")
	require.NoError(t, err)
	response, err := stranger.Get(p.URL + "/api/v1/query?query=up")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
}
