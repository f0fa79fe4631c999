//go:build long

package workload

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUtilizationOfRealRequests needs a machine that sends requests when they are due.
func TestUtilizationOfRealRequests(t *testing.T) {
	p := newPod(t, Model{ServiceTime: 20 * ms, QueueLimit: 1000})
	app, metrics := serve(t, p, "127.0.0.31")
	stop := load(t, app, time.Second/30)
	defer stop()
	require.Eventually(t, func() bool {
		values, err := read(metrics)
		return err == nil && math.Abs(values["nodejs_eventloop_utilization"]-30*0.020) < 0.04
	}, 20*time.Second, 100*ms, "utilization is arrival rate × service time")
}
