package pipeline

import "time"

// Input holds what a forecast is computed from, along with the parameters. A run neither changes nor keeps it.
type Input struct {
	Now       int64 // ms
	Instances []Instance

	// Since shortens the window: ticks before it are ignored (ms; 0 = the whole window). Set it if the samples from
	// before are only a part of the load, as after a start.
	Since int64

	// Total is the load of all instances together, with [Params].Whole. Instances then have no samples: they are only
	// counted.
	Total []Sample

	// Demand is load that no instance carries yet, in aggregate units. Before its first sample it adds nothing,
	// after its last the value is held.
	Demand []Sample

	Target      int           // N_target, the requested count; 0 = the instances active at the newest tick
	TargetRose  int64         // when Target last rose (ms), or Never
	StartupTime time.Duration // T_I as measured; 0 = Params.StartupTime

	// Bounds replace those of Params, as in a window of a schedule. The actuator does not have them, so that they also
	// bound Forecast.Serve; nil: those of Params hold, which it has.
	Bounds *Bounds

	// Past is the history of the load; nil if none is known. Only the adaptive method reads it.
	Past *Past

	// NodeStartupTime asks for a second, farther forecast: of the time at which an instance is ready that has to wait
	// for a node which is ordered now. 0 = none.
	NodeStartupTime time.Duration
}

// Bounds replace the values of Params for one run.
type Bounds struct {
	Min, Max int
	Lateness float64

	FartherMin, FartherMax int // of the farther forecast
}
