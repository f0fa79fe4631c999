package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// world is a forecaster of loads whose histories take ten seconds to read.
type world struct {
	*testing.T
	reader   *Reader
	registry *prometheus.Registry

	mu     sync.Mutex
	loads  map[types.NamespacedName]*load
	reads  []read
	atOnce int // that are being read
	most   int // of them
}

type load struct {
	forecaster.Load
	known time.Duration
	// stored and fails are what a source has of it.
	stored time.Duration
	fails  error
	hangs  bool // the source does not answer
}

type read struct {
	name string
	at   time.Duration
}

func newWorld(t *testing.T, names ...string) *world {
	w := &world{T: t, registry: prometheus.NewRegistry(), loads: map[types.NamespacedName]*load{}}
	for _, name := range names {
		key := keyOf(name)
		w.loads[key] = &load{Load: forecaster.Load{Key: key, Source: "prometheus", Origin: name}, stored: Span}
	}
	w.reader = New(Options{Forecasts: w, Sources: map[string]source.Historian{"prometheus": w}, Span: Span,
		Now: time.Now, Registerer: w.registry})
	return w
}

// keyOf returns the key of a name, which may have a namespace other than shop.
func keyOf(name string) types.NamespacedName {
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func (w *world) load(name string) *load {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.loads[keyOf(name)]
}

func (w *world) known(name string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.loads[keyOf(name)].known
}

// LittleKnown implements Forecasts.
func (w *world) LittleKnown(least time.Duration) (out []forecaster.Load) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.loads {
		if l.known < least {
			out = append(out, l.Load)
		}
	}
	slices.SortFunc(out, func(a, b forecaster.Load) int { return compare(a.Key.Name, b.Key.Name) })
	return out
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Fill implements Forecasts.
func (w *world) Fill(l *forecaster.Load, _ int64, minutes []pipeline.Minute) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.loads[l.Key]
	if x == nil || x.Origin != l.Origin {
		return 0, false
	}
	h := source.History{Minutes: minutes}
	x.known = max(x.known, h.Known())
	return x.known, true
}

// History implements source.Historian.
func (w *world) History(ctx context.Context, key types.NamespacedName, _ *pipeline.Params,
	span time.Duration) (source.History, error) {
	w.mu.Lock()
	l := w.loads[key]
	w.reads = append(w.reads, read{key.Name, time.Duration(time.Now().UnixNano()) - time.Duration(began.UnixNano())})
	w.atOnce++
	w.most = max(w.most, w.atOnce)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.atOnce--
	}()
	answered := time.After(10 * time.Second)
	if l.hangs {
		answered = nil
	}
	select {
	case <-ctx.Done():
		return source.History{}, ctx.Err()
	case <-answered:
	}
	h := source.History{Queries: 8}
	for m := time.Duration(0); m < span; m += time.Minute {
		x := pipeline.Minute{Mean: math.NaN()}
		if span-m <= l.stored {
			x.Mean = 1
		}
		h.Minutes = append(h.Minutes, x)
	}
	return h, l.fails
}

// began is when virtual time begins.
var began = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// lead has the replica elected until stop is called.
func (w *world) lead() (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error)
	go func() { done <- w.reader.Lead(ctx) }()
	return func() {
		cancel()
		require.NoError(w, <-done)
	}
}

func (w *world) count(result string) float64 {
	return testutil.ToFloat64(w.reader.telemetry.reads.WithLabelValues(result))
}

func (w *world) names() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.reads {
		names = append(names, r.name)
	}
	return names
}

// Hundreds of new loads of another namespace do not put off the history of one.
func TestNamespacesTakeTurnsAtReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"web"}
		for i := range 300 {
			names = append(names, fmt.Sprintf("bank/pm-%03d", i))
		}
		w := newWorld(t, names...)
		stop := w.lead()
		time.Sleep(planPeriod + time.Second)
		stop()
		assert.Contains(t, w.names(), "web")
	})
}

// Histories that take for ever, of one namespace, do not keep those of another from being read. They are not given up.
func TestHistoriesThatTakeForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprintf("bank/pm-%02d", i))
		}
		w := newWorld(t, names...)
		for _, l := range w.loads {
			l.hangs = true
		}
		stop := w.lead()
		time.Sleep(time.Minute)
		w.mu.Lock()
		for i := range 10 {
			key := keyOf(fmt.Sprint("web-", i))
			w.loads[key] = &load{Load: forecaster.Load{Key: key, Source: "prometheus"}, stored: Span}
		}
		w.mu.Unlock()
		time.Sleep(2 * time.Minute)
		for i := range 10 {
			assert.Equal(t, Span, w.known(fmt.Sprint("web-", i)))
		}
		assert.Zero(t, w.count("Failed"), "to be called back is no attempt")
		w.mu.Lock()
		assert.Equal(t, atOnce, w.atOnce, "what no other namespace needs is lent again")
		assert.LessOrEqual(t, w.most, atOnce)
		w.mu.Unlock()
		stop()
	})
}

