package signal

import (
	"context"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/pipeline"
)

// requests is the signal of what pods request of what nodes can allocate: CPU, memory and pod slots, each with a pipeline,
// of which the one that wants most workers speaks.
//
// A pod's request is in one place at any time. So nothing is redistributed, and a new worker counts in full at once. And it
// is counted, not measured: a rise is no noise to be smoothed, or the forecast would ask for less than the present does, and many
// pods that arrive at once are no trend.
type requests struct {
	*voice
	ledger ledger
	buffer []pipeline.Instance
}

func newRequests(c Config, f *Forecast) (*requests, error) {
	p := f.params(c.Threshold)
	p.RedistributionTimeout, p.NoiseMargin = 0, 0
	p.Counted = !f.Disabled
	if f.ScaleDownMargin == nil {
		p.ScaleDownMargin = 0
	}
	v, err := newVoice(c, p)
	if err != nil {
		return nil, err
	}
	return &requests{voice: v, ledger: newLedger(f)}, nil
}

func (r *requests) observe(m *pipeline.Memory, t *tick) plan.Signal {
	demand := t.demand()
	total := demand
	for _, c := range t.carriers {
		total.add(c.load)
	}
	r.ledger.record(t.now, t.carriers, demand)
	if !r.warm() {
		return r.tell(reading{}, errWarmingUp, t)
	}
	var out reading
	for d := range dimensions {
		r.buffer = r.ledger.instances(d, r.buffer[:0])
		one, err := r.run(m, pipeline.Input{Instances: r.buffer, Demand: r.ledger.demand[d]}, t)
		clear(r.buffer)
		if err != nil {
			return r.tell(reading{}, err, t)
		}
		one.fits, one.needs = max(one.fits, r.fits(total[d])), max(one.needs, r.needs(total[d])) // the level may lag behind a rise
		out = larger(out, one)
	}
	return r.tell(out, nil, t)
}

// warm tells whether there are three ticks to make a forecast from.
func (r *requests) warm() bool {
	times, step := r.ledger.times, r.pipeline.Params().Interval.Milliseconds()
	return times[len(times)-1]/step-(times[0]+step-1)/step >= 2
}

// begin and await do nothing: requests need not be asked for.
func (r *requests) begin(context.Context, int64) {}
func (r *requests) await(context.Context)        {}

func (r *requests) forgetFrom(now int64) { r.ledger.drop(now) }
