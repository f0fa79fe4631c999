package seriestest

import (
	"math"
	"math/rand/v2"
)

// Secondly is a load by the second since Midnight.
type Secondly func(second int64) float64

const (
	// Midnight is one of UTC (s).
	Midnight = int64(1_700_006_400)
	// OfDay is the number of seconds of a day.
	OfDay = int64(24 * 3600)
)

// Noisy returns a load around a mean, as it is counted, that is the same each time for the same second. It keeps the
// loads of 1024 seconds, as forecasts look at each of them many times.
func Noisy(seed uint64, mean Secondly) Secondly {
	var kept [1024]struct {
		known  bool
		second int64
		load   float64
	}
	source := rand.NewPCG(0, 0)
	r := rand.New(source)
	return func(s int64) float64 {
		k := &kept[FloorMod(s, int64(len(kept)))]
		if !k.known || k.second != s {
			source.Seed(seed^uint64(s)*0x9e3779b97f4a7c15, 2026)
			m := mean(s)
			k.known, k.second, k.load = true, s, max(0, m+math.Sqrt(m)*0.3*r.NormFloat64())
		}
		return k.load
	}
}

// FloorMod returns the remainder of a/b, which is never negative.
func FloorMod(a, b int64) int64 { return ((a % b) + b) % b }

// Bursts returns a load whose bursts begin at chance, one in every so many seconds, and last for three minutes.
func Bursts(seed uint64, every int64) Secondly {
	return func(s int64) float64 {
		for b := s / every; b >= max(0, s/every-1); b-- {
			begin := b*every + NewRandom(seed^uint64(b)).Span(0, every-1)
			if begin <= s && s < begin+180 {
				return 8
			}
		}
		return 2
	}
}

// Daily returns a load that jumps for three minutes at 10:02:20 on some days.
func Daily(on func(day int64) bool) Secondly {
	return func(s int64) float64 {
		began := s%OfDay - (10*3600 + 2*60 + 20)
		if 0 <= began && began < 180 && on(s/OfDay) {
			return 10
		}
		return 2
	}
}

// Hourly returns a load that jumps for five minutes in the 32nd minute of some hours.
func Hourly(on func(hour int64) bool) Secondly {
	return func(s int64) float64 {
		began := s%3600 - (32*60 + 20)
		if 0 <= began && began < 300 && on(s/3600) {
			return 10
		}
		return 2
	}
}
