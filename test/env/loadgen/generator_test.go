package loadgen

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answers is a transport of a given latency and status that notes when requests come.
type answers struct {
	after  func() time.Duration // nil: at once
	status int

	mu   sync.Mutex
	seen []time.Time
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	a.seen = append(a.seen, time.Now())
	a.mu.Unlock()
	if a.after != nil {
		select {
		case <-time.After(a.after()):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return &http.Response{StatusCode: a.status, Status: http.StatusText(a.status),
		Body: io.NopCloser(strings.NewReader("x"))}, nil
}

func (a *answers) CloseIdleConnections() {}

func constantly(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

func generator(t *testing.T, config Config, transport http.RoundTripper) *Generator {
	t.Helper()
	if config.Endpoints == nil {
		config.Endpoints = Static{a}
	}
	g, err := New(config)
	require.NoError(t, err)
	g.client.Transport = transport
	return g
}

func TestRunFollowsTheProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &answers{status: 200, after: constantly(30 * ms)}
		p := Ramp(10, 100, 10*time.Second, 5*time.Second)
		g := generator(t, Config{Profile: p}, transport)
		begin := time.Now()
		report, err := g.Run(t.Context())
		require.NoError(t, err)

		assert.Equal(t, Counts{Sent: 1050, OK: 1050}, report.Counts)
		for k, at := range transport.seen {
			require.InDelta(t, float64(k)+0.5, p.Requests(at.Sub(begin)), 1e-3)
		}
		assert.Equal(t, Latency{Count: 1050, Mean: 30 * ms, P50: 30 * ms, P90: 30 * ms, P99: 30 * ms, Max: 30 * ms},
			report.Latency)
		assert.Equal(t, 1.0, report.Success())
		require.Len(t, report.Timeline, 15)
		for i, second := range report.Timeline {
			assert.InDelta(t, second.Rate, second.Sent, 1)
			assert.InDelta(t, p.Rate(time.Duration(i)*time.Second+500*ms), second.Rate, 1e-6)
			assert.Equal(t, second.Sent, second.OK)
			assert.Equal(t, second.Sent, second.Latency.Count)
		}
		_, err = g.Run(t.Context())
		require.ErrorContains(t, err, "runs once")
	})
}

func TestPercentiles(t *testing.T) {
	var records []record
	for i := range 100 {
		records = append(records, record{due: time.Hour, end: time.Hour + time.Duration(100-i)*ms, outcome: ok})
	}
	records = append(records, record{end: time.Hour, outcome: dropped}, record{end: time.Hour, outcome: canceled})
	assert.Equal(t, Latency{Count: 100, Mean: 50500 * time.Microsecond, P50: 50 * ms, P90: 90 * ms, P99: 99 * ms,
		Max: 100 * ms}, latencyOf(records))
	assert.Equal(t, Latency{}, latencyOf(nil))
	one := latencyOf(records[:1])
	assert.Equal(t, 100*ms, one.P50)
	assert.Equal(t, 100*ms, one.P99)
	assert.True(t, math.IsNaN(Counts{Dropped: 3}.Success()))
}

func TestSlowAnswersDoNotSlowArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &answers{status: 200, after: constantly(9 * time.Second)}
		g := generator(t, Config{Profile: Constant(20, 10*time.Second)}, transport)
		report, err := g.Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 200, report.OK)
		assert.Equal(t, 10*time.Second-25*ms+9*time.Second, report.Elapsed)
	})
}

func TestArrivalsBeyondTheLimitAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &answers{status: 200, after: constantly(time.Second)}
		g := generator(t, Config{Profile: Constant(20, 10*time.Second), MaxInFlight: 5}, transport)
		report, err := g.Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 200, report.Sent+report.Dropped)
		assert.InDelta(t, 50, report.Sent, 1, "five at a time, one second each")
		assert.Equal(t, report.Sent, report.OK)
		assert.Equal(t, 1.0, report.Success())
		dropped := 0
		for _, second := range report.Timeline {
			dropped += second.Dropped
		}
		assert.Equal(t, report.Dropped, dropped)
	})
}

func TestOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &answers{status: 200, after: constantly(time.Hour)}
		report, err := generator(t, Config{Profile: Constant(10, time.Second)}, slow).Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, Counts{Sent: 10, TimedOut: 10}, report.Counts)
		assert.Equal(t, 10*time.Second, report.Latency.P50)
		assert.Zero(t, report.Success())

		report, err = generator(t, Config{Profile: Constant(10, time.Second)}, &answers{status: 503}).Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, Counts{Sent: 10, Failed: 10}, report.Counts)
		assert.Equal(t, map[string]int{"Service Unavailable": 10}, report.Failures)

		report, err = generator(t, Config{Profile: Constant(10, time.Second), Endpoints: Static{}},
			&answers{status: 200}).Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, map[string]int{"no endpoint": 10}, report.Failures)
	})
}

func TestStatsWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		transport := &answers{status: 200, after: func() time.Duration {
			if time.Since(begin) < 5*time.Second {
				return 100 * ms
			}
			return 300 * ms
		}}
		g := generator(t, Config{Profile: Constant(10, 10*time.Second), Recent: 2 * time.Second}, transport)
		assert.Equal(t, Stats{Endpoints: 1, Rate: 10}, g.Stats())
		done := make(chan error, 1)
		go func() { _, err := g.Run(t.Context()); done <- err }()
		<-time.After(8 * time.Second)
		synctest.Wait()
		stats := g.Stats()
		assert.Equal(t, 8*time.Second, stats.Elapsed)
		assert.Equal(t, 80, stats.Sent)
		assert.Equal(t, 3, stats.InFlight)
		assert.Equal(t, 77, stats.OK)
		assert.Equal(t, 10.0, stats.Rate)
		assert.Equal(t, Latency{Count: 20, Mean: 300 * ms, P50: 300 * ms, P90: 300 * ms, P99: 300 * ms, Max: 300 * ms},
			stats.Recent)
		assert.Equal(t, 77, stats.Overall.Count)
		assert.Equal(t, 100*ms, stats.Overall.P50)
		require.NoError(t, <-done)
	})
}

func TestEndOfContextEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		g := generator(t, Config{Profile: Constant(10, time.Hour)},
			&answers{status: 200, after: constantly(time.Second)})
		go func() {
			<-time.After(3 * time.Second)
			cancel(reason)
		}()
		begin := time.Now()
		report, err := g.Run(ctx)
		require.ErrorIs(t, err, reason)
		assert.Equal(t, 3*time.Second, time.Since(begin))
		assert.Equal(t, Counts{Sent: 30, OK: 20, Canceled: 10}, report.Counts)
	})
}

// later returns other endpoints after a while.
type later struct {
	begin time.Time
	after time.Duration
	then  []string
}

func (l later) Endpoints() []string {
	if time.Since(l.begin) < l.after {
		return []string{a}
	}
	return l.then
}

func TestOtherMachinesEndTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &answers{status: 200}
		endpoints := later{time.Now(), time.Second, []string{a, "192.0.2.1:80"}}
		report, err := generator(t, Config{Profile: Constant(10, time.Minute), Endpoints: endpoints},
			transport).Run(t.Context())
		require.EqualError(t, err, `loadgen: endpoint "192.0.2.1:80": load is sent to loopback addresses only`)
		assert.Equal(t, Counts{Sent: 10, OK: 10}, report.Counts)
		assert.Len(t, transport.seen, 10, "nothing was sent from then on")
	})
}

func TestClientConnectsToLoopbackOnly(t *testing.T) {
	err := get(t.Context(), newClient(), "http://192.0.2.1:80/")
	require.ErrorContains(t, err, "loopback addresses only")
}

func TestNewRefusesBadConfig(t *testing.T) {
	p := Constant(1, time.Second)
	for want, config := range map[string]Config{
		"profile":               {Endpoints: Static{a}},
		"endpoints: must be":    {Profile: p},
		`path "x": must begin`:  {Profile: p, Endpoints: Static{a}, Path: "x"},
		"requests in flight -1": {Profile: p, Endpoints: Static{a}, MaxInFlight: -1},
		"timeout -1ns":          {Profile: p, Endpoints: Static{a}, Timeout: -1},
		"slow start -1ns":       {Profile: p, Endpoints: Static{a}, SlowStart: -1},
		"recent span -1ns":      {Profile: p, Endpoints: Static{a}, Recent: -1},
	} {
		_, err := New(config)
		require.ErrorContains(t, err, want)
	}
}
