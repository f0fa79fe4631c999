package pipeline

import "time"

// Input holds the data of one forecast. A run neither changes nor retains it.
type Input struct {
	Now       int64 // ms
	Instances []Instance

	// Since shortens the window: ticks before it are ignored (ms; 0 = the whole window). Set it if earlier
	// samples cover only a part of the load, as after a start.
	Since int64

	// Total is the load of all instances together, if [Params].Whole is set. Instances then have no samples:
	// they are only counted.
	Total []Sample

	// Demand is load that no instance carries yet, in aggregate units. It is 0 before the first sample and
	// constant after the last.
	Demand []Sample

	Target      int           // N_target, the requested count; 0 = the number of active instances at the newest tick
	TargetRose  int64         // when Target last rose (ms), or Never
	StartupTime time.Duration // T_I as measured; 0 = Params.StartupTime

	// Bounds replace those of Params, as in a window of a schedule. The autoscaler does not know them, so they
	// also limit Forecast.ServedLoad. If nil, the bounds of Params apply, which the autoscaler enforces itself.
	Bounds *Bounds

	// Learned is the history of the load; nil if there is none. Only the adaptive method reads it.
	Learned *Learned

	// NodeStartupTime requests Forecast.NodeForecast, for instances that wait this long for a node. 0 = none.
	NodeStartupTime time.Duration
}

// Bounds replace the values of Params for one run.
type Bounds struct {
	Min, Max int
	Lateness float64

	NodeMin, NodeMax int // of the NodeForecast
}
