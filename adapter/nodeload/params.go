package nodeload

import (
	"math"

	"github.com/foresail/foresail/pipeline"
)

// How quickly level and trend follow rises and falls.
//
// What the pipeline has by default (0.2, 0.1, 0.2, 0.1) is made for samples each second: at 15 s it needs minutes to learn of a
// pod that has come or gone, and its trend rings. BenchmarkSmoothing compares choices on eleven kinds of load (noise, ramps, steps,
// a wave, pods that come and go, a leak), for samples that are means over 15 s and, in brackets, over 60 s:
//
//	                        mean error   bias          below the upper   of a steady growth
//	                        (1)                        estimate          after 2, 5 min (2)
//	chosen                  0.99 (1.00)  +3.1% (+3.1)  0.948 (0.928)     0.47, 0.87
//	of the pipeline         1.04 (1.07)  +5.3% (+5.1)  0.948 (0.933)     0.44, -0.08
//	0.6, 0.3, 0.05, 0.1     0.97 (0.99)  +2.0% (+2.2)  0.929 (0.896)     0.22, 0.59
//	0.6, 0.3, 0.2, 0.2      1.01 (1.02)  +3.2% (+3.1)  0.964 (0.950)     0.81, 0.99
//	0.5, 0.5, 0.05, 0.05    0.97 (0.99)  +1.9% (+2.3)  0.894 (0.850)     0.17, 0.57
//	1, 1, 0, 0              0.99 (1.01)  +1.2% (+1.4)  0.868 (0.813)     none
//
// (1) beside that of taking what is for what will be; (2) the share of the growth to the horizon that is predicted.
//
// What a node will use in two minutes can hardly be told better than by what it uses now, unless it grows or falls: there the
// chosen ones are off by 0.78 and 0.96 of that, and by 0.92 where it waves. Less trend is a little better on noise, and sees
// a growth too late to be of use. Rises are followed faster than falls: to have been wrong about a rise costs more.
const (
	levelUp, levelDown = 0.6, 0.3
	trendUp, trendDown = 0.1, 0.1
)

// params returns the parameters of the pipeline of one node's use of one resource. What it decides is not looked at.
func (o *Options) params() pipeline.Params {
	p := pipeline.DefaultParams()
	p.Threshold, p.Max = 1, 1
	p.Interval, p.Window, p.StaleAfter = o.Interval, o.Window, o.forgetAfter()
	p.RedistributionTimeout = 0
	p.LevelUp, p.LevelDown, p.TrendUp, p.TrendDown = levelUp, levelDown, trendUp, trendDown
	p.HorizonMin, p.HorizonMax, p.ReactionDelay = o.Horizon, o.Horizon, 0
	return p
}

// confidence is how many standard deviations the upper estimate is above the prediction, so that about 95% of what is to come is
// below. It would be 1.64 if what comes were distributed normally, and the deviation had its outliers.
const confidence = 1.75

// spread returns by how much more a prediction a number of steps ahead is off than one of a single step: the square root of
// 1 + Σ (α+αβj)² over j from 1 to steps-1, Holt's prediction interval (Hyndman & Athanasopoulos, Forecasting: principles and
// practice, 3rd ed., section 8.7), for any number of steps from 1 on.
func spread(alpha, beta, steps float64) float64 {
	h := max(1, steps)
	return math.Sqrt(1 + alpha*alpha*((h-1)+beta*h*(h-1)+beta*beta*h*(h-1)*(2*h-1)/6))
}
