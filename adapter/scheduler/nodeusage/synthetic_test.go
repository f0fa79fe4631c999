package nodeusage

import (
	"math"
	"math/rand/v2"

	"github.com/foresail/foresail/pipeline"
)

// load is what a node uses, each second.
type load func(r *rand.Rand, seconds int) []float64

// wander returns noise around 0 of a standard deviation, whose correlation fades within some seconds.
func wander(r *rand.Rand, n int, fades, deviation float64) []float64 {
	out := make([]float64, n)
	keeps := math.Exp(-1 / fades)
	x := r.NormFloat64() * deviation
	for i := range out {
		x = keeps*x + deviation*math.Sqrt(1-keeps*keeps)*r.NormFloat64()
		out[i] = x
	}
	return out
}

// noisy is a load that follows a shape, with a noise in shares of it. The shape begins within the
// first quarter of an hour.
func noisy(fades, deviation float64, shape func(t float64) float64) load {
	return func(r *rand.Rand, n int) []float64 {
		out := wander(r, n, fades, deviation)
		begins := r.Float64() * 900
		for i := range out {
			out[i] = max(0, shape(float64(i)-begins)*(1+out[i]))
		}
		return out
	}
}

// pods is a load of pods that come at random, some a second, and live for some seconds on average.
func pods(rate, life, each float64) load {
	return func(r *rand.Rand, n int) []float64 {
		out := make([]float64, n)
		for t := -4 * life; t < float64(n); t += r.ExpFloat64() / rate {
			end := t + r.ExpFloat64()*life
			uses := each * (0.5 + r.Float64())
			for i := max(0, int(t)); i < n && float64(i) < end; i++ {
				out[i] += uses * min(1, (float64(i)-t)/20)
			}
		}
		for i, x := range wander(r, n, 20, 0.05) {
			out[i] *= 1 + x
		}
		return out
	}
}

func between(t, from, to float64) float64 { return min(1, max(0, (t-from)/(to-from))) }

// loads are the kinds that are compared, by name.
var loads = map[string]load{
	"flat, noise of 5%":          noisy(5, 0.05, func(float64) float64 { return 4 }),
	"flat, noise of 12%":         noisy(10, 0.12, func(float64) float64 { return 4 }),
	"flat, slow noise of 10%":    noisy(60, 0.10, func(float64) float64 { return 4 }),
	"1 to 6 cores within 10 min": noisy(5, 0.04, func(t float64) float64 { return 1 + 5*between(t, 600, 1200) }),
	"6 to 1 cores within 10 min": noisy(5, 0.04, func(t float64) float64 { return 6 - 5*between(t, 600, 1200) }),
	"1.5 to 4 cores at once": noisy(10, 0.05,
		func(t float64) float64 { return 1.5 + 2.5*between(t, 1200, 1201) }),
	"4 to 1.5 cores at once": noisy(10, 0.05, func(t float64) float64 { return 4 - 2.5*between(t, 1200, 1201) }),
	"2 to 6 cores and back, 30 min": noisy(10, 0.05,
		func(t float64) float64 { return 4 + 2*math.Sin(t/1800*2*math.Pi) }),
	"pods of 0.3, for 10 min": pods(1.0/40, 600, 0.3),
	"pods of 0.5, for 20 min": pods(1.0/60, 1200, 0.5),
	"a leak, with restarts":   noisy(30, 0.01, func(t float64) float64 { return 2 + math.Mod(t+4000, 1500)/375 }),
}

// epoch is when synthetic loads begin (ms).
const epoch = int64(1_700_000_000_000)

// moment is one forecast, and what came of it.
type moment struct {
	samples []pipeline.Sample
	now     int64   // ms
	newest  float64 // the newest sample
	actual  float64 // what is read at the horizon, as the mean over the 15 s around it
}

// moments returns what there is to forecast of a load: a sample each 15 s, the mean over a window,
// read half a step late; those of the window, each as soon as there are enough.
func moments(u []float64, window, enough, most int) (out []moment) {
	const step, late, horizon = 15, 8, 120
	sums := make([]float64, len(u)+1)
	for i, v := range u {
		sums[i+1] = sums[i] + v
	}
	mean := func(to, over int) float64 { return (sums[to] - sums[to-over]) / float64(over) }
	var samples []pipeline.Sample
	for at := 60; at+late+horizon+8 < len(u); at += step {
		samples = append(samples, pipeline.Sample{T: epoch + int64(at)*1000, V: mean(at, window)})
		if len(samples) > most {
			samples = samples[1:]
		}
		if len(samples) >= enough {
			out = append(out, moment{
				samples: samples, now: epoch + int64(at+late)*1000, newest: mean(at, window),
				actual: mean(at+late+horizon+7, 15),
			})
		}
	}
	return out
}
