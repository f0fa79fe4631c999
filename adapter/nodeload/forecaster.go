package nodeload

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/adapter/source"
)

// Forecaster keeps forecasts of what each node uses. NodeLoads, Ready and its metrics may be read at any time, by any number.
type Forecaster struct {
	options   Options
	telemetry *telemetry
	table     *table
	published atomic.Pointer[snapshot.NodeLoads]
	started   atomic.Pointer[time.Time]
	read      atomic.Bool // something has been read since the start
	told      string      // what was logged of the last failure
}

// errNotRead is what the source's trouble is before its first answer.
var errNotRead = errors.New("what nodes use has not been read yet")

// New returns a Forecaster that knows nothing yet, or an error that names every option that is wrong.
func New(o Options) (*Forecaster, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	f := &Forecaster{options: o}
	f.published.Store(&snapshot.NodeLoads{Trouble: errNotRead})
	f.telemetry = newTelemetry(o.Registry, f)
	var err error
	if f.table, err = newTable(&o, f.telemetry.refuse); err != nil {
		return nil, err
	}
	return f, nil
}

// NodeLoads returns what is known of all nodes, never nil. It does not block, and nobody changes what it returns.
func (f *Forecaster) NodeLoads() *snapshot.NodeLoads { return f.published.Load() }

// retryFirst is how soon a read is tried again after its first failure.
const retryFirst = time.Second

// Run reads at once and then once an interval, sooner after failures, until ctx ends. It can be called once.
func (f *Forecaster) Run(ctx context.Context) error {
	began := f.options.Now()
	f.started.Store(&began)
	failures := 0
	for ctx.Err() == nil {
		whole := f.round(ctx)
		wait := f.untilNext()
		if failures++; whole {
			failures = 0
		} else {
			wait = min(wait, source.Backoff(failures, retryFirst, f.options.Interval))
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return nil
}

// untilNext returns how long it is to the next read. Reads are an interval apart on the clock, so that replicas know the same.
func (f *Forecaster) untilNext() time.Duration {
	return source.UntilNext(time.Duration(f.options.Now().UnixNano()), source.Phase(f.options.Interval, "nodes"), f.options.Interval)
}

// round reads once and publishes what comes of it. It tells whether all could be read.
func (f *Forecaster) round(ctx context.Context) (whole bool) {
	began := f.options.Now()
	readings, err := f.options.Source.Read(ctx, began)
	if ctx.Err() != nil {
		return false // nobody asks any more
	}
	now := f.options.Now()
	f.telemetry.ended(now.Sub(began), len(readings), err)
	f.log(err)
	if err == nil || len(readings) > 0 {
		f.read.Store(true)
	}
	f.table.update(now, readings, f.options.Nodes())
	loads := f.table.loads()
	f.telemetry.computed(f.options.Now().Sub(now))
	f.published.Store(&snapshot.NodeLoads{At: now, Nodes: loads, Trouble: err})
	return err == nil
}

// log tells when reading begins to fail, fails otherwise, and ceases to.
func (f *Forecaster) log(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == f.told {
		return
	}
	f.told = text
	if err == nil {
		f.options.Log.Info("The use of nodes can be read again.")
		return
	}
	f.options.Log.Warn("The use of nodes cannot be read.", "err", err)
}

const (
	// settleLimit is how long a start waits for the first read.
	settleLimit = time.Minute
	// stallLimit is for how many intervals nothing may have been published unnoticed.
	stallLimit = 10
)

// Ready tells why there is nothing to go by, nil if there is. At its start a Forecaster waits until something has been read, or
// a minute. From then on a source that fails does not count, and NodeLoads tells of it: who has no forecasts can go by requests.
func (f *Forecaster) Ready() error {
	started, loads, now := f.started.Load(), f.NodeLoads(), f.options.Now()
	if started == nil {
		return errors.New("forecasts of nodes have not been started")
	}
	if !f.read.Load() && now.Sub(*started) <= settleLimit {
		return loads.Trouble
	}
	latest := loads.At
	if latest.Before(*started) {
		latest = *started
	}
	if idle := now.Sub(latest); idle > stallLimit*f.options.Interval {
		return fmt.Errorf("the use of nodes has not been looked at for %s", idle.Round(time.Second))
	}
	return nil
}
