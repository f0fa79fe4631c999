package pipeline

import "math"

const (
	// fallen is the share of a crest that a load must have come down by.
	fallen = 0.3
	// crestTicks are averaged, so that a crest is no single tick.
	crestTicks = 5
)

// crest is the highest load that the loads of the window have come down from, by a large share of it and by more than noise.
// It is infinite where they have not. Clipped loads were more than they show. The standard deviation of a load of x is taken
// to be sigma·√x.
func crest(loads []load, sigma float64) float64 {
	highest := 0.0
	top, bottom, falling := 0.0, 0.0, false
	for ; len(loads) >= crestTicks; loads = loads[crestTicks:] {
		mean := 0.0
		for _, x := range loads[:crestTicks] {
			if x.clipped {
				x.effective *= 1 + hiddenGrowth
			}
			mean += x.effective / crestTicks
		}
		swing := max(fallen*top, 4*sigma*math.Sqrt(max(top, mean)/crestTicks))
		switch {
		case !falling && mean >= top:
			top = mean
		case !falling && mean < top-swing:
			falling, bottom = true, mean
			highest = max(highest, top)
		case falling && mean <= bottom:
			bottom = mean
		case falling && mean > bottom+swing:
			falling, top = false, mean
		}
	}
	if highest == 0 {
		return math.Inf(1)
	}
	return highest
}
