package serve

import (
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/internal/cli"
)

func TestMemoryLimitLeavesRoomForWhatGoDoesNotCount(t *testing.T) {
	limit, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	t.Cleanup(func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	})
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		environment map[string]string
		want        int64
		percent     int
	}{
		{map[string]string{}, limit, gcPercent},
		{map[string]string{"FORESAIL_MEMORY_LIMIT": "1000000000"}, 900_000_000, gcPercent},
		{map[string]string{"FORESAIL_MEMORY_LIMIT": "1000000000", "GOMEMLIMIT": "5GiB", "GOGC": "80"}, limit, 100},
	} {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(100)
		assert.NoError(t, limitMemory(ended, func(name string) string { return c.environment[name] }))
		assert.Equal(t, c.want, debug.SetMemoryLimit(-1), "%v", c.environment)
		assert.Equal(t, c.percent, debug.SetGCPercent(100), "%v", c.environment)
	}
	for _, bad := range []string{"1Gi", "0", "-5"} {
		err := limitMemory(ended, func(name string) string { return map[string]string{"FORESAIL_MEMORY_LIMIT": bad}[name] })
		assert.EqualError(t, err, `FORESAIL_MEMORY_LIMIT: "`+bad+`": must be a number of bytes, such as 1073741824`)
		assert.True(t, errors.As(err, new(cli.UsageError)))
	}
}

func TestGCPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{
		0:         3200, // not read yet
		8 << 20:   400,
		32 << 20:  100,
		64 << 20:  gcPercent,
		700 << 20: gcPercent,
	} {
		assert.Equal(t, want, gcPercentFor(live, math.MaxInt64), live)
	}
	const limit = 900 << 20
	assert.Equal(t, 125, gcPercentFor(200<<20, limit), "until half of the limit is used")
	assert.Equal(t, maxGCPercent, gcPercentFor(50<<20, limit))
	assert.Equal(t, gcPercent, gcPercentFor(600<<20, limit), "no room")
}

func TestGarbageCollectionFollowsTheHeap(t *testing.T) {
	percent := func() int {
		read := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(read)
		return int(read[0].Value.Uint64())
	}
	before := debug.SetGCPercent(gcPercent)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	ctx, end := context.WithCancel(t.Context())
	afterCollections(ctx, adaptGCPercent)

	held := make([]byte, 2*leastFreed)
	collect := func(want bool) {
		t.Helper()
		assert.Eventually(t, func() bool {
			runtime.GC()
			return (percent() > gcPercent) == want
		}, 10*time.Second, 10*time.Millisecond)
	}
	collect(false)
	runtime.KeepAlive(held)
	collect(true) // the test's own heap is small
	held = make([]byte, 2*leastFreed)
	collect(false)
	runtime.KeepAlive(held)

	end()
	runtime.GC()
}

// The budgets of answers, bodies and samples fit into the limit together, with a quarter to spare.
func TestBudgetsFitIntoTheMemoryLimit(t *testing.T) {
	assert.Zero(t, samplesThatFit(math.MaxInt64, 1<<20), "there is no limit")
	const limit, budgets = 900 << 20, 384 << 20
	assert.Equal(t, forecaster.SamplesIn(291<<20), samplesThatFit(limit, budgets))
	assert.Equal(t, forecaster.SamplesIn(limit/4), samplesThatFit(limit, limit), "there is room for some all the same")
}
