package scaler

import (
	"fmt"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/pipeline"
)

// Metric is what Foresail reads of each pod.
type Metric int

// The metrics there are.
const (
	Utilization Metric = iota // busy share of the event loop, which ends at 1
	Requests                  // requests per second, which do not saturate; the threshold is as many as keep a pod of average speed that busy
	Both                      // a PredictedMetric of each, of which the HPA takes the larger
)

// feeds returns a forecast for each PredictedMetric that the HPA reads.
func (s *Setup) feeds() ([]*feed, error) {
	if s.Metric < Utilization || s.Metric > Both {
		return nil, fmt.Errorf("metric: %d: must be Utilization, Requests or Both", s.Metric)
	}
	var feeds []*feed
	if s.Metric != Requests {
		p := s.params()
		f, err := newFeed(p, s, s.Sources.Foresail, warmUpTicks*p.Interval)
		if err != nil {
			return nil, err
		}
		feeds = append(feeds, f)
	}
	if s.Metric != Utilization {
		f, err := s.ofRequests()
		if err != nil {
			return nil, err
		}
		feeds = append(feeds, f)
	}
	return feeds, nil
}

// ofRequests returns a forecast of requests per second, with the same settings but for what is of utilisation alone.
func (s *Setup) ofRequests() (*feed, error) {
	if !(s.Cost > 0) {
		return nil, fmt.Errorf("cost: %v: must be above 0 where requests are read", s.Cost)
	}
	r := *s
	r.Threshold = s.Threshold / s.Cost
	p := s.params()
	p.Saturation, p.Model = pipeline.Saturation{}, pipeline.Model{Kind: pipeline.Linear}
	f, err := newFeed(p, &r, s.Sources.Foresail, warmUpTicks*p.Interval)
	if err != nil {
		return nil, err
	}
	f.meter = requests
	return f, nil
}

func busy(p *lab.Pod) *lab.Meter { return &p.Busy }

func requests(p *lab.Pod) *lab.Meter { return &p.Requests }
