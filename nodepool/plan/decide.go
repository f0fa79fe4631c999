package plan

import "github.com/foresail/foresail/nodepool/state"

// Decide returns what a pool does next.
func Decide(s Snapshot) Decision {
	f, d := prepare(s)
	d = ask(f, d,
		unreadable,  // workers that cannot be read: hold
		empty,       // a pool that is being deleted: remove all of them
		refill,      // fewer than the minimum, or some that are needed are taken back: launch, past cooldowns
		extend,      // an open scale-up with room left: what is recommended meanwhile joins it
		openAction,  // any other open action: hold
		trim,        // more than the maximum, which was lowered: remove
		grow,        // more are recommended, and have been for long enough: launch
		unsustained, // not for long enough, or by one trigger alone where all must agree: hold
		rollOut,     // outdated workers: remove the spare ones, launch replacements of others first, within budgets
		shrink,      // idle for long enough, or with more workers than the load needs: remove
	)
	d.Candidates = candidates(f, d)
	d.Substitutes, d.Replacements = substitutes(f, d)
	d.Upkeep = upkeep(f, d)
	d.Rollout, d.Replacing = progress(f, d), replacing(f, d)
	d.LetGo = f.Pool.Deleting && !f.EmptySince.IsZero() && f.Now.Sub(f.EmptySince) >= f.Pool.VanishGrace
	return d
}

// ruleFunc is one reason to act or to hold. It gets the decision as the rules before it left it.
//
// Launches are held back by the maximum, the cooldown, launches that keep failing and placements
// that are cooling; removals by everything that is not known, by too many unready workers, the
// cooldown, and workers that must not go.
type ruleFunc func(*facts, Decision) (Decision, verdict)

// ask returns the decision of the first rule that decides. A rule that yields is overruled by a
// later one that acts.
func ask(f *facts, d Decision, rules ...ruleFunc) Decision {
	var yielded *Decision
	for _, rule := range rules {
		switch next, v := rule(f, d); {
		case v == passes:
			d = next
		case v == yields:
			yielded = &next
		case next.Step == Hold && yielded != nil:
			yielded.Rollout = d.Rollout
			return yielded.refuse(d.Refused)
		default:
			return next
		}
	}
	return d
}

// unreadable holds while the workers are not known.
func unreadable(f *facts, d Decision) (Decision, verdict) {
	if f.WorkersErr == "" {
		return d, passes
	}
	return d.hold(WorkersUnknown, "the workers are not known: %s", f.WorkersErr), decides
}

// openAction holds while an action is open. A scale-down is given up for launches that can be made
// and that are needed now.
func openAction(f *facts, d Decision) (Decision, verdict) {
	if f.Record.ActionKind() == "" {
		return d, passes
	}
	d.Want = aim(f, d.Recommended)
	if f.Record.ActionKind() == state.ActionDown {
		d.Want = aim(f, f.recommended.attainableNow())
	}
	return d.hold(ActionOpen, "a %s is open (%s)", f.Record.ActionKind(), f.recommended.load()), decides
}

// unsustained holds while a recommendation above the workers does not count yet.
func unsustained(f *facts, d Decision) (Decision, verdict) {
	reason, why := f.recommended.withheld(len(f.staying))
	if reason == "" {
		return d, passes
	}
	return d.hold(reason, "%s", why), decides
}
