package nodeusage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/nodequery"
)

// Forecaster keeps forecasts of the use of each node. NodeLoads, Ready and its metrics are safe for concurrent use.
type Forecaster struct {
	options   Options
	telemetry *telemetry
	table     *table
	published atomic.Pointer[snapshot.NodeLoads]
	started   atomic.Pointer[time.Time]
	read      atomic.Bool // something has been read since the start
	logged    string      // the last failure that was logged
}

// errNotRead is the error of the source before its first answer.
var errNotRead = errors.New("node use has not been read yet")

// New returns a Forecaster without data, or an error that names every wrong option.
func New(o Options) (*Forecaster, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	f := &Forecaster{options: o}
	f.published.Store(&snapshot.NodeLoads{SourceErr: errNotRead})
	f.telemetry = newTelemetry(o.Registry, f)
	var err error
	if f.table, err = newTable(&o, f.telemetry.reject); err != nil {
		return nil, err
	}
	return f, nil
}

// NodeLoads returns the newest forecasts, never nil. It does not block, and the result is immutable.
func (f *Forecaster) NodeLoads() *snapshot.NodeLoads { return f.published.Load() }

// retryFirst is how soon a read is tried again after its first failure.
const retryFirst = time.Second

// Run reads at once and then every interval, sooner after failures, until ctx ends. It can be called once.
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

// untilNext returns the time to the next read. Reads happen at the same times of the clock in all replicas.
func (f *Forecaster) untilNext() time.Duration {
	return source.UntilNext(time.Duration(f.options.Now().UnixNano()),
		source.Phase(f.options.Interval, "nodes"), f.options.Interval)
}

// round reads once and publishes the result. It reports whether the read was complete.
func (f *Forecaster) round(ctx context.Context) (whole bool) {
	began := f.options.Now()
	readings, err := f.options.Source.Read(ctx, began)
	if ctx.Err() != nil {
		return false // the process ends
	}
	now := f.options.Now()
	f.telemetry.ended(now.Sub(began), len(readings), err)
	f.log(ctx, err)
	if err == nil || len(readings) > 0 {
		f.read.Store(true)
	}
	f.table.update(now, readings, f.options.Nodes())
	loads := f.table.loads()
	f.published.Store(&snapshot.NodeLoads{At: now, Nodes: loads, SourceErr: err})
	return err == nil
}

// log records when reads begin to fail, when the error changes, and when they succeed again.
func (f *Forecaster) log(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == f.logged {
		return
	}
	f.logged = text
	if err == nil {
		klog.FromContext(ctx).Info("Node use can be read again")
		return
	}
	klog.FromContext(ctx).Error(err, "Node use cannot be read")
}

const (
	// settleLimit is how long a start waits for the first read.
	settleLimit = time.Minute
	// stallLimit is how many intervals may pass without a publication before Ready fails.
	stallLimit = 10
)

// Ready returns an error until the first read, for a minute at most. A source that fails later does
// not count, because the extender falls back to requests: NodeLoads has the error. A stalled loop
// counts.
func (f *Forecaster) Ready() error {
	started, loads, now := f.started.Load(), f.NodeLoads(), f.options.Now()
	if started == nil {
		return errors.New("forecasts of nodes have not been started")
	}
	if !f.read.Load() && now.Sub(*started) <= settleLimit {
		return loads.SourceErr
	}
	latest := loads.At
	if latest.Before(*started) {
		latest = *started
	}
	if idle := now.Sub(latest); idle > stallLimit*f.options.Interval {
		return fmt.Errorf("node use has not been read for %s", idle.Round(time.Second))
	}
	return nil
}

// Options of a Forecaster; only Source must be set.
type Options struct {
	Source Source
	// Nodes returns the present Nodes, or nil while they are unknown. Samples of other nodes are
	// dropped. It must not block. Without it nodes are dropped when they are not read any more.
	Nodes func() []nodequery.Node

	Interval time.Duration // of reads, and the step of forecasts; 0 = 15 s
	Window   time.Duration // how far forecasts look back; 0 = 15 min
	Horizon  time.Duration // how far they look ahead; 0 = 2 min
	// StaleAfter is the age of the newest sample from which a forecast is not used, and the longest
	// gap between samples that is bridged; 0 = 3 min. A node is forgotten at twice that age; until
	// then it differs from one that was never read.
	StaleAfter time.Duration

	Now      func() time.Time      // nil = time.Now
	Registry prometheus.Registerer // nil: no metrics
}

const (
	defaultInterval = 15 * time.Second
	defaultWindow   = 15 * time.Minute
)

func (o Options) withDefaults() Options {
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	o.Window = cmp.Or(o.Window, defaultWindow)
	o.Horizon = cmp.Or(o.Horizon, 2*time.Minute)
	o.StaleAfter = cmp.Or(o.StaleAfter, 3*time.Minute)
	if o.Nodes == nil {
		o.Nodes = func() []nodequery.Node { return nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// forgetAfter is the age of the newest sample at which a node is forgotten.
func (o *Options) forgetAfter() time.Duration { return 2 * o.StaleAfter }

// maxSteps bounds what is kept of a node, and how long a forecast takes.
const maxSteps = 1000

const maxHorizon = 24 * time.Hour

// validate returns all problems of o, which has its defaults.
func (o *Options) validate() error {
	var errs []error
	require := func(ok bool, field string, value any, accept string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %v: must be %s", field, value, accept))
		}
	}
	require(o.Source != nil, "Source", o.Source, "given")
	require(o.Interval >= time.Second && o.Interval%time.Millisecond == 0, "Interval", o.Interval,
		"a whole number of milliseconds, at least 1s")
	require(o.Window >= 10*o.Interval && o.Window <= maxSteps*o.Interval, "Window", o.Window,
		fmt.Sprintf("from 10 to %d intervals", maxSteps))
	require(o.Horizon >= 0 && o.Horizon <= maxHorizon, "Horizon", o.Horizon, fmt.Sprintf("from 0s to %s", maxHorizon))
	require(o.StaleAfter >= 2*o.Interval, "StaleAfter", o.StaleAfter, "at least two intervals")
	return errors.Join(errs...)
}
