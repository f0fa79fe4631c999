package pipeline

import (
	"math"
	"slices"
)

const (
	// agreement is the half-width, in standard errors, of the intervals that lines through few and through many ticks share.
	agreement = 2.5
	// significance is how many standard errors of a slope noise is taken to explain.
	significance = 4

	leastTicks, mostTicks = 3, 90 // that a line goes through, unless the horizon needs more
	mostReadings          = 12    // that it may go through where that is more

	// leastNoise is the least standard deviation of a load, as a share of the largest.
	leastNoise = 0.01
	// lately is how many ticks noise is estimated from on their own as well, as it may have become more.
	lately = 20
	// faint is the share of the largest load below which a load shows nothing of the noise.
	faint = 0.05
)

// distances are how many ticks apart loads are, beside the spacing of readings, that noise is estimated from.
var distances = [...]int{1, 5, 15}

// line is a straight line through the newest loads: the load at the last of them, and its change per tick, with their
// standard errors.
type line struct {
	level, slope           float64
	levelError, slopeError float64
	ticks                  int // how many it goes through
}

// trust returns the share of the slope that noise does not explain, from 0 to 1.
func (l line) trust() float64 {
	if l.slopeError == 0 {
		return 1
	}
	explained := significance * l.slopeError / l.slope
	return max(0, 1-explained*explained)
}

// fit finds the line through as many of the newest loads as agree on one: lines through more and more of them are tried for
// as long as the intervals around all their levels, and around all their slopes, have a value in common (the rule of
// intersecting confidence intervals: Goldenshluger and Nemirovski, 1997).
func fit(loads []load, s sampling, scratch []float64) line {
	loads = s.newest(loads)
	return fitWithin(loads, ofTicks(relativeNoise(loads, s.spacing, scratch), s.spacing))
}

// sampling limits the lines that are fitted: readings are spacing ticks apart, and a line goes through at most longest ticks.
type sampling struct{ spacing, longest int }

// newSampling allows lines that are long enough to be carried on for some ticks.
func newSampling(spacing int, ahead float64) sampling {
	needed := int(min(math.Ceil(ahead/carriedOn), maxTicks))
	return sampling{spacing, max(mostTicks, mostReadings*spacing, needed)}
}

// newest returns the newest loads, as many as a line may go through.
func (s sampling) newest(loads []load) []load { return loads[max(0, len(loads)-s.longest):] }

// ofTicks returns the noise to assume for ticks that are interpolated between readings, as these hold no information of their
// own.
func ofTicks(sigma float64, spacing int) float64 { return sigma * math.Sqrt(float64(spacing)) }

// fitWithin is fit of no more than the newest, whose noise is known.
func fitWithin(loads []load, sigma float64) line {
	n := len(loads)
	if n < leastTicks {
		return join(loads)
	}
	level, slope := everything(), everything()
	var best line
	for m := leastTicks; ; m = min(n, more(m)) {
		l := through(loads[n-m:], sigma)
		level = level.and(l.level, agreement*l.levelError)
		slope = slope.and(l.slope, agreement*l.slopeError)
		if level.empty() || slope.empty() {
			return best
		}
		best = l
		if m == n {
			return best
		}
	}
}

// more is how many loads are tried after a number of them.
func more(n int) int { return n + (n+2)/3 }

// join returns the line from the first load to the last, for loads that are too few to fit one.
func join(loads []load) line {
	switch n := len(loads); n {
	case 0:
		return line{}
	case 1:
		return line{level: loads[0].effective, ticks: n}
	default:
		first, last := loads[0].effective, loads[n-1].effective
		return line{level: last, slope: (last - first) / float64(n-1), ticks: n}
	}
}

// through is the line of least squares through loads. The standard deviation of a load of x is taken to be sigma·√x.
func through(loads []load, sigma float64) line {
	n := float64(len(loads))
	middle := (n - 1) / 2
	var sum, moment float64
	for i := range loads {
		sum += loads[i].effective
		moment += (float64(i) - middle) * loads[i].effective
	}
	mean := sum / n
	spread := n * (n*n - 1) / 12
	l := line{slope: moment / spread, ticks: len(loads)}
	l.level = mean + l.slope*middle
	noise := sigma * math.Sqrt(max(mean, 0))
	l.slopeError = noise / math.Sqrt(spread)
	l.levelError = noise * math.Sqrt(1/n+middle*middle/spread)
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

// relativeNoise estimates the standard deviation of a load of 1, where that of a load of x is √x times as large, as it is of
// what is counted. It is made of how far loads are off the line between one some ticks before and one as many after, by
// the median, so that a few jumps do not count. The largest of some distances is taken: noise that lasts for some ticks
// does not show between neighbours, nor does that of readings with straight lines between them.
func relativeNoise(loads []load, spacing int, scratch []float64) float64 {
	peak := 0.0
	for i := range loads {
		peak = max(peak, loads[i].effective)
	}
	if peak <= 0 {
		return 0
	}
	floor := faint * peak
	sigma := leastNoise * math.Sqrt(peak)
	sigma = unevenness(sigma, loads[max(0, len(loads)-lately):], 1, floor, scratch)
	for _, distance := range distances {
		sigma = unevenness(sigma, loads, distance, floor, scratch)
	}
	if !slices.Contains(distances[:], spacing) {
		sigma = unevenness(sigma, loads, spacing, floor, scratch)
	}
	return sigma
}

// unevenness is the estimate of relativeNoise from ticks at one distance, with loads below a floor left out, or the estimate so far
// if that is more or the ticks are too few. Only what is above that has to be looked at to find a median above it.
func unevenness(sigma float64, loads []load, distance int, floor float64, scratch []float64) float64 {
	const normal = 1.4826 // the standard deviation of a normal variable by the median of its size
	above, n := scratch[:0], 0
	for k := distance; k+distance < len(loads); k++ {
		middle := loads[k].effective
		if middle < floor {
			continue
		}
		n++
		bend := loads[k-distance].effective - 2*middle + loads[k+distance].effective
		if off := normal * (math.Abs(bend) / math.Sqrt(6*middle)); off > sigma {
			above = append(above, off)
		}
	}
	median := n/2 - (n - len(above)) // its place among those above
	if n < 4*distance || median < 0 {
		return sigma
	}
	return nth(above, median)
}

// nth returns the value that would be at index n if the values were in order. It leaves them in another one (Hoare's selection, by the
// middle one of three values, so that it is quick where they rise and fall).
func nth(values []float64, n int) float64 {
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

// deviation is the standard deviation of the newest 60 loads around the line through them; 0 of few.
func deviation(loads []load) float64 {
	loads = loads[max(0, len(loads)-60):]
	if len(loads) < 5 {
		return 0
	}
	l := through(loads, 0)
	sum, n := 0.0, len(loads)
	for i := range loads {
		off := loads[i].effective - (l.level - l.slope*float64(n-1-i))
		sum += off * off
	}
	return math.Sqrt(sum / float64(n-2))
}
