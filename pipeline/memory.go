package pipeline

import (
	"github.com/foresail/foresail/pipeline/align"
	"github.com/foresail/foresail/pipeline/impute"
	"github.com/foresail/foresail/pipeline/redistribute"
	"github.com/foresail/foresail/pipeline/series"
)

// Memory is what runs work in: some kilobytes to megabytes by the size of window and fleet. Many pipelines may share
// one, as long as one run uses it at a time. The zero value is ready.
type Memory struct {
	window   series.Window
	aligner  align.Aligner
	imputer  impute.Imputer
	weighted redistribute.Weighted
	total    redistribute.Total
	loads    series.Loads // of the last run that got so far

	whole   [1]Instance // stands for all, if the load is measured as a whole
	missed  []float64
	scratch []float64 // by tick

	traced     *Trace // of the run under way, nil without one
	tracedMost int
}

// Missed returns the errors of the last run's forecasts of one tick ahead, load less forecast, in order of time. It is
// empty with Adaptive and if the run failed early, and changed by the next run.
func (m *Memory) Missed() []float64 { return m.missed }

// Loads returns the loads of the last run, tick by tick. They are empty if it failed early, and changed by the next
// run.
func (m *Memory) Loads() *series.Loads { return &m.loads }

// forget releases what belongs to the caller.
func (m *Memory) forget() {
	m.window.Forget()
	m.whole = [1]Instance{}
}

// memory keeps Memory from being a part of what a Pipeline exports.
type memory = Memory
