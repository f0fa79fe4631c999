// Package line fits a straight line to the newest loads, with the noise around it. Stage four and the learner use it.
// Loads are in units of the aggregate, slopes in those units per tick.
package line

import (
	"math"
	"slices"

	"github.com/foresail/foresail/pipeline/series"
)

const (
	// CarriedOn is how long a trend is extended, as a factor of how long it has lasted.
	CarriedOn = 1.25

	// agreement is the half-width, in standard errors, of the intervals that lines through few and many ticks share.
	agreement = 2.5
	// significance is how many standard errors of a slope noise is taken to explain.
	significance = 4

	leastTicks, mostTicks = 3, 90 // that a line goes through, unless the horizon needs more
	mostReadings          = 12    // that it may go through where that is more

	// leastNoise is the least standard deviation of a load, as a share of the largest.
	leastNoise = 0.01
	// Lately is the number of newest ticks that noise is also estimated from alone, as it may have become more.
	Lately = 20
	// faint is the share of the largest load below which a load shows nothing of the noise.
	faint = 0.05
)

// distances are the numbers of ticks between loads that noise is estimated from, in addition to the spacing of
// readings.
var distances = [...]int{1, 5, 15}

// Line is a straight line through the newest loads: the load at the last of them and its change per tick, with their
// standard errors.
type Line struct {
	Level, Slope           float64
	LevelError, SlopeError float64
	Ticks                  int // how many it goes through
}

// Trust returns the share of the slope that noise does not explain, from 0 to 1.
func (l Line) Trust() float64 {
	if l.SlopeError == 0 {
		return 1
	}
	explained := significance * l.SlopeError / l.Slope
	return max(0, 1-explained*explained)
}

// Fit returns the line through as many of the newest loads as agree on one: lines through more and more of them are
// tried for as long as the intervals around all their levels, and around all their slopes, have a value in common (the
// rule of intersecting confidence intervals: Goldenshluger and Nemirovski, 1997). Scratch has room for a number for
// each load.
func Fit(loads []series.Load, s Sampling, scratch []float64) Line {
	loads = s.Newest(loads)
	return FitWithin(loads, OfTicks(Noise(loads, s.Spacing, scratch), s.Spacing))
}

// Sampling limits the lines that are fitted: readings are Spacing ticks apart, and a line goes
// through at most Longest ticks.
type Sampling struct{ Spacing, Longest int }

// NewSampling allows lines that are long enough to be carried on for a number of ticks.
func NewSampling(spacing int, ahead float64) Sampling {
	needed := int(min(math.Ceil(ahead/CarriedOn), series.MaxTicks))
	return Sampling{spacing, max(mostTicks, mostReadings*spacing, needed)}
}

// Newest returns the newest loads, as many as a line may go through.
func (s Sampling) Newest(loads []series.Load) []series.Load {
	return loads[max(0, len(loads)-s.Longest):]
}

// OfTicks returns the noise to assume for ticks that are interpolated between readings, as these hold no information of
// their own.
func OfTicks(sigma float64, spacing int) float64 { return sigma * math.Sqrt(float64(spacing)) }

// FitWithin is fit of no more than the newest, whose noise is known.
func FitWithin(loads []series.Load, sigma float64) Line {
	n := len(loads)
	if n < leastTicks {
		return join(loads)
	}
	level, slope := everything(), everything()
	var best Line
	for m := leastTicks; ; m = min(n, more(m)) {
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

// more returns the number of loads that is tried after n of them.
func more(n int) int { return n + (n+2)/3 }

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

// Through returns the line of least squares through loads. The standard deviation of a load of x is taken to be
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

// interval is the numbers from low to high.
type interval struct{ low, high float64 }

func everything() interval { return interval{math.Inf(-1), math.Inf(1)} }

func (i interval) empty() bool { return i.low > i.high }

// and returns what an interval has in common with the one around a value.
func (i interval) and(value, half float64) interval {
	return interval{max(i.low, value-half), min(i.high, value+half)}
}

// Noise estimates the standard deviation of a load of 1, where that of a load of x is √x times as large, as it is of
// counts. It is the median of how far loads are off the line between one some ticks before and one as many after, so
// that a few jumps do not count. The largest over several distances is taken: noise that lasts for some ticks does not
// show between neighbors, nor does that of readings with straight lines between them. Scratch has room for a number for
// each load.
func Noise(loads []series.Load, spacing int, scratch []float64) float64 {
	peak := 0.0
	for i := range loads {
		peak = max(peak, loads[i].Effective)
	}
	if peak <= 0 {
		return 0
	}
	floor := faint * peak
	sigma := leastNoise * math.Sqrt(peak)
	sigma = unevenness(sigma, loads[max(0, len(loads)-Lately):], 1, floor, scratch)
	for _, distance := range distances {
		sigma = unevenness(sigma, loads, distance, floor, scratch)
	}
	if !slices.Contains(distances[:], spacing) {
		sigma = unevenness(sigma, loads, spacing, floor, scratch)
	}
	return sigma
}

// unevenness is the estimate of Noise from ticks at one distance, with loads below a floor left out, or the estimate so
// far if that is more or the ticks are too few. Only values above that are needed to find a median above it.
func unevenness(sigma float64, loads []series.Load, distance int, floor float64, scratch []float64) float64 {
	const normal = 1.4826 // the standard deviation of a normal variable by the median of its size
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

// Nth returns the value that would be at index n if the values were in order. It leaves them in another order (Hoare's
// selection, by the middle one of three values, so that it is quick where they rise and fall).
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

// Deviation returns the standard deviation of the newest 60 loads around the line through them; 0 of few.
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

// LevelOf returns the mean of as many of the newest means as are level: more and more of them are tried for as long as
// the intervals around all of their means have a value in common, as FitWithin does with lines. The interval around the
// mean x of n of them is x ± width·√(x/n). Unknown ones are NaN.
func LevelOf(means []float64, width float64) float64 {
	common, level := everything(), math.NaN()
	sum, known, next := 0.0, 0, 1
	for i, v := range slices.Backward(means) {
		if !math.IsNaN(v) {
			sum += v
			known++
		}
		if n := len(means) - i; n < next && i > 0 || known == 0 {
			continue
		}
		next = more(next)
		mean := sum / float64(known)
		common = common.and(mean, width*math.Sqrt(max(mean, 0)/float64(known)))
		if common.empty() {
			break
		}
		level = mean
	}
	return level
}
