package forecaster

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/share"
)

// DefaultMaxReadings is how many readings the forecasts of a namespace may keep: those of 10,000 pods with one PredictedMetric
// and the defaults. Each stands for two samples of 12 bytes at most.
const DefaultMaxReadings = 10_000_000

// keeping is what a feed may keep within its window: readings of each instance.
type keeping struct {
	instances, readings int64
	samples             int64 // of all instances: what it takes memory for
}

func (k keeping) total() int64 { return k.instances * k.readings }

func (f *Feed) keeping(now time.Time) keeping {
	c := f.settings.Load()
	if c.pipeline == nil {
		return keeping{}
	}
	window := c.Params.WindowFor(f.startupTime(c))
	instances := f.followed.Load()
	if c.Params.Whole {
		instances = 1 // what is kept is one series, however many pods there are
	}
	if pods := f.pods.Load(); instances < 0 && pods != nil {
		instances = int64(len((*pods).Instances(now.Add(-window - c.Params.RedistributionTimeout))))
	}
	k := keeping{instances: max(1, instances), readings: int64(c.readings(window))}
	k.samples = k.instances * max(f.kept.Load(), int64(window/c.every())) // as many as there were, or as there will be
	if k.samples >= largeRun {
		k.samples *= 2 // the workspace that it needs is as large
	}
	return k
}

// sampleBytes is what a sample takes: 12 bytes, and room to add the next ones.
const sampleBytes = 16

// SamplesIn returns how many samples fit into memory of some bytes.
func SamplesIn(bytes int64) int64 { return max(1, bytes/sampleBytes) }

// task is a forecast of a round.
type task struct {
	*Feed
	keeping
	refused error // nil: it fits into the budget of its namespace
}

// plan returns the tasks of a round, of feeds in order of their keys. In a namespace above its budget those created first go
// first, so that what is served goes on.
func (f *Forecaster) plan(feeds []*Feed, now time.Time) []task {
	tasks := make([]task, len(feeds))
	readings, samples := map[string]int64{}, map[string]int64{}
	for i, feed := range feeds {
		tasks[i] = task{Feed: feed, keeping: feed.keeping(now)}
		readings[feed.key.Namespace] += min(tasks[i].total(), f.maxReadings+1)
		samples[feed.key.Namespace] += tasks[i].samples
		f.liveness.progress.Add(1)
	}
	part := f.part(samples)
	for rest := tasks; len(rest) > 0; {
		namespace := rest[0].key.Namespace
		n := sort.Search(len(rest), func(i int) bool { return rest[i].key.Namespace > namespace })
		if readings[namespace] > f.maxReadings || samples[namespace] > part {
			f.refuse(oldestFirst(rest[:n]), part)
		}
		rest = rest[n:]
	}
	return tasks
}

// part returns how many samples each namespace may keep, so that those of all fit into memory.
func (f *Forecaster) part(samples map[string]int64) int64 {
	if f.maxSamples == 0 {
		return math.MaxInt64
	}
	part := share.Level(f.maxSamples, slices.Collect(maps.Values(samples)))
	for _, n := range samples {
		if n > part {
			return part
		}
	}
	return math.MaxInt64
}

// refuse marks the tasks, of one namespace, that do not fit next to those before them.
func (f *Forecaster) refuse(tasks []*task, part int64) {
	readings, samples := int64(0), int64(0)
	for _, t := range tasks {
		switch {
		case readings+t.total() > f.maxReadings:
			t.refused = unavailable(snapshot.InvalidSpec, "spec.sampleInterval: the forecast would keep %d readings (%d of each of %d pods), next to %d "+
				"for older PredictedMetrics in the namespace: must be at most %d together (--namespace-max-readings); "+
				"a longer interval of the source needs fewer",
				t.total(), t.readings, t.instances, readings, f.maxReadings)
		case t.samples > part-samples:
			t.refused = unavailable(snapshot.InvalidSpec, "spec.sampleInterval: the forecast takes the memory of %d samples, next to that of %d "+
				"for older PredictedMetrics in the namespace: must be at most %d together, its share of the %d that fit into the memory "+
				"limit of the process; a longer sampleInterval needs fewer", t.samples, samples, part, f.maxSamples)
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
		return cmp.Or(a.settings.Load().Created.Compare(b.settings.Load().Created), strings.Compare(a.key.Name, b.key.Name))
	})
	return out
}

// stop publishes why there is no forecast, and drops what the feed has kept.
func (f *Feed) stop(why error, now time.Time) snapshot.Reason {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expectAgain(now)
	f.inbox.limit(limits{})
	f.use()
	f.reset()
	clear(f.failing)
	f.newest = 0
	f.followed.Store(-1)
	f.publishErr(why, now)
	return snapshot.InvalidSpec
}

// expectAgain has a feed that is refused count by its configuration, not by what it kept, once that would have left the
// window, or the configuration is another one: there may be less now.
func (f *Feed) expectAgain(now time.Time) {
	if !f.beyond.Swap(true) {
		f.stopped = now
	}
	next := f.settings.Load()
	if now.Sub(f.stopped) > f.window || next.Params != f.using.Params || next.Interval != f.using.Interval {
		f.kept.Store(0)
	}
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
