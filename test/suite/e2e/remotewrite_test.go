package e2e

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/foresail/foresail/test/env/monitoring"
	"github.com/foresail/foresail/test/env/stack"
)

// TestRemoteWriteFaults has a real agent send to an adapter of its own, which is not registered:
// first one that is not let in; then one that is, and that keeps what it cannot send while the
// adapter is dead.
func TestRemoteWriteFaults(t *testing.T) {
	t.Parallel()
	app := newSteadyApp("written")
	app.Source = written()
	place(t, app)
	to, err := newReceiver("written")
	require.NoError(t, err)
	a := startReceiving(t, "receives", to, app)
	s := beginSteady(t, app, faultsRPS)
	s.ask(direct(t, a))

	t.Run("unknown users are rejected", func(t *testing.T) {
		response, err := http.Post(to.url(), "application/x-protobuf", strings.NewReader(""))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusUnauthorized, response.StatusCode)

		from := time.Now()
		stranger := startPrometheus(t, to.agent("agent-stranger", app,
			&monitoring.BasicAuth{Username: to.user.Username, Password: "guessed"}))
		eventually(t, time.Minute, "the agent receives 401", func(c *assert.CollectT) {
			assert.Contains(c, stranger.LogTail(), "401")
		})
		for _, x := range s.since(from) {
			assert.True(t, apierrors.IsServiceUnavailable(x.Err), "%.2f: %v", x.Served, x.Err)
		}
		for _, series := range a.MustMetrics(t)["foresail_remote_write_samples_total"].GetMetric() {
			assert.Zero(t, series.GetCounter().GetValue(), "%v", series)
		}
	})

	agent := startPrometheus(t, to.agent("agent-faults", app, &to.user))
	s.settle(t)
	t.Run("the adapter is dead for a while", func(t *testing.T) {
		from := time.Now()
		require.NoError(t, a.Kill())
		s.next(t, from.Add(20*time.Second/timeScale), time.Minute, "the adapter was dead for a while",
			func(sighting) bool { return true })
		for _, x := range s.since(from.Add(time.Second)) {
			assert.Error(t, x.Err)
		}
		began := time.Now()
		a = startReceiving(t, "receives-again", to, app)
		s.ask(direct(t, a))
		again := s.next(t, began, 90*time.Second, "a value again", func(x sighting) bool { return x.Err == nil })
		t.Logf("a value %s after the start of the next adapter", again.when.Sub(began).Round(time.Second))
		s.settle(t)
		s.servesTheLoad(t, "after the restart", began)
		if t.Failed() {
			t.Logf("the last words of the agent:\n%s", agent.LogTail())
		}
	})
}

// startReceiving runs an adapter for the namespace of an application alone that takes what is sent
// to a receiver, until the test ends. It is not ready before something has been sent.
func startReceiving(t *testing.T, name string, to receiver, app stack.App) *stack.Adapter {
	t.Helper()
	a, err := runAdapter(t.Context(), name, append(to.flags(), "--namespaces="+app.Namespace)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last words of %s:\n%s", name, a.LogTail())
		}
	})
	eventually(t, 30*time.Second, "the adapter listens", func(c *assert.CollectT) {
		err := a.Probe(t.Context(), "/livez")
		assert.NoError(c, err)
		receiving, err := net.Dial("tcp", to.address) // a port of its own, which opens later
		if assert.NoError(c, err) {
			assert.NoError(c, receiving.Close())
		}
	})
	return a
}
