package plan

import "github.com/foresail/foresail/nodepool/state"

// Decide returns the next step of a pool.
func Decide(s Snapshot) Decision {
	f, d := prepare(s)
	d = evaluateRules(f, d,
		holdUnknownWorkers, // workers are unknown: hold
		removeAll,          // the pool is being deleted: remove all workers
		launchToFloor,      // below the minimum, or needed workers are reclaimed: launch, ignoring cooldowns
		extendScaleUp,      // an open scale-up has room: add what has been recommended since
		holdOpenAction,     // any other open action: hold
		removeAboveMaximum, // above a maximum that was lowered: remove
		launchRecommended,  // more are recommended, for long enough: launch
		holdUnsustained,    // not for long enough, or not by all triggers where all must agree: hold
		rollOut,            // outdated workers: remove spare ones, launch replacements for others first, within budgets
		removeIdle,         // idle for long enough, or more workers than the load needs: remove
	)
	d.Candidates = candidates(f, d)
	d.Substitutes, d.Replacements = substitutes(f, d)
	d.Upkeep = upkeep(f, d)
	d.Rollout, d.WorkersBeforeRollout = progress(f, d), replacing(f, d)
	d.ReleaseFinalizer = f.Pool.Deleting && !f.EmptySince.IsZero() && f.Now.Sub(f.EmptySince) >= f.Pool.VanishGrace
	return d
}

// ruleFunc is one reason to act or to hold. It receives the decision as the rules before it left
// it.
//
// Launches are limited by the maximum, the cooldown, repeated launch failures and placements that
// are cooling. Removals are blocked by anything unknown, by too many unready workers, by the
// cooldown, and by workers that must not be removed.
type ruleFunc func(*facts, Decision) (Decision, verdict)

// evaluateRules evaluates rules in order and returns the decision of the first one that decides. A later rule
// that acts overrides one that yields.
func evaluateRules(f *facts, d Decision, rules ...ruleFunc) Decision {
	var yielded *Decision
	for _, rule := range rules {
		switch next, v := rule(f, d); {
		case v == passes:
			d = next
		case v == yields:
			yielded = &next
		case next.Step == Hold && yielded != nil:
			yielded.Rollout = d.Rollout
			return yielded.withRefusals(d.Refused)
		default:
			return next
		}
	}
	return d
}

// holdUnknownWorkers holds while the workers are not known.
func holdUnknownWorkers(f *facts, d Decision) (Decision, verdict) {
	if f.WorkersErr == "" {
		return d, passes
	}
	return d.hold(WorkersUnknown, "the workers are not known: %s", f.WorkersErr), decides
}

// holdOpenAction holds while an action is open. Only launchToFloor overtakes it, for launches that are needed
// now while a scale-down is open.
func holdOpenAction(f *facts, d Decision) (Decision, verdict) {
	if f.Record.ActionKind() == "" {
		return d, passes
	}
	d.Desired = aim(f, d.Recommended)
	if f.Record.ActionKind() == state.ActionDown {
		d.Desired = aim(f, f.recommended.attainableNow())
	}
	return d.hold(ActionOpen, "a %s is open (%s)", f.Record.ActionKind(), f.recommended.load()), decides
}

// holdUnsustained holds while a recommendation for more workers does not count yet.
func holdUnsustained(f *facts, d Decision) (Decision, verdict) {
	reason, why := f.recommended.withheld(len(f.staying))
	if reason == "" {
		return d, passes
	}
	return d.hold(reason, "%s", why), decides
}
