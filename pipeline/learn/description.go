package learn

import (
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/line"
	"github.com/foresail/foresail/pipeline/series"
)

// The load at a time is described by features whose weights are learned. Those of shape are the same for each horizon.
const (
	minuteMean, twoMinutesMean = 2, 3 // indexes of two features of the shape

	shapes = 14
	// lineAt, levelsAt and recursAt are the indexes of the features that follow the shape.
	lineAt   = shapes
	levelsAt = lineAt + 2
	recursAt = levelsAt + len(levelWidths) // the change of the load an hour, a day and a week before
	features = recursAt + len(recurs)

	describedSeconds = 1200 // how far back the features look
	lineSeconds      = 180  // how far back the line looks

	// spike is the factor of the mean load over describedSeconds above which a load may be a spike that ends.
	spike = 1.5
	// maxRepeatFactor caps the factor by which the load may grow or shrink because it did so an hour, a day or
	// a week ago.
	maxRepeatFactor = 4
)

// description describes the load at a time by its features.
type description struct {
	at    int64           // ms
	base  float64         // the mean of half a minute, to which the features are relative
	scale float64         // the square root of the mean of five minutes: the noise of counts is proportional to that
	shape [shapes]float64 // in units of scale
	line  line.Line       // in steps
	step  float64         // s
	// levels are the means of as many of the newest steps as agree on one level: over minutes while the load is
	// level, over seconds once it has changed.
	levels [len(levelWidths)]float64
}

// levelWidths are the half-widths, in standard errors, within which steps agree on one level: a strict and a
// lenient one.
var levelWidths = [...]float64{1.5, 2.5}

// computeFeatures describes the loads of steps, the last of which ends at a time (ms). It returns false if too
// little is known.
func (d *description) computeFeatures(means []float64, at int64, step float64) bool {
	n := len(means)
	over := func(seconds float64) float64 { return meanOf(means, n, stepsOf(seconds, step)) }
	if n < stepsOf(60, step) || math.IsNaN(over(5)) {
		return false
	}
	quarter, all := over(15), over(describedSeconds)
	*d = description{at: at, base: over(30), scale: math.Sqrt(over(300)), step: step}
	k := 0
	add := func(v float64) {
		d.shape[k] = (v - d.base) / d.scale
		k++
	}
	for _, seconds := range [...]float64{5, 15, 60, 120, 300, 600} {
		add(over(seconds))
	}
	for _, seconds := range [...]float64{30, 60, 90, 180} {
		add(quarter + slopeOf(means, max(2, stepsOf(seconds, step)))/step*seconds/2)
	}
	for _, seconds := range [...]float64{15, 60, 120, 300} {
		add(d.base - max(0, over(seconds)-spike*all))
	}
	for _, v := range d.shape {
		if !series.Finite(v) {
			return false
		}
	}
	ofLine := stepsOf(lineSeconds, step)
	sigma, known := d.fit(means[max(0, n-ofLine):])
	if newest := means[max(0, n-max(line.RecentTicks, ofLine)):]; known < len(newest) {
		sigma = noiseOf(newest) // the line has too few steps to show the noise
	}
	for i, width := range levelWidths {
		d.levels[i] = line.LevelOf(means, width*sigma)
	}
	return true
}

// maxFitted is the maximum number of steps that a line goes through.
const maxFitted = lineSeconds * 1000 / int(minStep/time.Millisecond)

// noiseOf is line.Noise for steps that may be unknown.
func noiseOf(means []float64) float64 {
	var (
		memory  [maxFitted]series.Load
		scratch [maxFitted]float64
	)
	known := memory[:0]
	for _, v := range means {
		if !math.IsNaN(v) {
			known = append(known, series.Load{Effective: v})
		}
	}
	return line.Noise(known, 1, scratch[:])
}

// stepsOf returns the number of steps in some seconds, at least one.
func stepsOf(seconds, step float64) int { return max(1, int(math.Round(seconds/step))) }

// fit fits the line to the steps since the last unknown one. It returns their line.Noise and their number.
func (d *description) fit(means []float64) (sigma float64, known int) {
	var (
		memory  [maxFitted]series.Load
		scratch [maxFitted]float64
	)
	loads := memory[:0]
	for _, v := range means {
		if math.IsNaN(v) {
			loads = loads[:0]
			continue
		}
		loads = append(loads, series.Load{Effective: v})
	}
	sigma = line.Noise(loads, 1, scratch[:])
	d.line = line.FitWithin(loads, sigma)
	return sigma, len(loads)
}

// onLine returns the load in some seconds if it follows the line as long as the line is trusted.
func (d *description) onLine(seconds float64) float64 {
	steps := min(seconds/d.step, line.CarriedOn*float64(d.line.Ticks))
	return max(0, d.line.Level+d.line.Slope*d.line.Trust()*steps)
}

// features returns all features for a horizon in seconds.
func (d *description) features(seconds float64, s *season) (x [features]float64) {
	copy(x[:], d.shape[:])
	x[lineAt] = (d.line.Level - d.base) / d.scale
	x[lineAt+1] = (d.onLine(seconds) - d.line.Level) / d.scale
	for i, level := range d.levels {
		x[levelsAt+i] = (level - d.base) / d.scale
	}
	for i, period := range recurs {
		if ratio := s.ratio(d.at, int64(seconds*1000), period); ratio > 0 { // it is known
			x[recursAt+i] = (min(max(ratio, 1./maxRepeatFactor), maxRepeatFactor) - 1) * d.base / d.scale
		}
	}
	return x
}

// slopeOf returns the slope per step of the least-squares line through the newest n steps.
func slopeOf(means []float64, n int) float64 {
	n = min(n, len(means))
	middle, moment := float64(n-1)/2, 0.0
	level := meanOf(means, len(means), n)
	for i, v := range means[len(means)-n:] {
		if !math.IsNaN(v) {
			moment += (float64(i) - middle) * (v - level)
		}
	}
	m := float64(n)
	return moment / (m * (m*m - 1) / 12)
}
