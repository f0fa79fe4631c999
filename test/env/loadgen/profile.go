package loadgen

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Point is a rate at a time since the start.
type Point struct {
	At  time.Duration
	RPS float64 // requests per second
}

// Profile is a rate over time: straight lines between points in order of time, of which the first
// is at 0 and the last is the end. Two points at one time are a step.
type Profile []Point

// Constant returns one rate for a span.
func Constant(rps float64, span time.Duration) Profile {
	return Profile{{0, rps}, {span, rps}}
}

// Ramp returns a straight line from one rate to another over a span, and the latter for another.
func Ramp(from, to float64, over, hold time.Duration) Profile {
	return Profile{{0, from}, {over, to}, {over + hold, to}}
}

// ParseProfile reads points such as "0s:10,150s:800,240s:800": time since the start and requests per second.
func ParseProfile(text string) (Profile, error) {
	var p Profile
	for field := range strings.SplitSeq(text, ",") {
		at, rps, found := strings.Cut(strings.TrimSpace(field), ":")
		if !found {
			return nil, fmt.Errorf("profile: point %q: must be time:rate, such as 150s:800", field)
		}
		var point Point
		var err error
		if point.At, err = time.ParseDuration(at); err != nil {
			return nil, fmt.Errorf("profile: point %q: %w", field, err)
		}
		if point.RPS, err = strconv.ParseFloat(rps, 64); err != nil {
			return nil, fmt.Errorf("profile: point %q: %w", field, err)
		}
		p = append(p, point)
	}
	return p, p.Validate()
}

// Validate names the point that is wrong, or the limit that is exceeded.
func (p Profile) Validate() error {
	if len(p) < 2 || p[0].At != 0 || p.Duration() <= 0 {
		return fmt.Errorf("profile %v: must be at least two points, the first at 0 and the last later", p)
	}
	for i, point := range p {
		if !(point.RPS >= 0) || math.IsInf(point.RPS, 0) {
			return fmt.Errorf("profile: rate %v at %v: must be 0 or above, and finite", point.RPS, point.At)
		}
		if i > 0 && point.At < p[i-1].At {
			return fmt.Errorf("profile: point at %v follows one at %v: must be in order of time", point.At, p[i-1].At)
		}
	}
	if p.Duration() > MaxDuration {
		return fmt.Errorf("profile: takes %v: must be %v at most", p.Duration(), MaxDuration)
	}
	if requests := p.Requests(p.Duration()); requests > MaxRequests {
		return fmt.Errorf("profile: %.0f requests: must be %d at most", requests, MaxRequests)
	}
	return nil
}

// Duration returns the time of the last point; the profile must not be empty.
func (p Profile) Duration() time.Duration { return p[len(p)-1].At }

// Rate returns the rate at a time since the start; outside the profile it is 0.
func (p Profile) Rate(at time.Duration) float64 {
	for i := len(p) - 2; i >= 0; i-- {
		from, to := p[i], p[i+1]
		if at >= from.At && at < to.At {
			return from.RPS + (to.RPS-from.RPS)*float64(at-from.At)/float64(to.At-from.At)
		}
	}
	return 0
}

// Requests returns how many requests the rate amounts to from the start to a time.
func (p Profile) Requests(until time.Duration) float64 {
	var sum float64
	for i := range len(p) - 1 {
		if end := min(until, p[i+1].At); end > p[i].At {
			share := float64(end-p[i].At) / float64(p[i+1].At-p[i].At)
			last := p[i].RPS + (p[i+1].RPS-p[i].RPS)*share
			sum += (p[i].RPS + last) / 2 * (end - p[i].At).Seconds()
		}
	}
	return sum
}
