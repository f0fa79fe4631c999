package serve

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"

	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/pipeline"
)

const (
	// gcPercent replaces Go's default of 100: most of the heap are samples, which live for minutes.
	gcPercent = 50
	// leastFreed is what garbage collection waits for (bytes): a small heap would be collected
	// several times a second, and the slowest hundredth of reads are those that meet a collection.
	leastFreed = 32 << 20
	// maxGCPercent bounds what a memory limit allows: beyond it collections cost little.
	maxGCPercent = 300
)

// memoryLimitVariable is in the environment of the manifests: the memory limit of the container, in bytes.
const memoryLimitVariable = "FORESAIL_MEMORY_LIMIT"

// limitMemory has garbage collected more often as the process comes close to its memory limit. A
// tenth of that stays free for what the Go runtime does not count, such as the program and the
// buffers of connections. Small heaps are collected seldom, until the context ends. GOGC and
// GOMEMLIMIT are obeyed.
func limitMemory(ctx context.Context, getenv func(string) string) error {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		afterCollections(ctx, adaptGCPercent)
	}
	text := getenv(memoryLimitVariable)
	if text == "" || getenv("GOMEMLIMIT") != "" {
		return nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return cli.Unusable(&pipeline.FieldError{Field: memoryLimitVariable, Value: fmt.Sprintf("%q", text),
			Accept: "a number of bytes, such as 1073741824"})
	}
	debug.SetMemoryLimit(limit / 10 * 9)
	return nil
}

// samplesThatFit returns how many samples forecasts may keep, next to what else has a budget of
// memory, within a limit; 0 while there is none. A quarter is for what has no budget: objects of
// the cluster, what is learned, and garbage.
func samplesThatFit(limit, budgets int64) int64 {
	if limit == math.MaxInt64 {
		return 0
	}
	return forecaster.SamplesIn(max(limit/4*3-budgets, limit/4))
}

// afterCollections calls a function after each garbage collection, until the context ends.
func afterCollections(ctx context.Context, f func()) {
	garbage := new([64]byte)
	runtime.AddCleanup(garbage, func(ctx context.Context) {
		if ctx.Err() == nil {
			f()
			afterCollections(ctx, f)
		}
	}, ctx)
}

// adaptGCPercent sets the GOGC that fits the heap. Setting it stops the process for a moment, so
// small differences are left.
func adaptGCPercent() {
	read := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	metrics.Read(read)
	want, is := gcPercentFor(read[0].Value.Uint64(), debug.SetMemoryLimit(-1)), int(read[1].Value.Uint64())
	if want == gcPercent && is != want || max(want, is)-min(want, is) > is/8 {
		debug.SetGCPercent(want)
	}
}

// gcPercentFor returns the GOGC for a heap of so many live bytes. Half of a memory limit is used before garbage is
// collected more often: next to a tenant whose objects change all the time, collections are what delays the reads of others.
func gcPercentFor(live uint64, limit int64) int {
	live = max(live, 1<<20)
	want := max(gcPercent, int(100*leastFreed/live))
	if room := uint64(limit) / 2; limit != math.MaxInt64 && room > live {
		want = max(want, min(maxGCPercent, int(100*(room-live)/live)))
	}
	return want
}
