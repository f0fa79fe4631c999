package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/loadgen"
)

// ready is a list of pods that a test changes.
type ready struct{ addresses atomic.Pointer[[]string] }

func readyPods(addresses ...string) *ready {
	r := &ready{}
	r.set(addresses...)
	return r
}

func (r *ready) set(addresses ...string) { r.addresses.Store(&addresses) }

func (r *ready) Endpoints() []string { return *r.addresses.Load() }

func TestDiscoveryIsLateForNewPodsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := readyPods("a", "b")
		d := newDiscovery(pods)
		go d.run(t.Context())
		assert.Equal(t, []string{"a", "b"}, d.Endpoints(), "what is there at the start is known")

		time.Sleep(time.Second + time.Millisecond)
		pods.set("b", "c")
		time.Sleep(200 * time.Millisecond)
		assert.Equal(t, []string{"b"}, d.Endpoints(), "a has gone")
		time.Sleep(5 * time.Second)
		assert.Equal(t, []string{"b"}, d.Endpoints(), "c is on the list, which was not read yet")
		time.Sleep(refresh / 2)
		assert.Equal(t, []string{"b", "c"}, d.Endpoints())
	})
}

func TestProxyGivesANewPodItsShareSlowly(t *testing.T) {
	pods := readyPods("127.0.0.1:1", "127.0.0.2:1")
	p := newProxy(pods)
	count := func(at time.Duration, n int) map[string]int {
		counts := map[string]int{}
		for range n {
			address, err := p.pick(p.begun.Add(at))
			require.NoError(t, err)
			counts[address]++
		}
		return counts
	}
	assert.Equal(t, map[string]int{"127.0.0.1:1": 50, "127.0.0.2:1": 50}, count(0, 100), "both are new")
	pods.set("127.0.0.1:1", "127.0.0.2:1", "127.0.0.3:1")
	count(time.Minute, 1)
	for age, weight := range map[time.Duration]float64{0: 0.1, slowStart / 2: 0.5, slowStart: 1} {
		assert.InDelta(t, weight/(2+weight)*2100, count(time.Minute+age, 2100)["127.0.0.3:1"], 2,
			"%s after it was seen", age)
	}
}

func TestProxyPassesRequestsOn(t *testing.T) {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	defer pod.Close()
	pods := readyPods()
	p := newProxy(pods)
	front := httptest.NewServer(p)
	defer front.Close()
	get := func(path string) (int, string) {
		response, err := http.Get(front.URL + path)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}

	status, _ := get("/lead")
	assert.Equal(t, http.StatusServiceUnavailable, status, "no pod is known")
	pods.set(strings.TrimPrefix(pod.URL, "http://"))
	status, body := get("/lead")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "/lead", body)
	_, begun := p.since()
	assert.False(t, begun, "a request of the lead-in does not count")

	_, _ = get(mainPath)
	_, begun = p.since()
	assert.True(t, begun)
	assert.EqualValues(t, 1, p.passed.Load())
	assert.Zero(t, p.inFlight.Load())

	pod.Close()
	status, _ = get(mainPath)
	assert.Equal(t, http.StatusBadGateway, status)
}

var _ loadgen.Endpoints = (*discovery)(nil)
