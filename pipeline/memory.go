package pipeline

import (
	"github.com/foresail/foresail/pipeline/align"
	"github.com/foresail/foresail/pipeline/impute"
	"github.com/foresail/foresail/pipeline/redistribute"
	"github.com/foresail/foresail/pipeline/series"
)

// Memory is the working memory of runs: kilobytes to megabytes, depending on window and fleet. Several
// pipelines may share one if only one run uses it at a time. The zero value is ready to use.
type Memory struct {
	window   series.Window
	aligner  align.Aligner
	imputer  impute.Imputer
	weighted redistribute.Weighted
	total    redistribute.Total
	loads    series.Loads // of the last run that reached stage three

	whole         [1]Instance // the single instance that represents a load that is measured as a whole
	oneTickErrors []float64
	scratch       []float64 // one entry per tick

	traced    *Trace // of the current run; nil if no trace was requested
	maxTraced int
}

// OneTickErrors returns the errors of one-tick-ahead forecasts in the last run (load minus forecast), in order
// of time. It is empty with Adaptive and if the run failed early. The next run overwrites it.
func (m *Memory) OneTickErrors() []float64 { return m.oneTickErrors }

// Loads returns the loads of the last run, tick by tick. It is empty if the run failed early. The next run
// overwrites it.
func (m *Memory) Loads() *series.Loads { return &m.loads }

// releaseInput drops references to memory of the caller.
func (m *Memory) releaseInput() {
	m.window.Release()
	m.whole = [1]Instance{}
}

// memory is an alias, so that embedding Memory does not export a field of Pipeline.
type memory = Memory
