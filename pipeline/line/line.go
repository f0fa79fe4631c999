// Package line fits a straight line to the newest loads, with the noise around it. Stage four and the learner use it.
// Loads are in units of the aggregate, slopes in those units per tick.
package line

import (
	"math"
	"slices"

	"github.com/foresail/foresail/pipeline/series"
)

const (
	// CarriedOn is how long a trend is extended, as a factor of the time for which it has lasted.
	CarriedOn = 1.25

	// agreement is the half-width, in standard errors, of the confidence intervals that must intersect for a
	// longer line.
	agreement = 2.5
	// significance is the number of standard errors of a slope that noise may explain.
	significance = 4

	minTicks, maxTicks = 3, 90 // limits of the length of a line, unless the horizon needs more
	maxReadings        = 12    // a line may go through this number of readings if that is more ticks than maxTicks

	// minNoise is the minimum standard deviation of a load, as a share of the largest load.
	minNoise = 0.01
	// RecentTicks is the number of newest ticks from which noise is also estimated separately, as it may have
	// increased.
	RecentTicks = 20
	// faint is the share of the largest load below which a load is not used to estimate noise.
	faint = 0.05
)

// distances are the numbers of ticks between loads from which noise is estimated, in addition to the spacing of
// readings.
var distances = [...]int{1, 5, 15}

// Line is a straight line through the newest loads: the load at the last of them and its change per tick, with their
// standard errors.
type Line struct {
	Level, Slope           float64
	LevelError, SlopeError float64
	Ticks                  int // number of ticks that the line goes through
}

// Trust returns the share of the slope that noise does not explain, from 0 to 1.
func (l Line) Trust() float64 {
	if l.SlopeError == 0 {
		return 1
	}
	explained := significance * l.SlopeError / l.Slope
	return max(0, 1-explained*explained)
}

// Fit returns the line through as many of the newest loads as agree on one. It tries more and more loads as
// long as the confidence intervals of all levels, and those of all slopes, intersect (intersection of
// confidence intervals: Goldenshluger and Nemirovski, 1997). scratch needs one number for each load.
func Fit(loads []series.Load, s Sampling, scratch []float64) Line {
	loads = s.Newest(loads)
	return FitWithin(loads, NoisePerTick(Noise(loads, s.Spacing, scratch), s.Spacing))
}

// Sampling limits the lines that are fitted: readings are Spacing ticks apart, and a line goes
// through at most Longest ticks.
type Sampling struct{ Spacing, Longest int }

// NewSampling returns a sampling whose lines are long enough to be extended by a number of ticks.
func NewSampling(spacing int, ahead float64) Sampling {
	needed := int(min(math.Ceil(ahead/CarriedOn), series.MaxTicks))
	return Sampling{spacing, max(maxTicks, maxReadings*spacing, needed)}
}

// Newest returns the newest loads, at most as many as a line may go through.
func (s Sampling) Newest(loads []series.Load) []series.Load {
	return loads[max(0, len(loads)-s.Longest):]
}

// NoisePerTick returns the noise to assume for each tick if ticks are interpolated between readings, because
// the ticks in between carry no information.
func NoisePerTick(sigma float64, spacing int) float64 { return sigma * math.Sqrt(float64(spacing)) }

// FitWithin is Fit for loads whose noise is known.
func FitWithin(loads []series.Load, sigma float64) Line {
	n := len(loads)
	if n < minTicks {
		return join(loads)
	}
	level, slope := unbounded(), unbounded()
	var best Line
	for m := minTicks; ; m = min(n, nextCount(m)) {
		l := Through(loads[n-m:], sigma)
		level = level.and(l.Level, agreement*l.LevelError)
		slope = slope.and(l.Slope, agreement*l.SlopeError)
		if level.empty() || slope.empty() {
			return best
		}
		best = l
		if m == n {
			return best
		}
	}
}

// nextCount returns the number of loads to try after n.
func nextCount(n int) int { return n + (n+2)/3 }

// join returns the line from the first load to the last, for loads that are too few to fit one.
func join(loads []series.Load) Line {
	switch n := len(loads); n {
	case 0:
		return Line{}
	case 1:
		return Line{Level: loads[0].Effective, Ticks: n}
	default:
		first, last := loads[0].Effective, loads[n-1].Effective
		return Line{Level: last, Slope: (last - first) / float64(n-1), Ticks: n}
	}
}

// Through returns the least-squares line through loads. The standard deviation of a load x is assumed to be
// sigma·√x.
func Through(loads []series.Load, sigma float64) Line {
	n := float64(len(loads))
	middle := (n - 1) / 2
	var sum, moment float64
	for i := range loads {
		sum += loads[i].Effective
		moment += (float64(i) - middle) * loads[i].Effective
	}
	mean := sum / n
	spread := n * (n*n - 1) / 12
	l := Line{Slope: moment / spread, Ticks: len(loads)}
	l.Level = mean + l.Slope*middle
	noise := sigma * math.Sqrt(max(mean, 0))
	l.SlopeError = noise / math.Sqrt(spread)
	l.LevelError = noise * math.Sqrt(1/n+middle*middle/spread)
	return l
}

