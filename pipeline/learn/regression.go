package learn

import (
	"math"

	"github.com/foresail/foresail/pipeline/series"
)

// regression is a linear function that is fitted to each new value, so that its absolute errors are small: a few jumps
// that could not be known do not count for much. The zero value is ready.
type regression struct {
	looks   float64 // that count
	size    float64 // the mean absolute error of about the last four hours
	squares [features * (features + 1) / 2]float32
	moments [features]float32
	weights [features]float64 // follow from the two above; those of prior are not in them
}

const (
	// halfLife is the time after which a look counts half (ms).
	halfLife = day
	// held is the strength of the ridge that holds weights back until the load has shown them several times.
	held = 10
	// leastError is the least error by which a look is weighed, as a share of the mean one.
	leastError = 0.2
	// sizeLooks is about the number of looks that the mean absolute error is taken of.
	sizeLooks = 1000
)

// prior holds the weights before anything is known: the means of one and two minutes say more than that of half a
// minute alone.
var prior = [features]float64{minuteMean: 0.3, twoMinutesMean: 0.2}

// learn adds the value y that followed x. Looks are some time apart (ms); they overlap by the lag, and count as much
// less.
func (r *regression) learn(x *[features]float64, y, lag, apart float64) {
	keep := 1 - min(0.5, math.Ln2*apart/float64(halfLife))
	off := math.Abs(y - r.at(x))
	r.size += (off - r.size) * max(1./sizeLooks, 1/(r.looks+1))
	r.looks = r.looks*keep + 1
	weight := 1 / max(off, leastError*r.size)
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
	if !series.Finite(trace + size) { // of loads that are too large
		*r = regression{}
		return
	}
	r.solve(trace / float64(features) / r.looks * held * lag)
}

// at returns the value for x.
func (r *regression) at(x *[features]float64) float64 {
	sum := 0.0
	for i, w := range r.weights {
		sum += (w + prior[i]) * x[i]
	}
	return sum
}

// solve finds the weights, held back by a ridge, by Cholesky's decomposition. They stay as they are while nothing
// varies.
//
// Additions of a sum wait for each other, so sums of atOnce elements of a column are made in parallel. The terms of
// each keep their order: results do not depend on it.
func (r *regression) solve(ridge float64) {
	const atOnce = 4
	var l [features][features + atOnce]float64 // by column, from its diagonal on; the last element is of the moments
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
