package forecaster

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/share"
)

// DefaultMaxReadings is how many readings the forecasts of a namespace may keep: those of 10,000
// pods with one PredictedMetric and the defaults. Each stands for two samples of 12 bytes at most.
const DefaultMaxReadings = 10_000_000

// keeping counts the readings that a feed may keep within its window.
type keeping struct {
	instances, readings int64
	samples             int64 // of all instances, which take memory
}

func (k keeping) total() int64 { return k.instances * k.readings }

// footprint is how much the forecasts of a feed keep, by which they are budgeted.
type footprint struct {
	beyond   atomic.Bool  // it is beyond the budget of its namespace
	stopped  time.Time    // since when, while it is; the feed's mu is held
	kept     atomic.Int64 // how many samples of an instance the last forecast had, in the mean
	followed atomic.Int64 // how many instances the last forecast looked at, -1: not known
}

// keeping returns what the next forecast may keep.
func (f *footprint) keeping(c *settings, t *scaleTarget, now time.Time) keeping {
	if c.pipeline == nil {
		return keeping{}
	}
	window := c.Params.WindowFor(t.startupTime(&c.Config))
	instances := f.followed.Load()
	if c.Params.Whole {
		instances = 1 // one series is kept, however many pods there are
	}
	if instances < 0 {
		instances = int64(len(t.instances(now.Add(-window - c.Params.RedistributionTimeout))))
	}
	k := keeping{instances: max(1, instances), readings: int64(c.readings(window))}
	k.samples = k.instances * max(f.kept.Load(), int64(window/c.every())) // as many as there were, or as there will be
	if k.samples >= largeRun {
		k.samples *= 2 // the workspace that it needs is as large
	}
	return k
}

// refuse lets a feed count by its configuration instead of its last forecast, once the samples of
// that would have left the window or the configuration has changed: there may be less now.
func (f *footprint) refuse(now time.Time, window time.Duration, next, using *settings) {
	if !f.beyond.Swap(true) {
		f.stopped = now
	}
	if now.Sub(f.stopped) > window || next.Params != using.Params || next.Interval != using.Interval {
		f.kept.Store(0)
	}
}

// sampleBytes is the memory of a sample: 12 bytes, and room to add the next ones.
const sampleBytes = 16

// SamplesIn returns how many samples fit into memory of some bytes.
func SamplesIn(bytes int64) int64 { return max(1, bytes/sampleBytes) }

// task is a forecast of a round.
type task struct {
	*Feed
	keeping
	refused error // nil: it fits into the budget of its namespace
}

// budget bounds what the forecasts of a round keep.
type budget struct {
	maxReadings int64 // of a namespace
	maxSamples  int64 // of all; 0 = any number
}

// plan marks the tasks of a round, in order of their keys, that are refused. In a namespace above
// its budget those created first go first, so that they are served without a break.
func (b *budget) plan(tasks []task) {
	readings, samples := map[string]int64{}, map[string]int64{}
	for i := range tasks {
		t := &tasks[i]
		readings[t.key.Namespace] += min(t.total(), b.maxReadings+1)
		samples[t.key.Namespace] += t.samples
	}
	part := b.part(samples)
	for rest := tasks; len(rest) > 0; {
		namespace := rest[0].key.Namespace
		n := sort.Search(len(rest), func(i int) bool { return rest[i].key.Namespace > namespace })
		if readings[namespace] > b.maxReadings || samples[namespace] > part {
			b.refuse(oldestFirst(rest[:n]), part)
		}
		rest = rest[n:]
	}
}

// part returns how many samples each namespace may keep, so that those of all fit into memory.
func (b *budget) part(samples map[string]int64) int64 {
	if b.maxSamples == 0 {
		return math.MaxInt64
	}
	part := share.Level(b.maxSamples, slices.Collect(maps.Values(samples)))
	for _, n := range samples {
		if n > part {
			return part
		}
	}
	return math.MaxInt64
}

// refuse marks the tasks, of one namespace, that do not fit next to those before them.
func (b *budget) refuse(tasks []*task, part int64) {
	readings, samples := int64(0), int64(0)
	for _, t := range tasks {
		switch {
		case readings+t.total() > b.maxReadings:
			t.refused = unavailable(snapshot.InvalidSpec,
				"spec.sampleInterval: the forecast would keep %d readings (%d of each of %d pods), next to %d "+
					"for older PredictedMetrics in the namespace: must be at most %d together; "+
					"a longer interval of the source needs fewer",
				t.total(), t.readings, t.instances, readings, b.maxReadings)
		case t.samples > part-samples:
			t.refused = unavailable(snapshot.InvalidSpec,
				"spec.sampleInterval: the forecast takes the memory of %d samples, next to that of %d "+
					"for older PredictedMetrics in the namespace: must be at most %d together, its share of the %d that fit into the memory "+
					"limit of the process; a longer sampleInterval needs fewer", t.samples, samples, part, b.maxSamples)
		default:
			readings += t.total()
			samples += t.samples
		}
	}
}

func oldestFirst(tasks []task) []*task {
	out := make([]*task, len(tasks))
	for i := range tasks {
		out[i] = &tasks[i]
	}
	slices.SortFunc(out, func(a, b *task) int {
		return cmp.Or(a.settings.Load().Created.Compare(b.settings.Load().Created),
			strings.Compare(a.key.Name, b.key.Name))
	})
	return out
}

// largeRun is from how many readings on a forecast is made in the one large workspace, after any other that large.
const largeRun = 2_000_000

// workspaces lends memory. A small one is kept for each core, a large one is kept while every round needs it.
type workspaces struct {
	small sync.Pool

	mu    sync.Mutex
	large *workspace
	used  bool // in this round
}

func newWorkspaces() *workspaces {
	return &workspaces{small: sync.Pool{New: func() any { return &workspace{} }}}
}

// run calls do with memory for that many readings.
func (w *workspaces) run(readings int64, do func(*workspace)) {
	if readings < largeRun {
		space := w.small.Get().(*workspace)
		do(space)
		w.small.Put(space)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.large == nil {
		w.large = &workspace{}
	}
	w.used = true
	do(w.large)
}

func (w *workspaces) endRound() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.used {
		w.large = nil
	}
	w.used = false
}
