package extender

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// failures is what net/http tells of connections, line by line. A scheduler with a certificate of another authority, or that
// does not trust ours, goes on without being answered: that is to be seen here.
type failures struct {
	log   *slog.Logger
	now   func() time.Time
	count prometheus.Counter

	mu   sync.Mutex
	told time.Time // when it was last warned
}

func newFailures(log *slog.Logger, now func() time.Time) *failures {
	return &failures{log: log, now: now, count: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "foresail_extender_tls_failures_total",
		Help: "Connections that ended before both sides trusted each other, but for those that said nothing.",
	})}
}

// Write implements io.Writer.
func (f *failures) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	if !strings.Contains(text, "TLS handshake error") || strings.HasSuffix(text, ": EOF") { // as of a probe
		f.log.Debug("serving the scheduler extender", "error", text)
		return len(line), nil
	}
	f.count.Inc()
	if f.first() {
		f.log.Warn("a connection to the scheduler extender failed: neither a scheduler without a certificate that is asked for, nor one that does not trust ours is answered", "error", text)
	}
	return len(line), nil
}

// first tells whether a minute has passed since it last was.
func (f *failures) first() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if !f.told.IsZero() && now.Sub(f.told) < time.Minute {
		return false
	}
	f.told = now
	return true
}