// interval holds the numbers from low to high.
type interval struct{ low, high float64 }

// unbounded returns the interval of all numbers.
func unbounded() interval { return interval{math.Inf(-1), math.Inf(1)} }

func (i interval) empty() bool { return i.low > i.high }

// and returns the intersection with the interval around a value.
func (i interval) and(value, half float64) interval {
	return interval{max(i.low, value-half), min(i.high, value+half)}
}

// Noise estimates the standard deviation of a load of 1, assuming that the one of a load x is √x times as
// large, as it is for counts.
//
// The estimate is the median deviation of a load from the middle between its neighbors at some distance before
// and after, so that a few jumps do not matter. It is the largest of several distances: noise that lasts for
// several ticks does not show between adjacent ones, and neither does the noise of readings that are
// interpolated. scratch needs one number for each load.
func Noise(loads []series.Load, spacing int, scratch []float64) float64 {
	peak := 0.0
	for i := range loads {
		peak = max(peak, loads[i].Effective)
	}
	if peak <= 0 {
		return 0
	}
	floor := faint * peak
	sigma := minNoise * math.Sqrt(peak)
	sigma = noiseAtDistance(sigma, loads[max(0, len(loads)-RecentTicks):], 1, floor, scratch)
	for _, distance := range distances {
		sigma = noiseAtDistance(sigma, loads, distance, floor, scratch)
	}
	if !slices.Contains(distances[:], spacing) {
		sigma = noiseAtDistance(sigma, loads, spacing, floor, scratch)
	}
	return sigma
}

// noiseAtDistance returns the estimate of Noise from ticks at one distance, without loads below a floor. It
// returns sigma, the estimate so far, if that is larger or if the ticks are too few. To find a median above
// sigma, it collects only the values above it.
func noiseAtDistance(sigma float64, loads []series.Load, distance int, floor float64, scratch []float64) float64 {
	const normal = 1.4826 // ratio of the standard deviation of a normal variable to its median absolute value
	above, n := scratch[:0], 0
	for k := distance; k+distance < len(loads); k++ {
		middle := loads[k].Effective
		if middle < floor {
			continue
		}
		n++
		bend := loads[k-distance].Effective - 2*middle + loads[k+distance].Effective
		if off := normal * (math.Abs(bend) / math.Sqrt(6*middle)); off > sigma {
			above = append(above, off)
		}
	}
	median := n/2 - (n - len(above)) // its place among those above
	if n < 4*distance || median < 0 {
		return sigma
	}
	return Nth(above, median)
}

// Nth returns the value that would be at index n if the values were sorted. It reorders them (Hoare's selection
// with the median of three, which is fast for values that rise and fall).
func Nth(values []float64, n int) float64 {
	for {
		a, b, c := values[len(values)/4], values[len(values)/2], values[len(values)*3/4]
		middle := max(min(a, b), min(max(a, b), c))
		less, more := 0, len(values)-1
		for less <= more {
			for values[less] < middle {
				less++
			}
			for values[more] > middle {
				more--
			}
			if less <= more {
				values[less], values[more] = values[more], values[less]
				less, more = less+1, more-1
			}
		}
		switch {
		case n <= more:
			values = values[:more+1]
		case n >= less:
			values, n = values[less:], n-less
		default:
			return middle
		}
	}
}

// Deviation returns the standard deviation of the newest 60 loads around the line through them; 0 if they are
// too few.
func Deviation(loads []series.Load) float64 {
	loads = loads[max(0, len(loads)-60):]
	if len(loads) < 5 {
		return 0
	}
	l := Through(loads, 0)
	sum, n := 0.0, len(loads)
	for i := range loads {
		off := loads[i].Effective - (l.Level - l.Slope*float64(n-1-i))
		sum += off * off
	}
	return math.Sqrt(sum / float64(n-2))
}

// LevelOf returns the mean of as many of the newest means as agree on one level. It tries more and more of them
// as long as the intervals around all of their means intersect, like FitWithin. The interval around the mean x
// of n of them is x ± width·√(x/n). Unknown means are NaN.
func LevelOf(means []float64, width float64) float64 {
	common, level := unbounded(), math.NaN()
	sum, known, next := 0.0, 0, 1
	for i, v := range slices.Backward(means) {
		if !math.IsNaN(v) {
			sum += v
			known++
		}
		if n := len(means) - i; n < next && i > 0 || known == 0 {
			continue
		}
		next = nextCount(next)
		mean := sum / float64(known)
		common = common.and(mean, width*math.Sqrt(max(mean, 0)/float64(known)))
		if common.empty() {
			break
		}
		level = mean
	}
	return level
}
