package scale

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const mebibyte = 1 << 20

// measure lets a process run for a while and reports the cores that it keeps busy and the memory
// that it takes.
func measure(b *testing.B, a *adapter, span time.Duration) {
	b.Helper()
	const profiled = 20 * time.Second
	profiles := make(chan error, 1)
	go func() { profiles <- a.SaveProfiles(b.Context(), b.Name(), profiled) }()
	before := a.MustUsage(b)
	resident := before.Resident
	for end := time.Now().Add(span); time.Now().Before(end); {
		select {
		case <-a.Ended():
			b.Fatal(a.Failure())
		case <-time.After(min(time.Second, time.Until(end))):
		}
		resident = max(resident, a.MustUsage(b).Resident)
	}
	after := a.MustUsage(b)
	require.NoError(b, <-profiles)
	b.ReportMetric(after.Cores(before), "cores")
	b.ReportMetric(float64(resident)/mebibyte, "MiB-resident")
	b.ReportMetric(float64(max(after.Peak, resident))/mebibyte, "MiB-peak") // the kernel counts in batches
}
