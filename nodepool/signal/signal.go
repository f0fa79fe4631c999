// Package signal turns what is measured of a pool into forecasts: one pipeline for each signal, with the pods that no node
// takes as external demand.
//
// There are three kinds of signals. What pods request of their nodes is counted at each observation, exactly. What
// Prometheus tells of each node is asked for over the time since the last answer. What it tells of the pool as a whole is
// either shared by the workers or not. All of them become a [plan.Signal] with the number of nodes that it wants.
//
// A forecast is made from the samples of a window, which are kept here and nowhere else. Those of Prometheus are asked for
// again after a restart; requests are not told by anybody afterwards, so a new process knows nothing of them until it has
// seen them for three sample intervals.
package signal

import (
	"time"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
)

// Observation is what signals are told at each tick.
type Observation struct {
	Now         time.Time
	Workers     []cluster.Node    // of the pool, that have joined and are not leaving
	Leaving     []cluster.Node    // of the pool, that have joined and are leaving: what they still carry will be on others soon
	Expected    int               // workers that count, those on their way included: N_target
	Replacing   int               // how many there were when the replacement of outdated ones began; 0 = it has not
	Demand      scheduling.Result // of the pods that no node takes, however short
	StartupTime time.Duration     // T_I as measured; 0 = not yet
}
