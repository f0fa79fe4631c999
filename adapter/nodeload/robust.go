package nodeload

import (
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// A pod that comes or goes changes the use of its node once, at a time that nobody foresees: it is no trend, and says nothing of
// how well what follows will be foreseen. So both are asked of most of the samples, not of all of them.

// recent is how many of the newest changes from one sample to the next say whether there is a trend. Most of them are on the
// same side only if it goes on: a jump is one change, or five where samples are means over a minute, and a growth is seen
// after six.
const recent = 11

// steady returns the part of a trend, a change in a step, that the newest samples bear out: no more of it than the median of
// their changes, and nothing where that is of the other sign. There are two samples at the least.
func (p *predictor) steady(trend float64, samples []pipeline.Sample, step time.Duration) float64 {
	newest := samples[max(0, len(samples)-1-recent):]
	p.scratch = p.scratch[:0]
	for i, s := range newest[1:] {
		steps := float64(s.T-newest[i].T) / float64(step.Milliseconds())
		p.scratch = append(p.scratch, (s.V-newest[i].V)/steps)
	}
	usual := median(p.scratch)
	if trend > 0 {
		return min(trend, max(0, usual))
	}
	return max(trend, min(0, usual))
}

const (
	// ofNormal is what the standard deviation of a normal distribution is, in medians of absolute deviations.
	ofNormal = 1.4826
	// outlying is by how many standard deviations a forecast is missed at most, as far as the deviation goes.
	outlying = 3.5
)

// deviation returns by how much forecasts were missed: the root mean square, in which what is far from the others counts for
// less (winsorized). 0 if there is none.
func (p *predictor) deviation(missed []float64) float64 {
	if len(missed) == 0 {
		return 0
	}
	p.scratch = p.scratch[:0]
	for _, m := range missed {
		p.scratch = append(p.scratch, math.Abs(m))
	}
	most := outlying * ofNormal * median(p.scratch)
	squares := 0.0
	for _, m := range p.scratch {
		m = min(m, most)
		squares += m * m
	}
	return math.Sqrt(squares / float64(len(missed)))
}

// median returns the median of numbers, of which there is at least one, and sorts them.
func median(of []float64) float64 {
	slices.Sort(of)
	n := len(of)
	return of[(n-1)/2]/2 + of[n/2]/2
}
