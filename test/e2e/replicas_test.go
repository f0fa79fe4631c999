package e2e

import (
	"math"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/test/loadgen"
	"github.com/foresail/foresail/test/stack"
)

// TestTwoReplicasAnswerAlike asks two adapters, each with its own readings, for the same metric through a ramp.
func TestTwoReplicasAnswerAlike(t *testing.T) {
	t.Parallel()
	second, err := startAdapter(suite, "second", "--namespaces=alike")
	require.NoError(t, err)
	defer func() { assert.NoError(t, second.Stop()) }()
	app := newApp("alike", "ramp", "predicted_load_total")
	app.Replicas = 3
	deploy(t, app)
	clients := []externalmetrics.ExternalMetricsClient{direct(t, adapter), direct(t, second)}

	var mu sync.Mutex
	var differences []float64
	profile := loadgen.Profile{
		{At: 0, RPS: 20}, {At: 30 * time.Second / timeScale, RPS: 20}, {At: 90 * time.Second / timeScale, RPS: 80}, {At: 2 * time.Minute / timeScale, RPS: 80},
	}
	_, err = shared.Play(t.Context(), app, profile, func(m stack.Moment) {
		a, errA := stack.ReadMetric(clients[0], app)
		b, errB := stack.ReadMetric(clients[1], app)
		if m.At < 20*time.Second/timeScale || !assert.NoError(t, errA) || !assert.NoError(t, errB) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		differences = append(differences, math.Abs(a-b)/max(a, b))
	})
	require.NoError(t, err)
	require.NotEmpty(t, differences)
	sum := 0.0
	for _, d := range differences {
		sum += d
	}
	_, worst := bounds(differences)
	t.Logf("two replicas differ by %.1f%% on average, %.1f%% at most, over %d readings", 100*sum/float64(len(differences)), 100*worst, len(differences))
	assert.Less(t, sum/float64(len(differences)), 0.05)
	assert.Less(t, worst, 0.2)
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
