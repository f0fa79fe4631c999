// Package predict is stage four of the pipeline (paper, section 7): it carries the loads of the window, one for each
// tick and oldest first, on to the time for which instances are needed. Loads are in units of the aggregate, trends in
// those units per tick, and times ahead are numbers of ticks, from the newest one.
//
// The stage exists twice: [Holt] is the paper's, [Adaptive] a line through the newest loads. [Reach] is how far either
// looks ahead and back.
package predict

// Projection is the load of the newest tick and how it goes on from there.
type Projection struct {
	Level, Slope float64 // the load at the newest tick, and its change per tick
	LevelError   float64 // the standard error of Level, where the method knows it
	Noise        float64 // the standard deviation of loads around the line
	Lasts        float64 // number of ticks for which the trend goes on
	Hidden       float64 // number of ticks for which it has gone on unseen, since the level could last be read
	Shown        float64 // the load that a clipped fleet reads
	Least, Most  float64 // bounds of the load at the horizon; Most holds while Level is below it
}

// Growth returns how far the load rises or falls from Level in a number of ticks.
func (o *Projection) Growth(ticks float64) float64 {
	return o.Slope * min(o.Hidden+ticks, o.Lasts)
}

// Present returns the load now: of a clipped fleet no less than it shows.
func (o *Projection) Present() float64 {
	if o.Hidden == 0 {
		return o.Level
	}
	return min(max(o.Level+o.Growth(0), o.Shown), max(o.Most, o.Shown))
}

// Total returns the load in a number of ticks.
func (o *Projection) Total(ticks float64) float64 {
	total := max(0, o.Level+o.Growth(ticks), o.Least)
	if o.Level < o.Most {
		return min(total, o.Most)
	}
	return total
}
