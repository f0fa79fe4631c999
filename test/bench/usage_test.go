package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"
)

// usage is what a process has taken.
type usage struct {
	at             time.Time
	processor      float64 // seconds, in user and kernel mode
	resident, peak uint64  // bytes
}

func usageOf(b *testing.B, pid int) usage {
	b.Helper()
	p, err := procfs.NewProc(pid)
	require.NoError(b, err)
	stat, err := p.Stat()
	require.NoError(b, err)
	status, err := p.NewStatus()
	require.NoError(b, err)
	return usage{at: time.Now(), processor: stat.CPUTime(), resident: status.VmRSS, peak: status.VmHWM}
}

// cores is how many cores were busy between two looks.
func (u usage) cores(before usage) float64 {
	return (u.processor - before.processor) / u.at.Sub(before.at).Seconds()
}

const mebibyte = 1 << 20

// measure lets a process run for a while and reports the cores that it keeps busy and the memory that it takes.
func measure(b *testing.B, f *foresail, span time.Duration) {
	b.Helper()
	profiled := make(chan error, 1)
	go func() { profiled <- takeProfiles(b.Context(), f, b.Name()) }()
	before := usageOf(b, f.PID())
	resident := before.resident
	for end := time.Now().Add(span); time.Now().Before(end); {
		select {
		case <-f.Ended():
			b.Fatal(f.Failure())
		case <-time.After(min(time.Second, time.Until(end))):
		}
		resident = max(resident, usageOf(b, f.PID()).resident)
	}
	after := usageOf(b, f.PID())
	require.NoError(b, <-profiled)
	b.ReportMetric(after.cores(before), "cores")
	b.ReportMetric(float64(resident)/mebibyte, "MiB-resident")
	b.ReportMetric(float64(max(after.peak, resident))/mebibyte, "MiB-peak") // the kernel counts in batches
}

// takeProfiles keeps a CPU profile of 20 s and a heap profile, if any are desired.
func takeProfiles(ctx context.Context, f *foresail, name string) error {
	if f.pprof == "" {
		return nil
	}
	dir := filepath.Join(*profiles, filepath.FromSlash(name))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for file, path := range map[string]string{"cpu.pprof": "profile?seconds=20", "heap.pprof": "heap?gc=1"} {
		body, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/%s", f.pprof, path))
		if err != nil {
			return err
		}
		out, err := os.Create(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		_, err = out.ReadFrom(body)
		if err := errors.Join(err, body.Close(), out.Close()); err != nil {
			return err
		}
	}
	return nil
}
