package learn

import (
	"math"
)

const (
	// maxMinutes is the number of minutes of history that are used.
	maxMinutes = int((week + beyond) / minute)
	// historyStep is the resolution at which jumps are placed within a minute (ms); longestStep is the longest
	// step for which jumps are detected (ms).
	historyStep, longestStep = 5_000, 15_000
	// largestMean is the largest valid mean: heights of jumps are stored with single precision.
	largestMean = math.MaxFloat32 / 2
)

// Minute is the mean of a load over a minute; NaN if it is not known. A clipped mean is a lower bound.
type Minute struct {
	Mean    float64
	Clipped bool
}

// known reports whether the mean is valid.
func (m Minute) known() bool { return 0 <= m.Mean && m.Mean <= largestMean }

// spreadMinute distributes the load of a minute over steps.
func spreadMinute(minutes []Minute, i int, steps []float64) {
	mean := minutes[i].Mean
	if !minutes[i].known() {
		mean = math.NaN()
	}
	for k := range steps {
		steps[k] = mean
	}
	if i == 0 || i+1 == len(minutes) || !minutes[i-1].known() || !minutes[i+1].known() {
		return
	}
	before, after := minutes[i-1].Mean, minutes[i+1].Mean
	if !(before <= mean && mean < after) {
		return
	}
	high := 1 + (mean-before)/(after-before)*float64(len(steps)) // number of steps with the load after the jump
	for k := len(steps) - 1; k >= 0; k-- {
		steps[k] = before + (after-before)*min(1, max(0, high))
		high--
	}
}
