package learn

import (
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/line"
	"github.com/foresail/foresail/pipeline/series"
)

// A load at a time is described by numbers whose weights are learned. Those of shape are the same for each horizon.
const (
	minuteMean, twoMinutesMean = 2, 3 // the numbers of two of them

	shapes = 14
	// The first of the features that follow the shape.
	lineAt   = shapes
	levelsAt = lineAt + 2
	recursAt = levelsAt + len(levelWidths) // the change of the load an hour, a day and a week before
	features = recursAt + len(recurs)

	describedSeconds = 1200 // how far back they look
	lineSeconds      = 180  // and how far the line does

	// spike is the factor of the load of describedSeconds above which a load may be a spike that ends.
	spike = 1.5
	// mostOften caps the factor by which the load may grow or shrink because it did so an hour, a day or a week before.
	mostOften = 4
)

// description describes a load at a time.
type description struct {
	at    int64           // ms
	base  float64         // the mean of half a minute, from which all others differ
	scale float64         // the root of the load of five minutes: counts vary by that
	shape [shapes]float64 // in units of scale
	line  line.Line       // by steps
	step  float64         // s
	// levels are the means of as many of the newest steps as are level: over minutes while the load is, over seconds
	// once it has changed.
	levels [len(levelWidths)]float64
}

// levelWidths are the half-widths, in standard errors, within which steps count as one level: a strict and a lenient
// one.
var levelWidths = [...]float64{1.5, 2.5}

// describe describes the loads of steps, the last of which ends at a time (ms). It returns false if too little is
// known.
func (d *description) describe(means []float64, at int64, step float64) bool {
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
	if newest := means[max(0, n-max(line.Lately, ofLine)):]; known < len(newest) {
		sigma = noiseOf(newest) // the line goes through too few to show it
	}
	for i, width := range levelWidths {
		d.levels[i] = line.LevelOf(means, width*sigma)
	}
	return true
}

// maxFitted is the number of the shortest steps that a line goes through.
const maxFitted = lineSeconds * 1000 / int(leastStep/time.Millisecond)

// noiseOf is line.Noise of steps, of which some may not be known.
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

// fit fits the line to the steps since the last unknown one. It returns their line.Noise and number.
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

// straight returns the load in some seconds if it follows the line for as long as that is trusted.
func (d *description) straight(seconds float64) float64 {
	steps := min(seconds/d.step, line.CarriedOn*float64(d.line.Ticks))
	return max(0, d.line.Level+d.line.Slope*d.line.Trust()*steps)
}

// features returns all numbers, for a horizon in seconds.
func (d *description) features(seconds float64, s *season) (x [features]float64) {
	copy(x[:], d.shape[:])
	x[lineAt] = (d.line.Level - d.base) / d.scale
	x[lineAt+1] = (d.straight(seconds) - d.line.Level) / d.scale
	for i, level := range d.levels {
		x[levelsAt+i] = (level - d.base) / d.scale
	}
	for i, period := range recurs {
		if ratio := s.ratio(d.at, int64(seconds*1000), period); ratio > 0 { // it is known
			x[recursAt+i] = (min(max(ratio, 1./mostOften), mostOften) - 1) * d.base / d.scale
		}
	}
	return x
}

// slopeOf returns the slope per step of the line of least squares through the n newest steps.
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
