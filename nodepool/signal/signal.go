// Package signal forecasts the load of a pool: one pipeline for each signal, with unschedulable pods as external
// demand.
//
// There are three kinds of signals. Requests of pods are counted in each observation, exactly. Values of each node are
// queried from Prometheus for the time since the last answer. A value of the whole pool is either shared by the workers
// or a level. Each becomes a [plan.Signal] with the number of nodes that it recommends.
//
// Loads of Prometheus are learned as those of pods are, by [pipeline.Past], without a margin.
//
// A forecast uses the samples of a window, which only this package keeps. After a restart Prometheus is queried for the
// whole window; past requests are not available anywhere, so this signal is unknown for three sample intervals.
package signal

import (
	"time"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
)

// Observation is the input of all signals in one tick.
type Observation struct {
	Now                  time.Time
	Workers              []cluster.Node    // of the pool that have joined and are not leaving
	Leaving              []cluster.Node    // of the pool that are leaving: their load moves to other nodes
	Expected             int               // workers that count, with those that are joining: N_target
	WorkersBeforeRollout int               // workers when the replacement of outdated ones began; 0 = none is replaced
	Demand               scheduling.Result // of the unschedulable pods
	StartupTime          time.Duration     // T_I as measured; 0 = not measured yet
}
