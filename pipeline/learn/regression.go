package learn

import (
	"math"

	"github.com/foresail/foresail/pipeline/series"
)

// regression is a linear function that is fitted to each new value so that absolute errors are small: a few
// jumps that cannot be predicted have little weight. The zero value is ready to use.
type regression struct {
	evaluations float64 // the decayed number of evaluations
	size        float64 // the mean absolute error of roughly the last four hours
	squares     [features * (features + 1) / 2]float32
	moments     [features]float32
	weights     [features]float64 // follow from squares and moments; the prior is added to them
}

const (
	// halfLife is the time after which an evaluation has half its weight (ms).
	halfLife = day
	// held is the strength of the ridge that keeps weights near the prior until the load has confirmed them
	// several times.
	held = 10
	// minError is the minimum error by which an evaluation is weighted, as a share of the mean error.
	minError = 0.2
	// sizeEvaluations is roughly the number of evaluations that the mean absolute error covers.
	sizeEvaluations = 1000
)

// prior holds the initial weights: the means of one and two minutes predict more than that of half a minute
// alone.
var prior = [features]float64{minuteMean: 0.3, twoMinutesMean: 0.2}

// learn adds the value y that followed x. Evaluations are apart by a time (ms). They overlap by lag, and weigh
// less by that factor.
func (r *regression) learn(x *[features]float64, y, lag, apart float64) {
	keep := 1 - min(0.5, math.Ln2*apart/float64(halfLife))
	off := math.Abs(y - r.at(x))
	r.size += (off - r.size) * max(1./sizeEvaluations, 1/(r.evaluations+1))
	r.evaluations = r.evaluations*keep + 1
	weight := 1 / max(off, minError*r.size)
	if math.IsInf(weight, 0) { // the load is constant
		return
	}
	rest := y
	for i, w := range prior {
		rest -= w * x[i]
	}
	trace, size, k := 0.0, 0.0, 0
	for i := range features {
		for j := range i + 1 {
			r.squares[k] = float32(float64(r.squares[k])*keep + weight*x[i]*x[j])
			k++
		}
		r.moments[i] = float32(float64(r.moments[i])*keep + weight*x[i]*rest)
		trace += float64(r.squares[k-1])
		size += math.Abs(float64(r.moments[i]))
	}
	if !series.Finite(trace + size) { // loads are too large
		*r = regression{}
		return
	}
	r.solve(trace / float64(features) / r.evaluations * held * lag)
}

// at returns the predicted value for x.
func (r *regression) at(x *[features]float64) float64 {
	sum := 0.0
	for i, w := range r.weights {
		sum += (w + prior[i]) * x[i]
	}
	return sum
}

// solve computes the weights with a ridge, by Cholesky decomposition. They do not change if no feature varies.
//
// Additions to one sum depend on each other, so the sums of atOnce elements of a column are computed in
// parallel. The order of terms in each sum does not change, so neither does the result.
func (r *regression) solve(ridge float64) {
	const atOnce = 4
	// by column, starting at the diagonal; the last element belongs to the moments
	var l [features][features + atOnce]float64
	at := 0
	for i := range features {
		for j := range i + 1 {
			l[j][i] = float64(r.squares[at])
			at++
		}
		l[i][i] += ridge
		l[i][features] = float64(r.moments[i])
	}
	for j := range l {
		column := &l[j]
		for i := j; i <= features; i += atOnce {
			sums := (*[atOnce]float64)(column[i:])
			a, b, c, d := sums[0], sums[1], sums[2], sums[3]
			for k := range l[:j] {
				before := &l[k]
				of, factor := (*[atOnce]float64)(before[i:]), before[j]
				a -= of[0] * factor
				b -= of[1] * factor
				c -= of[2] * factor
				d -= of[3] * factor
			}
			sums[0], sums[1], sums[2], sums[3] = a, b, c, d
		}
		if !(column[j] > 0) {
			return
		}
		root := math.Sqrt(column[j])
		for i := j + 1; i <= features; i++ {
			column[i] /= root
		}
		column[j] = root
	}
	var z [features]float64
	for i := features - 1; i >= 0; i-- {
		z[i] = l[i][features]
		for k := i + 1; k < features; k++ {
			z[i] -= l[i][k] * z[k]
		}
		z[i] /= l[i][i]
	}
	for _, w := range z {
		if !series.Finite(w) {
			return
		}
	}
	r.weights = z
}
