package nodeload

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/foresail/foresail/internal/nodequery"
)

// Options of a Forecaster; only Source must be set.
type Options struct {
	Source Source
	// Nodes returns the Nodes there are, or nil while that is not known. What was read of others is forgotten. It must not
	// block. nil: it is never known, and a node goes when nothing is read of it any more.
	Nodes func() []nodequery.Node

	Interval time.Duration // how often it is read, and the step of forecasts; 0 = 15 s
	Window   time.Duration // how far forecasts look back; 0 = 15 min
	Horizon  time.Duration // how far they look ahead of the time at which they are made; 0 = 2 min
	// StaleAfter is the age of the newest sample at which nobody uses a forecast any more, and the longest gap between samples
	// that is bridged; 0 = 3 min. At twice that what is known of a node is forgotten: until then it can be told from one that
	// has never been read.
	StaleAfter time.Duration

	Now      func() time.Time      // nil = time.Now
	Registry prometheus.Registerer // nil: no metrics
	Log      *slog.Logger          // nil discards it
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
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// forgetAfter is the age of the newest sample at which what is known of a node is forgotten.
func (o *Options) forgetAfter() time.Duration { return 2 * o.StaleAfter }

// maxSteps bounds what is kept of a node, and how long a forecast takes.
const maxSteps = 1000

const maxHorizon = 24 * time.Hour

// validate reports all that is wrong with o, which has its defaults.
func (o *Options) validate() error {
	var errs []error
	require := func(ok bool, field string, value any, accept string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %v: must be %s", field, value, accept))
		}
	}
	require(o.Source != nil, "Source", o.Source, "given")
	require(o.Interval >= time.Second && o.Interval%time.Millisecond == 0, "Interval", o.Interval, "a whole number of milliseconds, at least 1s")
	require(o.Window >= 10*o.Interval && o.Window <= maxSteps*o.Interval, "Window", o.Window, fmt.Sprintf("from 10 to %d intervals", maxSteps))
	require(o.Horizon >= 0 && o.Horizon <= maxHorizon, "Horizon", o.Horizon, fmt.Sprintf("from 0s to %s", maxHorizon))
	require(o.StaleAfter >= 2*o.Interval, "StaleAfter", o.StaleAfter, "at least two intervals")
	return errors.Join(errs...)
}
