package foresail

import (
	"testing"
	"time"

	"github.com/foresail/foresail/test/env/controlplane"
)

// StartFor starts foresail until a test ends. The test has the end of the log in its output if it fails.
func StartFor(t testing.TB, o Options) *Process {
	t.Helper()
	p, err := Start(o)
	noError(t, err)
	t.Cleanup(func() { end(t, p.options.Name, p.LogTail, p.Stop) })
	return p
}

// EndWith stops another program when a test ends. The test has the end of its log in its output if it fails.
func EndWith(t testing.TB, name string, p *controlplane.Process) {
	t.Cleanup(func() { end(t, name, p.LogTail, func() error { return p.Stop(20 * time.Second) }) })
}

func end(t testing.TB, name string, logTail func() string, stop func() error) {
	if t.Failed() {
		t.Logf("%s: %s", name, logTail())
	}
	noError(t, stop())
}

// MustMetrics reads /metrics.
func (p *Process) MustMetrics(t testing.TB) Families {
	t.Helper()
	families, err := p.Metrics(t.Context())
	noError(t, err)
	return families
}

// MustUsage reads what the process has taken.
func (p *Process) MustUsage(t testing.TB) Usage {
	t.Helper()
	u, err := p.Usage()
	noError(t, err)
	return u
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
