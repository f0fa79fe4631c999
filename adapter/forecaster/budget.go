package forecaster

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/foresail/foresail/adapter/snapshot"
)

// DefaultMaxReadings is how many readings the forecasts of a namespace may keep: those of 10,000 pods with one PredictedMetric
// and the defaults. Each stands for two samples of 12 bytes at most.
const DefaultMaxReadings = 10_000_000

// share is what a feed may keep within its window: readings of each instance.
type share struct{ instances, readings int64 }

func (s share) total() int64 { return s.instances * s.readings }

func (f *Feed) share(now time.Time) share {
	c := f.settings.Load()
	if c.pipeline == nil {
		return share{}
	}
	window := c.Params.WindowFor(f.startupTime(c))
	instances := f.followed.Load()
	if c.Params.Whole {
		instances = 1 // what is kept is one series, however many pods there are
	}
	if pods := f.pods.Load(); instances < 0 && pods != nil {
		instances = int64(len((*pods).Instances(now.Add(-window - c.Params.RedistributionTimeout))))
	}
	return share{instances: max(1, instances), readings: int64(c.readings(window))}
}

// task is a forecast of a round.
type task struct {
	*Feed
	share
	refused error // nil: it fits into the budget of its namespace
}

// plan returns the tasks of a round. In a namespace above its budget those created first go first, so that what is served goes on.
func (f *Forecaster) plan(feeds []*Feed, now time.Time) []task {
	tasks := make([]task, len(feeds))
	total := map[string]int64{}
	for i, feed := range feeds {
		tasks[i] = task{Feed: feed, share: feed.share(now)}
		total[feed.key.Namespace] += min(tasks[i].total(), f.maxReadings+1)
		f.liveness.progress.Add(1)
	}
	for namespace, sum := range total {
		if sum > f.maxReadings {
			f.refuse(oldestFirst(tasks, namespace))
		}
	}
	return tasks
}

// refuse marks the tasks, of one namespace, that do not fit beside those before them.
func (f *Forecaster) refuse(tasks []*task) {
	kept := int64(0)
	for _, t := range tasks {
		if n := t.total(); kept+n <= f.maxReadings {
			kept += n
			continue
		}
		t.refused = unavailable(snapshot.InvalidSpec, "spec.window: the forecast would keep %d readings (%d of each of %d pods), beside %d for older "+
			"PredictedMetrics in the namespace: must be at most %d together (--namespace-max-readings); a longer sampleInterval or a shorter window needs fewer",
			t.total(), t.readings, t.instances, kept, f.maxReadings)
	}
}

func oldestFirst(tasks []task, namespace string) []*task {
	var out []*task
	for i := range tasks {
		if tasks[i].key.Namespace == namespace {
			out = append(out, &tasks[i])
		}
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
	f.refused.Store(true)
	f.inbox.limit(limits{})
	f.using = f.settings.Load()
	f.reset()
	clear(f.failing)
	f.newest = 0
	f.followed.Store(-1)
	f.publishErr(why, now)
	return snapshot.InvalidSpec
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
