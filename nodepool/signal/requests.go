package signal

import (
	"context"
	"errors"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/pipeline"
)

// requests is the signal of pods' requests relative to the allocatable resources of nodes: CPU, memory and pod slots,
// each with a pipeline. The resource that needs the most workers decides.
//
// A pod's request is in one place at any time, so nothing is redistributed and a new worker counts in full at once. It
// is counted, not measured: a rise is no noise to be smoothed, or the forecast would fall below the present, and many
// pods that arrive at once are no trend.
type requests struct {
	*signalState
	log    demandLog
	buffer []pipeline.Instance
}

func newRequests(c Config, f *Forecast) (*requests, error) {
	p := f.params(c.Threshold)
	p.RedistributionTimeout, p.NoiseMargin = 0, 0
	p.Counted, p.ScaleDownMargin = !f.Disabled, f.margin(0)
	v, err := newSignalState(c, p)
	if err != nil {
		return nil, err
	}
	return &requests{signalState: v, log: newDemandLog(f)}, nil
}

var errWarmingUp = errors.New("warming up: requests have been seen for less than three sample intervals")

func (r *requests) observe(m *pipeline.Memory, t *tick) plan.Signal {
	demand := t.demand()
	total := demand
	for _, c := range t.loaded {
		total.add(c.load)
	}
	r.log.record(t.now, t.loaded, demand)
	if !r.warmedUp() {
		return r.report(reading{}, errWarmingUp, t)
	}
	var out reading
	for d := range dimensions {
		r.buffer = r.log.instances(d, r.buffer[:0])
		one, err := r.run(m, pipeline.Input{Instances: r.buffer, Demand: r.log.demand[d]}, t)
		clear(r.buffer)
		if err != nil {
			return r.report(reading{}, err, t)
		}
		// The level may lag behind a rise.
		one.fits, one.needs = max(one.fits, r.fits(total[d])), max(one.needs, r.needs(total[d]))
		out = larger(out, one)
	}
	return r.report(out, nil, t)
}

// warmedUp reports whether the window has three ticks to forecast from.
func (r *requests) warmedUp() bool {
	times, step := r.log.times, r.pipeline.Params().Interval.Milliseconds()
	return times[len(times)-1]/step-(times[0]+step-1)/step >= 2
}

// begin and await do nothing: requests need no query.
func (r *requests) begin(context.Context, int64) {}
func (r *requests) await(context.Context)        {}

func (r *requests) rewind(now int64) { r.log.drop(now) }
