package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
)

const (
	// Of a load that is known, what may be served: a trend carries every unevenness on over the
	// horizon, and one of the first samples carries more. Pods that are counted twice, or half of
	// them not at all, are further off.
	leastOfLoad, mostOfLoad = 0.6, 1.6
	// steadyGrow is how long the load takes to grow, slowly enough not to need more pods for it.
	steadyGrow = 30 * time.Second
)

// steady is an application under a constant load that is looked at each second until its test ends.
// Its pods carry exactly that.
type steady struct {
	app  stack.App
	load float64 // of all pods together, once it has grown

	mu     sync.Mutex
	client externalmetrics.ExternalMetricsClient // asked instead of the API server; nil: none
	seen   []sighting
}

// sighting is a moment and when it was.
type sighting struct {
	stack.Moment
	when time.Time
}

func beginSteady(t *testing.T, a stack.App, rps float64) *steady {
	t.Helper()
	s := &steady{app: a, load: rps * a.ServiceTime.Seconds()}
	ctx, cancel := context.WithCancel(t.Context())
	var playing sync.WaitGroup
	playing.Go(func() {
		profile := loadgen.Profile{{At: 0, RPS: rps / 10}, {At: steadyGrow, RPS: rps}, {At: time.Hour, RPS: rps}}
		if err := shared.Carry(ctx, a, profile, s.note); ctx.Err() == nil {
			assert.NoError(t, err)
		}
	})
	t.Cleanup(func() {
		cancel()
		playing.Wait()
	})
	return s
}

// ask has values read through a client, rather than through the API server.
func (s *steady) ask(client externalmetrics.ExternalMetricsClient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = client
}

func (s *steady) note(m stack.Moment) {
	s.mu.Lock()
	client := s.client
	s.mu.Unlock()
	if client != nil {
		m.Served, m.Err = stack.ReadMetric(client, s.app)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, sighting{m, time.Now()})
}

// since returns what was seen from a time on.
func (s *steady) since(from time.Time) []sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, x := range s.seen {
		if !x.when.Before(from) {
			return s.seen[i:len(s.seen):len(s.seen)]
		}
	}
	return nil
}

// settle waits until the load has grown, and the served values have been near it for ten looks in a
// row. While it grows, more is forecast, and rightly.
func (s *steady) settle(t *testing.T) {
	t.Helper()
	eventually(t, 2*time.Minute, "what is served is near the load", func(c *assert.CollectT) {
		seen := s.since(time.Time{})
		require.GreaterOrEqual(c, len(seen), 10)
		for _, x := range seen[len(seen)-10:] {
			require.Greater(c, x.At, steadyGrow+5*time.Second)
			require.NoError(c, x.Err)
			require.Greater(c, x.Served, 0.7*s.load)
			require.LessOrEqual(c, x.Served, max(1.3*s.load, carried(s.app, x.Replicas)))
		}
	})
}

// carried is the load that replicas take at the threshold. It is served instead of a smaller need
// as long as their count is good enough, so that the HPA keeps them.
func carried(a stack.App, replicas int) float64 {
	return float64(replicas) * a.Threshold.AsApproximateFloat64()
}

// next waits for a look from a time on that is as desired, and returns it.
func (s *steady) next(t *testing.T, from time.Time, span time.Duration, what string,
	desired func(sighting) bool) sighting {
	t.Helper()
	var found sighting
	eventually(t, span, what, func(c *assert.CollectT) {
		seen := s.since(from)
		for _, x := range seen {
			if desired(x) {
				found = x
				return
			}
		}
		require.NotEmpty(c, seen, "looks")
		assert.Fail(c, "not yet", "last: %v, %v", seen[len(seen)-1].Served, seen[len(seen)-1].Err)
	})
	return found
}

// servesTheLoad: whatever was served since a time is about the load, if it is served.
func (s *steady) servesTheLoad(t *testing.T, what string, from time.Time) {
	t.Helper()
	var values []float64
	seen := s.since(from)
	for _, x := range seen {
		if x.Err == nil {
			values = append(values, x.Served)
		}
	}
	aboutTheLoad(t, what, s.load, values)
	t.Logf("%s: %d of %d looks were served", what, len(values), len(seen))
}

func aboutTheLoad(t *testing.T, what string, load float64, values []float64) {
	t.Helper()
	if !assert.NotEmpty(t, values, what) {
		return
	}
	low, high := bounds(values)
	t.Logf("%s: served %.2f to %.2f for a load of %.2f", what, low, high, load)
	assert.Greater(t, low, leastOfLoad*load, what)
	assert.Less(t, high, mostOfLoad*load, what)
}

// keptReplicas: the target was not scaled since a time.
func (s *steady) keptReplicas(t *testing.T, from time.Time) {
	t.Helper()
	seen := s.since(from)
	require.NotEmpty(t, seen)
	for _, x := range seen {
		assert.Equal(t, seen[0].Replicas, x.Replicas, "replicas at %s", x.At)
	}
}
