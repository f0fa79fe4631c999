// Package history fills what is learned of new loads from what their sources have stored:
// Prometheus has weeks of a load that Foresail has never seen. The elected replica reads it, some
// loads at a time, and the others adopt the checkpoints that it writes. A load whose history cannot
// be read is learned as it comes.
package history

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/hourly"
	"github.com/foresail/foresail/internal/share"
	"github.com/foresail/foresail/pipeline"
)

// Span is how far back histories are read: what a load did a week before is known, and how it went on.
const Span = 8 * 24 * time.Hour

const (
	// enough is the known time from which the history of a load is not read.
	enough = 24 * time.Hour
	// planPeriod is how often it is found out which loads there are to read.
	planPeriod = 5 * time.Second
	// atOnce is how many are read at once. Namespaces share them: some take hours, or for ever
	// while their server is busy.
	atOnce = 4
	// maxAttempts is how often the history of a load is tried, the second time after firstRetry, and
	// each time twice as long after the last.
	maxAttempts = 5
	firstRetry  = 10 * time.Minute
)

// Forecasts is the forecaster's access to learned loads.
type Forecasts interface {
	LittleKnown(least time.Duration) []forecaster.Load
	Fill(l *forecaster.Load, begin int64, minutes []pipeline.Minute) (known time.Duration, ok bool)
}

// Options configure a Reader. All are required.
type Options struct {
	Forecasts  Forecasts
	Sources    map[string]source.Historian // by the names of sources
	Span       time.Duration               // how far back to read
	Now        func() time.Time
	Registerer prometheus.Registerer
}

// Reader reads the histories of loads.
type Reader struct {
	Options
	telemetry *telemetry
	failures  hourly.Log // those that are the same for many loads are logged once

	lead  chan struct{} // full while this replica leads
	slots *share.Pool   // atOnce

	mu    sync.Mutex
	loads map[types.NamespacedName]*attempts
}

// attempts are those of a load.
type attempts struct {
	origin  string
	made    int
	next    time.Time
	reading bool // or waiting for a slot
}

// New returns a Reader that does nothing until Lead.
func New(o Options) *Reader {
	return &Reader{
		Options: o, telemetry: newTelemetry(o.Registerer), lead: make(chan struct{}, 1),
		slots: share.NewPool(atOnce, 0),
		loads: map[types.NamespacedName]*attempts{},
	}
}

// SourcesOf returns those of some sources that have histories.
func SourcesOf(set source.Set) map[string]source.Historian {
	out := map[string]source.Historian{}
	for name, s := range set {
		if h, ok := s.(source.Historian); ok {
			out[name] = h
		}
	}
	return out
}

// Lead reads histories until the context ends. The elected replica alone runs it. What is being
// read then is lost, and the next one starts again.
func (r *Reader) Lead(ctx context.Context) error {
	r.lead <- struct{}{}
	defer func() { <-r.lead }()
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("history"))
	r.loads = map[types.NamespacedName]*attempts{}
	defer r.telemetry.waiting.Set(0)
	var reading sync.WaitGroup
	defer reading.Wait()
	ticker := time.NewTicker(planPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			for _, l := range r.due() {
				reading.Go(func() { r.read(ctx, &l) })
			}
		}
	}
}

// due returns the loads to begin with, which are being read or wait for a slot from then on.
func (r *Reader) due() (due []forecaster.Load) {
	known := r.Forecasts.LittleKnown(enough)
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	begun := map[string]int{} // by namespace
	for key, a := range r.loads {
		if a.reading {
			begun[key.Namespace]++
		}
	}
	present := make(map[types.NamespacedName]bool, len(known))
	waiting := 0
	for i := range known {
		l := &known[i]
		if r.Sources[l.Source] == nil {
			continue
		}
		present[l.Key] = true
		a := r.attemptsOf(l, now)
		if a.made < maxAttempts {
			waiting++
		}
		if a.made < maxAttempts && !a.reading && !now.Before(a.next) && begun[l.Key.Namespace] < atOnce {
			a.reading = true
			begun[l.Key.Namespace]++
			due = append(due, *l)
		}
	}
	maps.DeleteFunc(r.loads, func(key types.NamespacedName, a *attempts) bool { return !present[key] && !a.reading })
	r.telemetry.waiting.Set(float64(waiting))
	return due
}

