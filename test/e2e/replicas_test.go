package e2e

import (
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
	var first, other []answer
	profile := loadgen.Profile{
		{At: 0, RPS: 20}, {At: 30 * time.Second / timeScale, RPS: 20}, {At: 90 * time.Second / timeScale, RPS: 80}, {At: 2 * time.Minute / timeScale, RPS: 80},
	}
	_, err = shared.Play(t.Context(), app, profile, func(m stack.Moment) {
		a, errA := answerOf(clients[0], app)
		b, errB := answerOf(clients[1], app)
		if m.At < 20*time.Second/timeScale || !assert.NoError(t, errA) || !assert.NoError(t, errB) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		first, other = append(first, a), append(other, b)
	})
	require.NoError(t, err)
	require.NotEmpty(t, first)
	sum, worst, matched := 0.0, 0.0, 0
	for i, x := range first {
		sum += math.Abs(x.value-other[i].value) / max(x.value, other[i].value)
		for _, share := range append(x.apart(other), other[i].apart(first)...) {
			worst = max(worst, share)
			matched++
		}
	}
	require.Greater(t, matched, len(first), "answers from about the same samples")
	mean := sum / float64(len(first))
	t.Logf("two replicas differ by %.1f%% on average, and by %.1f%% at most if one may be %s ahead, over %d readings", 100*mean, 100*worst, outOfStep, len(first))
	if !assert.Less(t, mean, 0.05) || !assert.Less(t, worst, 0.1) {
		for i, x := range first {
			t.Logf("%s: %.2f, %s: %.2f", x.at.Format(time.TimeOnly), x.value, other[i].at.Format(time.TimeOnly), other[i].value)
		}
	}
}

// outOfStep is how much earlier one replica may see the same change: both read pods and forecast each second, at
// times of their own.
const outOfStep = 2 * time.Second

// answer is what a replica served, and when its newest sample was taken: on a busy machine one may be seconds behind.
type answer struct {
	at    time.Time
	value float64
}

func answerOf(client externalmetrics.ExternalMetricsClient, a stack.App) (answer, error) {
	list, err := stack.ListMetric(client, a)
	if err != nil {
		return answer{}, err
	}
	if len(list.Items) != 1 {
		return answer{}, fmt.Errorf("%d items: want one", len(list.Items))
	}
	return answer{list.Items[0].Timestamp.Time, list.Items[0].Value.AsApproximateFloat64()}, nil
}

// apart is how far, as a share, an answer is from all that another replica served from about the same samples; nothing
// if it served none.
func (x answer) apart(other []answer) []float64 {
	low, high := math.Inf(1), 0.0
	for _, o := range other {
		if o.at.Sub(x.at).Abs() <= outOfStep {
			low, high = min(low, o.value), max(high, o.value)
		}
	}
	if low > high {
		return nil
	}
	return []float64{max(0, x.value-high, low-x.value) / max(x.value, low)}
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