// TestEachHistoryIsReadOnce: some at once, until each load is known.
func TestEachHistoryIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 50 {
			names = append(names, fmt.Sprintf("pm-%02d", i))
		}
		w := newWorld(t, names...)
		w.load("pm-07").known = enough
		w.load("pm-11").Source = "pods"
		stop := w.lead()
		time.Sleep(time.Minute)
		synctest.Wait()
		begun, waiting := len(w.names()), int(testutil.ToFloat64(w.reader.telemetry.waiting))
		assert.GreaterOrEqual(t, waiting, 50-2-begun, "those that have not begun")
		assert.LessOrEqual(t, waiting, 50-2-begun+atOnce, "and those that are being read")
		time.Sleep(4 * time.Hour)
		stop()
		got := w.names()
		slices.Sort(got)
		want := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "pm-07" || n == "pm-11" })
		require.Equal(t, want, got)
		assert.Equal(t, atOnce, w.most)
		assert.InDelta(t, 48, w.count("Filled"), 0)
		assert.InDelta(t, 48*Span.Seconds(), testutil.ToFloat64(w.reader.telemetry.filled), 60)
		assert.Zero(t, testutil.ToFloat64(w.reader.telemetry.waiting))
	})
}

// TestFailuresAreTriedAgain: some times, later and later, and what was read meanwhile is not lost.
func TestFailuresAreTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		stored  time.Duration
		fails   error
		reads   int
		results map[string]float64
	}{
		"a server that is down": {0, errors.New("connection refused"), 5, map[string]float64{"Failed": 5}},
		"names that say nothing": {0, fmt.Errorf("%w: any name", source.ErrAmbiguous), 5,
			map[string]float64{"Ambiguous": 5}},
		"a little, and a failure": {time.Hour, errors.New("too many samples"), 5, map[string]float64{"Partly": 5}},
		"enough, and a failure": {3 * 24 * time.Hour, errors.New("too many samples"), 1,
			map[string]float64{"Partly": 1}},
		"a server that is new":       {time.Hour, nil, 1, map[string]float64{"Filled": 1}},
		"a server that has nothing":  {0, nil, 1, map[string]float64{"Empty": 1}},
		"a server that has it all":   {Span, nil, 1, map[string]float64{"Filled": 1}},
		"a server with two days":     {2 * 24 * time.Hour, nil, 1, map[string]float64{"Filled": 1}},
		"a span of less than a hour": {30 * time.Minute, nil, 1, map[string]float64{"Filled": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "pm")
				w.load("pm").stored, w.load("pm").fails = c.stored, c.fails
				stop := w.lead()
				time.Sleep(7 * 24 * time.Hour)
				stop()
				require.Len(t, w.reads, c.reads)
				for result, n := range c.results {
					assert.InDelta(t, n, w.count(result), 0, result)
				}
				for i := range w.reads[1:] {
					wait := w.reads[i+1].at - w.reads[i].at
					assert.InDelta(t, firstRetry<<i, wait, float64(planPeriod+11*time.Second), "after attempt %d", i+1)
				}
				assert.Equal(t, c.stored, w.load("pm").known)
			})
		})
	}
}

// TestLossOfLeadership: what is being read is given up, and the next elected one starts again, but
// for what is known by then.
func TestLossOfLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c", "d", "e")
		stop := w.lead()
		time.Sleep(planPeriod + time.Second)
		require.Len(t, w.names(), atOnce)
		lost := time.Now()
		stop()
		assert.Less(t, time.Since(lost), time.Second)
		require.Zero(t, w.atOnce)
		require.Zero(t, w.known("a"))
		assert.InDelta(t, 0, w.count("Failed")+w.count("Filled"), 0)
		w.mu.Lock()
		w.loads[types.NamespacedName{Namespace: "shop", Name: "a"}].known = Span // by the checkpoint of another
		w.mu.Unlock()
		stop = w.lead()
		time.Sleep(time.Minute)
		stop()
		assert.Equal(t, []string{"b", "c", "d", "e"}, slices.Sorted(slices.Values(w.names()[atOnce:])))
		assert.InDelta(t, 4, w.count("Filled"), 0)
	})
}

// TestLoadsThatChange: the history of a load that is another one by now is left out, and that of the new one is read.
func TestLoadsThatChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "pm", "gone")
		stop := w.lead()
		time.Sleep(planPeriod + time.Second)
		w.mu.Lock()
		w.loads[types.NamespacedName{Namespace: "shop", Name: "pm"}].Origin = "another target"
		delete(w.loads, types.NamespacedName{Namespace: "shop", Name: "gone"})
		w.mu.Unlock()
		time.Sleep(11 * time.Second)
		synctest.Wait()
		require.Zero(t, w.known("pm"))
		time.Sleep(time.Minute)
		stop()
		require.Equal(t, Span, w.known("pm"))
		assert.InDelta(t, 2, w.count("Failed"), 0)
		assert.InDelta(t, 1, w.count("Filled"), 0)
		assert.Equal(t, []string{"gone", "pm", "pm"}, slices.Sorted(slices.Values(w.names())))
	})
}

// TestForgottenLoadsAreReadAgain: a load whose checkpoint was deleted is learned again, from its history too.
func TestForgottenLoadsAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "pm")
		stop := w.lead()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, Span, w.known("pm"))
		w.mu.Lock()
		w.loads[types.NamespacedName{Namespace: "shop", Name: "pm"}].known = 0
		w.mu.Unlock()
		time.Sleep(time.Minute)
		stop()
		require.Equal(t, Span, w.known("pm"))
	})
}

func TestSourcesWithHistories(t *testing.T) {
	w := newWorld(t)
	set := source.Set{"prometheus": struct {
		source.Source
		source.Historian
	}{nil, w}, "pods": struct{ source.Source }{}}
	got := SourcesOf(set)
	require.Len(t, got, 1)
	require.NotNil(t, got["prometheus"])
}