// attemptsOf returns the attempts of a load, which start again for another load of the same PredictedMetric.
func (r *Reader) attemptsOf(l *forecaster.Load, now time.Time) *attempts {
	a := r.loads[l.Key]
	if a == nil || a.origin != l.Origin && !a.reading {
		a = &attempts{origin: l.Origin, next: now}
		r.loads[l.Key] = a
	}
	return a
}

// read reads the history of a load once its namespace has a slot, and fills what is known of it.
func (r *Reader) read(ctx context.Context, l *forecaster.Load) {
	turn, giveUp := context.WithCancel(ctx)
	defer giveUp()
	slot := r.slots.Lease(l.Key.Namespace, giveUp)
	defer slot.End()
	if slot.Take(turn, 1) != nil {
		r.putBack(l)
		return
	}
	began := r.Now()
	h, err := r.Sources[l.Source].History(turn, l.Key, &l.Params, r.Span)
	if turn.Err() != nil {
		r.putBack(l)
		return
	}
	log := klog.FromContext(ctx).WithValues("predictedmetric", l.Key)
	of := h.Known()
	known, filled := time.Duration(0), false
	if of > 0 {
		if known, filled = r.Forecasts.Fill(l, h.Begin, h.Minutes); !filled {
			err = errors.New("the PredictedMetric has changed since")
		}
	}
	if filled {
		log.Info("Read the history of a load", "days", days(of), "points", h.Points, "queries", h.Queries, "seconds",
			r.Now().Sub(began).Round(100*time.Millisecond).Seconds())
	}
	r.telemetry.read(filled, of, err)
	next, again := r.attempted(l, err == nil || known >= enough)
	if err == nil || !r.failures.Due(string(resultOf(filled, err))+" "+l.Key.Namespace, r.Now()) {
		return
	}
	if again {
		log.Info("Cannot read all of the history of a load: it is learned as it comes; trying again", "reason",
			err.Error(),
			"known", days(of), "in", next)
	} else {
		log.Info("Cannot read all of the history of a load: it is learned as it comes", "reason",
			err.Error(), "known", days(of))
	}
}

// days are rounded to an hour or so.
func days(d time.Duration) float64 { return float64(d.Round(time.Hour/4)/(time.Hour/4)) / 96 }

// attempted takes note of an attempt, and returns whether there is to be another one, and in how
// long. There is none after one that read all there is.
func (r *Reader) attempted(l *forecaster.Load, done bool) (in time.Duration, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.loads[l.Key]
	in = firstRetry << a.made
	a.reading, a.next = false, r.Now().Add(in)
	if a.made++; done {
		a.made = maxAttempts
	}
	return in, a.made < maxAttempts
}

// putBack has a load wait again whose history was not read because the slot was needed, or another
// replica leads.
func (r *Reader) putBack(l *forecaster.Load) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loads[l.Key].reading = false
}

// result names the outcome of an attempt.
type result string

const (
	resultFilled    result = "Filled"
	resultPartly    result = "Partly"    // filled with a part of it: the rest could not be read
	resultEmpty     result = "Empty"     // nothing is stored
	resultAmbiguous result = "Ambiguous" // source.ErrAmbiguous
	resultFailed    result = "Failed"
)

func resultOf(filled bool, err error) result {
	switch {
	case filled && err == nil:
		return resultFilled
	case filled:
		return resultPartly
	case errors.Is(err, source.ErrAmbiguous):
		return resultAmbiguous
	case err != nil:
		return resultFailed
	}
	return resultEmpty
}
