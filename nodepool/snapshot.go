package nodepool

import (
	"github.com/foresail/foresail/nodepool/forecast"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
)

// inService returns the number of workers to which shares refer. Workers that leave are in service
// until nothing runs on them.
func inService(o *observe.Observation) (n int) {
	for w := range o.Workers() {
		if !w.Failed && !w.Ended {
			n++
		}
	}
	return n
}

// snapshotOf returns the input of the third phase, the plan.
func snapshotOf(o *observe.Observation, f forecast.Forecast) plan.Snapshot {
	s := plan.Snapshot{
		Now: o.At, Pool: o.Spec.Plan, Instances: o.Members, DecidedAt: o.DecidedAt,
		Record:  o.Record.Clone(), // the fourth phase changes the record of the journal in place
		Pending: f.Pending, Simulator: f.Simulator, Signals: f.Signals, Seasonal: f.Seasonal, StartupTime: f.Startup,
		Disruption: o.Spec.Disruption.Allowed(o.At, inService(o)),
		Foreign:    o.ForeignInstances(), Unlistable: o.ListErr != nil, EmptySince: o.EmptySince,
	}
	s.Offers, s.Prices, s.PricesErr = observe.Offered(o.Offers)
	s.Quotas = observe.Quotas(o.Offers)
	s.Pool.Join, s.Pool.VanishGrace, s.Pool.Force = o.Spec.Join, o.VanishGrace, o.Spec.Drain.Force
	if o.OffersErr != nil {
		s.OffersErr = o.OffersErr.Error()
	}
	if err := o.Err(); err != nil {
		s.WorkersErr = err.Error()
	}
	for _, m := range o.Messages {
		if m.Kind == provider.MessageInterruption || m.Kind == provider.MessageRebalance {
			s.Messages = append(s.Messages,
				plan.Message{InstanceID: m.InstanceID, Interruption: m.Kind == provider.MessageInterruption, Deadline: m.Deadline})
		}
	}
	return s
}
