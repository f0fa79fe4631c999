package dashboard

import (
	"math"
	"strconv"
	"time"
)

// shapeSpan is the time that a Shape is about, which ends now.
const shapeSpan = time.Hour

// Shape is the last hour of a PredictedMetric in a few values, for a small chart in a list: the
// highest of each interval, so that short peaks are not lost.
type Shape struct {
	From     int64   `json:"from"` // seconds since 1970
	Step     float64 `json:"stepSeconds"`
	Load     []short `json:"load"`     // of all pods
	Forecast []short `json:"forecast"` // of the load, at the time that it was for
	Capacity []short `json:"capacity"` // the load that the target's replicas hold at the threshold
	Replicas []Count `json:"replicas"` // that the target is set to
}

// short is a Number that is written with three significant digits: a small chart shows no more.
type short float64

// MarshalJSON writes null for a number that is not known.
func (n short) MarshalJSON() ([]byte, error) {
	if v := float64(n); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return strconv.AppendFloat(nil, v, 'g', 3, 64), nil
	}
	return []byte("null"), nil
}

// shapeOf returns the shape of points in n intervals.
func shapeOf(points []point, n int, now time.Time) *Shape {
	step := shapeSpan.Seconds() / float64(n)
	from := now.Add(-shapeSpan).Unix()
	s := &Shape{From: from, Step: step, Load: unknowns(n), Forecast: unknowns(n),
		Capacity: unknowns(n), Replicas: make([]Count, n)}
	for i := range s.Replicas {
		s.Replicas[i] = -1
	}
	interval := func(at int64) int { return int(math.Ceil(float64(at-from)/step)) - 1 }
	for i := range points {
		p := &points[i]
		if at := interval(int64(p.at)); at >= 0 && at < n {
			raise(&s.Load[at], p.level)
			s.Replicas[at] = max(s.Replicas[at], Count(p.target))
			if p.target >= 0 {
				raise(&s.Capacity[at], p.each*float32(p.target))
			}
		}
		if due := interval(int64(p.at) + int64(p.horizon)); due >= 0 && due < n {
			raise(&s.Forecast[due], p.total)
		}
	}
	return s
}

func unknowns(n int) []short {
	out := make([]short, n)
	for i := range out {
		out[i] = short(math.NaN())
	}
	return out
}

// raise sets a number to a value that is known and higher.
func raise(n *short, v float32) {
	if !math.IsNaN(float64(v)) && !(float64(*n) >= float64(v)) {
		*n = short(v)
	}
}
