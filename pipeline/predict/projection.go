// Package predict is stage four of the pipeline (paper, section 7): it extrapolates the loads of
// the window, one for each tick and oldest first, to the time for which instances are needed. Loads
// are in units of the aggregate, trends in those units per tick, and times ahead are numbers of
// ticks, from the newest one.
//
// The stage exists twice: [Holt] is the paper's method, [LineFit] fits a line to the newest loads. [Reach] holds the
// horizon and the window of both.
package predict

// Projection is the load of the newest tick and its extrapolation.
type Projection struct {
	Level, Slope float64 // the load at the newest tick, and its change per tick
	LevelError   float64 // the standard error of Level, if the method estimates it
	Noise        float64 // the standard deviation of loads around the line
	Lasts        float64 // number of ticks by which the trend is extended
	Hidden       float64 // number of ticks since the level could last be read, through which the trend has continued
	Shown        float64 // the visible load of a clipped fleet
	Min, Max     float64 // bounds of the load at the horizon; Max applies only if Level is below it
}

// Growth returns the change of the load from Level in a number of ticks.
func (p *Projection) Growth(ticks float64) float64 {
	return p.Slope * min(p.Hidden+ticks, p.Lasts)
}

// Present returns the load now: of a clipped fleet at least its visible load.
func (p *Projection) Present() float64 {
	if p.Hidden == 0 {
		return p.Level
	}
	return min(max(p.Level+p.Growth(0), p.Shown), max(p.Max, p.Shown))
}

// Total returns the load in a number of ticks.
func (p *Projection) Total(ticks float64) float64 {
	total := max(0, p.Level+p.Growth(ticks), p.Min)
	if p.Level < p.Max {
		return min(total, p.Max)
	}
	return total
}
