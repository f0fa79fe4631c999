package scaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/scaler/hpa"
)

// History is the load that was recorded, second by second: what Prometheus has of it.
type History struct {
	Load lab.Load // what arrived, in the time of the run: what came before the run has negative times
	From int64    // nothing was recorded before
}

const (
	day = 24 * time.Hour
	// recurringRange is how much of the past the second trigger of [recurring] looks at. It begins
	// at the same time of an earlier day, so that pods are there half an hour before they were
	// needed then.
	recurringRange = 30 * time.Minute
)

// recurring returns keda with a second trigger, the offset rule that Mimir ships for its own
// components: with 7 days,
//
//	max_over_time(load[30m] offset 6d23h30m)
//
// The load is that of all pods together, also where it was more than they could do.
func recurring(ago time.Duration) reactive {
	return func(s Setup, behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) (lab.Scaler, error) {
		made, err := newKEDA(s, behavior)
		if err != nil {
			return nil, err
		}
		scaled, past := made.(*autoscaled), newPastPeak(s, ago)
		measured := scaled.metrics
		scaled.metrics = func(v *lab.View) []hpa.Metric {
			// KEDA makes 0 of a query without a result, unless its ignoreNullValues is false.
			peak := hpa.External{Total: milli(past.largest(v.Now)), Target: milli(s.Threshold), Average: true}
			return append(measured(v), peak)
		}
		return scaled, nil
	}
}

// pastPeak is the largest load in the half hour that began some time ago.
type pastPeak struct {
	history History
	cost    float64
	scrapes lab.Source
	ago     int64 // ms

	upTo int64 // readings until then have been looked at
	// peaks are the readings of the range that are larger than all after them, oldest first.
	peaks []reading
}

type reading struct {
	t     int64
	value float64
}

func newPastPeak(s Setup, ago time.Duration) *pastPeak {
	p := &pastPeak{history: s.History, cost: s.Cost, scrapes: s.Sources.KEDA, ago: ago.Milliseconds()}
	p.upTo = p.history.From + p.scrapes.Window.Milliseconds() - 1
	return p
}

// largest returns the largest reading, in pods' work; 0 where nothing was recorded. Times must not fall.
func (p *pastPeak) largest(now int64) float64 {
	if p.history.Load == nil {
		return 0
	}
	period := p.scrapes.Period.Milliseconds()
	after := now - p.ago
	until := after + recurringRange.Milliseconds()
	p.upTo = max(p.upTo, after)
	for t := lab.AtOrBefore(p.upTo, p.scrapes.Phase.Milliseconds(), period) + period; t <= until; t += period {
		p.add(reading{t, p.read(t)})
		p.upTo = t
	}
	gone := 0
	for gone < len(p.peaks) && p.peaks[gone].t <= after {
		gone++
	}
	p.peaks = append(p.peaks[:0], p.peaks[gone:]...)
	if len(p.peaks) == 0 {
		return 0
	}
	return p.peaks[0].value
}

func (p *pastPeak) add(r reading) {
	n := len(p.peaks)
	for n > 0 && p.peaks[n-1].value <= r.value {
		n--
	}
	p.peaks = append(p.peaks[:n], r)
}

// read returns what was scraped at a time: a mean over the window before.
func (p *pastPeak) read(t int64) float64 {
	const second = 1000
	sum, window := 0.0, p.scrapes.Window.Milliseconds()
	for at := t - window; at < t; at += second {
		sum += p.history.Load.Rate(at)
	}
	return sum * p.cost * second / float64(window)
}
