// Package signal turns what is measured of a pool into forecasts: one pipeline for each signal, with the pods that no node
// takes as external demand.
package signal

import (
	"time"

	"github.com/foresail/foresail/nodepool/packing"
	"github.com/foresail/foresail/nodepool/world"
)

// Observation is what signals are told at each tick.
type Observation struct {
	Now         time.Time
	Workers     []world.Node   // of the pool, that have joined and are not leaving
	Expected    int            // workers that count, those on their way included: N_target
	Demand      packing.Result // of the pods that no node takes, however short
	InitTimeout time.Duration  // T_I as measured; 0 = not yet
}
