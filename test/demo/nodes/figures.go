package main

import "github.com/foresail/foresail/test/env/foresail"

// figures are the numbers of now, which the status of a pool is behind of. The zero value is none.
type figures struct {
	known           bool
	load, predicted float64
	desired         int
}

func figuresOf(families foresail.Families) figures {
	load, ok := families.Gauge("foresail_nodepool_signal_load", "pool", poolName, "signal", "requests")
	predicted, also := families.Gauge("foresail_nodepool_signal_predicted_load", "pool", poolName, "signal", "requests")
	desired, _ := families.Gauge("foresail_nodepool_desired_workers", "pool", poolName, "signal", "")
	return figures{known: ok && also, load: load, predicted: predicted, desired: int(desired)}
}
