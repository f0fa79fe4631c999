package nodepool

import (
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/forecast"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// inService is how many workers a share of them is of: those that leave are in service until nothing runs on them.
func inService(workers []plan.Worker) (n int) {
	for _, w := range workers {
		if !w.Failed && !w.Ended {
			n++
		}
	}
	return n
}

// snapshotOf makes what the third phase, the plan, decides from.
func snapshotOf(o *observe.Observation, f forecast.Forecast) plan.Snapshot {
	s := plan.Snapshot{
		Now: o.At, Pool: o.Spec.Plan, Workers: o.Workers, State: stateOf(o), Notices: notices(o.Record),
		Pending: f.Pending, Homes: f.Homes, Signals: f.Signals, Seasonal: f.Seasonal, StartupTime: f.Startup,
		Disruption: o.Spec.Disruption.Allowed(o.At, inService(o.Workers)),
		Instances:  o.Facts, Foreign: o.ForeignInstances(), Unlistable: o.ListErr != nil, EmptySince: o.EmptySince,
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
			s.Messages = append(s.Messages, plan.Message{InstanceID: m.InstanceID, Interruption: m.Kind == provider.MessageInterruption, Deadline: m.Deadline})
		}
	}
	return s
}

// stateOf is what the journal remembers of earlier decisions.
func stateOf(o *observe.Observation) plan.State {
	r := o.Record
	s := plan.State{
		LastUp: r.LastUp, LastDown: r.LastDown, LastSwap: r.LastSwap, Failures: r.Failures, FailedAt: r.FailedAt,
		IdleSince: r.IdleSince, SpareSince: r.SpareSince, Demand: r.Demand, Replacing: r.Replacing, DecidedAt: o.DecidedAt, Cooling: r.Cooling, DrainBackoff: r.DrainBackoff,
		PendingTerminations: observe.PendingTerminations(r), Removals: removals(r),
	}
	if a := r.Action; a != nil {
		s.Action, s.ActionID = a.Kind, a.ID
		s.PlannedAt, s.Lost, s.Room = plannedAt(a), lost(a), room(o, a)
		s.Planned = len(s.PlannedAt) + len(s.Lost)
	}
	return s
}

func removals(r state.Record) []plan.Removal {
	var out []plan.Removal
	for _, x := range r.Interruptions {
		out = append(out, plan.Removal{InstanceID: x.InstanceID, Interrupted: true})
	}
	for _, x := range r.Repairs {
		out = append(out, plan.Removal{InstanceID: x.InstanceID, Repair: true, Drained: x.State == state.RemovalDrained})
	}
	for _, x := range r.Endings {
		out = append(out, plan.Removal{InstanceID: x.InstanceID, Drained: true})
	}
	if r.Action == nil {
		return out
	}
	for _, x := range r.Action.Targets {
		if !x.Done() && r.Interruption(x.InstanceID) == nil {
			out = append(out, plan.Removal{InstanceID: x.InstanceID, Drained: x.State == state.RemovalDrained})
		}
	}
	return out
}

// plannedAt returns where the nodes of a scale-up will be that have not been launched yet.
func plannedAt(a *state.Action) []fleet.Placement {
	var out []fleet.Placement
	for _, s := range a.Slots {
		if s.State == state.SlotPlanned {
			out = append(out, s.Placement)
		}
	}
	return out
}

// lost returns the slots of a scale-up whose launch has failed for good, and that nothing has been decided about.
func lost(a *state.Action) []plan.Lost {
	var out []plan.Lost
	if a == nil {
		return out
	}
	for _, s := range a.Slots {
		if !s.Lost {
			continue
		}
		out = append(out, plan.Lost{
			Slot: s.Number, Placement: s.Placement, Pinned: s.Pinned, Outdated: s.Outdated, Again: !s.Refused, Attempt: s.Attempt,
		})
	}
	return out
}

// room tells how many more nodes a scale-up takes: up to a batch, and while those have at least half of the time to join.
func room(o *observe.Observation, a *state.Action) int {
	if a.Kind != plan.ActionUp || o.At.Sub(a.Started) > o.Spec.Join.Timeout/2 {
		return 0
	}
	return max(0, min(o.Spec.Plan.Batch(), plan.MaxBatch)-len(a.Slots))
}

// notices are the interruptions and repairs that no replacement has been asked for yet.
func notices(r state.Record) []plan.Notice {
	var out []plan.Notice
	for _, i := range r.Interruptions {
		if !i.Replaced {
			out = append(out, plan.Notice{InstanceID: i.InstanceID, Deadline: i.Deadline})
		}
	}
	for _, x := range r.Repairs {
		if !x.Replaced {
			out = append(out, plan.Notice{InstanceID: x.InstanceID, Deadline: x.Since.Add(plan.NoticeTime), Unhealthy: true})
		}
	}
	return out
}
