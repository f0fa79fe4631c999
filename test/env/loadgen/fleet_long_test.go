//go:build long

package loadgen_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/workload"
)

// TestUtilizationUnderRealLoad needs a machine that sends requests when they are due.
func TestUtilizationUnderRealLoad(t *testing.T) {
	pods, addresses := fleet(t, 4, workload.DefaultModel())
	generator, err := loadgen.New(loadgen.Config{Profile: loadgen.Constant(120, 4*time.Second), Endpoints: addresses,
		Recent: time.Second})
	require.NoError(t, err)
	done := make(chan loadgen.Report, 1)
	go func() {
		report, err := generator.Run(t.Context())
		assert.NoError(t, err)
		done <- report
	}()

	var sum float64
	scrapes := 0
	for second := 1; second <= 3; second++ {
		require.Eventually(t, func() bool {
			return generator.Stats().Elapsed >= time.Duration(second)*time.Second+500*time.Millisecond
		}, 20*time.Second, 5*time.Millisecond)
		for _, pod := range pods {
			sum += pod.Usage().Utilization
			scrapes++
		}
	}
	assert.InDelta(t, 120*0.020/4, sum/float64(scrapes), 0.06, "arrival rate × service time")
	assert.Less(t, (<-done).Latency.P50, 100*time.Millisecond)
}
