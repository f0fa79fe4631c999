package extender

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFailedConnectionsAreToldOnceAMinute(t *testing.T) {
	var log bytes.Buffer
	now := noon
	f := newFailures(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), func() time.Time { return now })
	const failure = "http: TLS handshake error from 10.0.0.1:33: tls: failed to verify certificate\n"
	for _, step := range []struct {
		after       time.Duration
		line        string
		warn, count int
	}{
		{0, "http: TLS handshake error from 10.0.0.1:33: EOF\n", 0, 0},
		{0, "http2: received GOAWAY\n", 0, 0},
		{0, failure, 1, 1},
		{time.Minute - 1, failure, 1, 2},
		{time.Minute, failure, 2, 3},
		{time.Minute + 1, failure, 2, 4},
	} {
		now = noon.Add(step.after)
		n, err := f.Write([]byte(step.line))
		require.NoError(t, err)
		assert.Equal(t, len(step.line), n)
		assert.Equal(t, step.warn, strings.Count(log.String(), "level=WARN"), log.String())
		assert.InDelta(t, step.count, testutil.ToFloat64(f.count), 0)
	}
	assert.Equal(t, 2, strings.Count(log.String(), "level=DEBUG"))
	assert.Contains(t, log.String(), "failed to verify certificate")
}

func TestClientsWithoutACertificateAreCounted(t *testing.T) {
	dir, registry := t.TempDir(), prometheus.NewRegistry()
	_, _, content := clientPair(t, dir, "scheduler")
	authorities := filepath.Join(dir, "authorities")
	require.NoError(t, os.WriteFile(authorities, content, 0o600))
	url := serve(t, ServerOptions{ClientCAFile: authorities, Registry: registry}, http.NotFoundHandler())
	response, err := anyServer().Get(url)
	if err == nil {
		response.Body.Close()
	}
	require.Error(t, err)
	assert.EventuallyWithT(t, func(c *assert.CollectT) {
		families, err := registry.Gather()
		require.NoError(c, err)
		require.Len(c, families, 1)
		assert.Equal(c, "foresail_extender_tls_failures_total", families[0].GetName())
		assert.GreaterOrEqual(c, families[0].GetMetric()[0].GetCounter().GetValue(), 1.0)
	}, 10*time.Second, 10*time.Millisecond)

	_, err = NewServer(ServerOptions{Address: "127.0.0.1:0", Registry: registry}, http.NotFoundHandler(), nil)
	assert.ErrorContains(t, err, "duplicate")
}
