package e2e

import (
	"context"
	"fmt"
	"math"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
)

// TestTwoReplicasAnswerAlike asks two adapters, each with its own readings, for the same metric
// through a ramp.
func TestTwoReplicasAnswerAlike(t *testing.T) {
	t.Parallel()
	second, err := startAdapter(suite, "second", "--namespaces=alike")
	require.NoError(t, err)
	defer func() { assert.NoError(t, second.Stop()) }()
	app := newApp("alike", "ramp", "predicted_load_total")
	app.Replicas = 3
	deploy(t, app)
	adapters := []*stack.Adapter{adapter, second}
	clients := []externalmetrics.ExternalMetricsClient{direct(t, adapter), direct(t, second)}

	var mu sync.Mutex
	var first, other []answer
	profile := loadgen.Profile{
		{At: 0, RPS: 20}, {At: 30 * time.Second / timeScale, RPS: 20}, {At: 90 * time.Second / timeScale,
			RPS: 80}, {At: 2 * time.Minute / timeScale, RPS: 80},
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), profile.Duration())
	defer cancel()
	// Requests that a busy machine delays would come between the readings of the two, which are a
	// part of a second apart.
	err = shared.Carry(ctx, app, profile, func(m stack.Moment) {
		a, errA := answerOf(t, adapters[0], clients[0], app)
		b, errB := answerOf(t, adapters[1], clients[1], app)
		if m.At < 20*time.Second/timeScale || !assert.NoError(t, errA) || !assert.NoError(t, errB) {
			return
		}
		if time.Since(begun) > profile.Duration() {
			return // one of them may have been read after the end of the load
		}
		mu.Lock()
		defer mu.Unlock()
		first, other = append(first, a), append(other, b)
	})
	require.NoError(t, err)
	require.NotEmpty(t, first)
	sum, worst, matched := 0.0, 0.0, 0
	for i, x := range first {
		sum += math.Abs(x.served-other[i].served) / max(x.served, other[i].served)
		for _, load := range append(x.apart(other), other[i].apart(first)...) {
			worst = max(worst, load/app.Threshold.AsApproximateFloat64())
			matched++
		}
	}
	require.Greater(t, matched, len(first), "forecasts from about the same samples")
	mean := sum / float64(len(first))
	t.Logf("what two replicas serve differs by %.1f%% on average, and what they forecast by %.2f pods at most if one may be %s ahead, over %d readings",
		100*mean, worst, outOfStep, len(first))
	if !assert.Less(t, mean, 0.05) || !assert.Less(t, worst, 1.0, "pods") {
		for i, x := range first {
			t.Logf("%s, %s", x, other[i])
		}
	}
}

// outOfStep is how much earlier one replica may see the same change: both read pods and forecast
// each second, at times of their own.
const outOfStep = 2 * time.Second

// answer is what a replica forecast and served at a moment. While the present replicas are good
// enough, what they can carry is served in place of the forecast: where that ends, a small
// difference of forecasts is a step of what is served.
type answer struct {
	sampled          time.Time // the newest sample: on a busy machine a replica may be seconds behind
	forecast, served float64   // of all pods together
}

func (x answer) String() string {
	return fmt.Sprintf("%s: %.2f, served %.2f", x.sampled.Format(time.TimeOnly), x.forecast, x.served)
}

func answerOf(t *testing.T, adapter *stack.Adapter, client externalmetrics.ExternalMetricsClient, a stack.App) (answer,
	error) {
	served, err := stack.ReadMetric(client, a)
	if err != nil {
		return answer{}, err
	}
	families, err := adapter.Metrics(t.Context())
	if err != nil {
		return answer{}, err
	}
	read := time.Now()
	x := answer{served: served, forecast: 1}
	for _, factor := range []string{"foresail_predicted_load_per_instance", "foresail_target_replicas"} {
		value, ok := families.Gauge(factor, "namespace", a.Namespace, "predictedmetric", a.Name)
		if !ok {
			return answer{}, fmt.Errorf("no %s", factor)
		}
		x.forecast *= value
	}
	age, _ := families.Gauge("foresail_sample_age_seconds", "namespace", a.Namespace, "predictedmetric", a.Name)
	x.sampled = read.Add(-time.Duration(age * float64(time.Second)))
	return x, nil
}

// apart is how far a forecast is from all that another replica made from about the same samples;
// nothing if it made none.
func (x answer) apart(other []answer) []float64 {
	low, high := math.Inf(1), 0.0
	for _, o := range other {
		if o.sampled.Sub(x.sampled).Abs() <= outOfStep {
			low, high = min(low, o.forecast), max(high, o.forecast)
		}
	}
	if low > high {
		return nil
	}
	return []float64{max(0, x.forecast-high, low-x.forecast)}
}

// direct returns a client of one adapter, without the API server between them.
func direct(t *testing.T, a *stack.Adapter) externalmetrics.ExternalMetricsClient {
	t.Helper()
	const user = "reader-of-both"
	grantExternalMetrics(t, user)
	config, err := shared.Cluster.RESTConfigFor(user)
	require.NoError(t, err)
	config.Host = "https://" + net.JoinHostPort("localhost", strconv.Itoa(a.SecurePort))
	client, err := externalmetrics.NewForConfig(config)
	require.NoError(t, err)
	return client
}
