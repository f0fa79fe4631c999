package plan

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Decide tells what a pool does next. The rules are asked in this order, and the first one that holds decides:
//
//  1. Workers that cannot be read: nothing.
//  2. A pool that is being deleted: remove all of them, and launch nothing.
//  3. Fewer workers than the minimum, or some that the cloud takes back while they are needed: launch, past cooldowns and
//     beside an open scale-down.
//  4. An open action: nothing, but for a scale-up that has room left in its batch: what rises meanwhile joins it.
//  5. More workers than the maximum, which somebody has lowered: remove.
//  6. A voice that asks for more workers than there are, and has for long enough: launch.
//  7. One that has not for long enough, or alone where all must ask: nothing.
//  8. Outdated workers: remove those that are to spare, and launch what replaces others first, as budgets allow.
//  9. A pool that has been idle for long enough, and whose other workers carry the load: remove. If it consolidates, also one that is
//     not idle and has had more workers than it needs for as long.
//
// Launches are held back by the maximum, the cooldown, launches that keep failing and placements that are cooling;
// removals by anything that is not known, by too many unready workers, the cooldown, and workers that must not go.
func Decide(s Snapshot) Decision {
	v := newView(s)
	d := v.decide()
	d.Candidates = v.candidates(d)
	d.Rollout = v.rollout(d)
	d.Repairs, d.RepairHeld = v.repaired.begun, v.repaired.held
	d.Interruptions, d.Advice, d.Deferred, d.Cooling = v.heard.interruptions, v.heard.advice, v.heard.later, v.heard.cooling
	d.Substitutes, d.Replacements = v.substitutes(d)
	d.Upkeep = v.upkeep(d.GiveUp)
	d.LetGo = v.Pool.Deleting && !v.EmptySince.IsZero() && v.Now.Sub(v.EmptySince) >= v.Pool.VanishGrace
	d.Replacing = v.replacing(d)
	return d
}

func (v *view) decide() Decision {
	d := v.undecided()
	n := len(v.staying)
	switch floor, reason := v.floor(); {
	case v.WorkersErr != "":
		return d.hold(WorkersUnknown, "the workers are not known: %s", v.WorkersErr)
	case v.Pool.Deleting:
		return v.empty(d)
	case n < floor:
		return v.refill(d, floor, reason)
	case v.joins(d.Recommended):
		return v.extend(d)
	case v.State.Action != "":
		d.Want = v.aim(d.Recommended)
		if v.State.Action == ActionDown { // it is not given up for what cannot be launched, or is likely to be needed later
			d.Want = v.aim(v.attainableNow())
		}
		return d.hold(ActionOpen, "a %s is open (%s)", v.State.Action, v.load())
	case n > v.Pool.Max:
		return v.trim(d)
	case d.Recommended > n:
		up := v.grow(d)
		if up.Step != Hold || v.attainable() > n {
			return up
		}
		if down := v.reduce(d); down.Step != Hold { // what cannot be launched holds up nothing else
			return down
		}
		return up.refuse(v.homeless)
	}
	return v.reduce(d)
}

// reduce replaces outdated workers and removes those that are not needed.
func (v *view) reduce(d Decision) Decision {
	if reason, why := v.withheld(); reason != "" {
		return d.hold(reason, "%s", why)
	}
	r := v.rollOut(d)
	if r.Step == Hold {
		r = v.shrink(d)
	}
	return r.refuse(v.homeless)
}

// view is a snapshot with what several rules need of it.
type view struct {
	Snapshot
	staying         []Worker // that count and that the cloud does not take back
	taken           int      // that it does, and unhealthy ones that are being replaced
	noticed         map[string]bool
	recommendations []recommendation
	expected        demand
	idle            idleness
	seen            map[string]*Instance // by id
	removals        map[string]*Removal  // that are open, by instance
	heard           heard
	repaired        repair
	held            string    // why no outdated worker is replaced, if that was asked
	homeless        []Refusal // outdated workers whose pods would have no other node
}

func newView(s Snapshot) *view {
	s.Pool = s.Pool.defaulted()
	v := &view{Snapshot: s, seen: map[string]*Instance{}, removals: map[string]*Removal{}}
	for i := range s.Instances {
		if in := &s.Instances[i]; in.ID != "" {
			v.seen[in.ID] = in
		}
	}
	for i := range s.State.Removals {
		v.removals[s.State.Removals[i].InstanceID] = &s.State.Removals[i]
	}
	v.heard = v.hear()
	v.staying, v.taken = stay(v.Snapshot)
	v.noticed = noticed(v.Snapshot)
	if v.repaired = v.repair(); len(v.repaired.begun) > 0 {
		v.staying, v.taken = stay(v.Snapshot)
		v.noticed = noticed(v.Snapshot)
	}
	v.recommendations = v.recommend()
	v.expected = v.demand()
	v.recommendations = append(v.recommendations, v.fromDemand()...)
	v.idle = v.idleness()
	return v
}

// Batch is the most nodes that one scale-up launches.
func (p Pool) Batch() int {
	if p.MaxBatchUp < 1 {
		return MaxBatch
	}
	return min(p.MaxBatchUp, MaxBatch)
}

func (p Pool) defaulted() Pool {
	if p.Mode == "" {
		p.Mode = Any
	}
	p.MaxBatchUp = p.Batch()
	p.MaxBatchDown = min(max(1, p.MaxBatchDown), MaxBatch)
	if len(p.RemovalOrder) == 0 {
		p.RemovalOrder = []Scorer{FullestZone, Idlest, FewestPods, Oldest}
	}
	if p.DistrustShare == 0 {
		p.DistrustShare = DefaultDistrustShare
	}
	if p.DistrustCount == 0 {
		p.DistrustCount = DefaultDistrustCount
	}
	if p.MaxFailureBackoff == 0 {
		p.MaxFailureBackoff = DefaultMaxFailureBackoff
	}
	return p
}

// stay returns the workers that count and stay, and how many the cloud takes back.
func stay(s Snapshot) (staying []Worker, taken int) {
	noticed := noticed(s)
	for _, w := range s.Workers {
		switch {
		case w.Failed:
		case noticed[w.InstanceID]:
			taken++
		case w.Counts():
			staying = append(staying, w)
		}
	}
	return staying, taken
}

// noticed are the instances that the cloud takes back.
func noticed(s Snapshot) map[string]bool {
	out := make(map[string]bool, len(s.Notices))
	for _, n := range s.Notices {
		out[n.InstanceID] = true
	}
	return out
}

func (v *view) undecided() Decision {
	return Decision{
		At: v.Now, Step: Hold, Workers: len(v.staying), Want: len(v.staying),
		Recommended: v.recommended(), Recommendations: v.ranked(), IdleSince: v.idleSince(), SpareSince: v.spareSince(), Demand: v.expected.history,
	}
}

// hold gives a decision to do nothing its reason.
func (d Decision) hold(reason Reason, format string, args ...any) Decision {
	d.Step, d.Reason = Hold, reason
	d.Message = fmt.Sprintf("No change to %s: ", count(d.Workers, "worker")) + fmt.Sprintf(format, args...)
	return d
}

// floor is the number of workers below which nothing waits, and the reason for a launch to get there: the minimum, and
// workers that the cloud takes back as far as they are needed. Without a forecast all of them are.
func (v *view) floor() (int, Reason) {
	before := len(v.staying) + v.taken
	needed, signals := 0, 0
	for _, r := range v.recommendations {
		needed = max(needed, r.Nodes)
		if r.signal {
			signals++
			if !r.Known {
				needed = math.MaxInt
			}
		}
	}
	if signals == 0 {
		needed = math.MaxInt
	}
	reason := v.takenFor()
	if before < v.Pool.Min {
		reason = BelowMinimum
	}
	return min(max(v.Pool.Min, min(before, needed)), v.Pool.Max), reason
}

// aim is what is next on the way to the number of workers that is asked for.
func (v *view) aim(recommended int) int {
	n := len(v.staying)
	return max(n, min(recommended, v.Pool.Max, add(n, v.batchUp())))
}

// batchUp is the most nodes that may be launched now. While launches fail, one is enough to see whether they still do.
func (v *view) batchUp() int {
	if v.State.Failures > 0 {
		return 1
	}
	return v.Pool.MaxBatchUp
}

// refill launches what is missing to the floor. If nothing speaks against more, it launches what is asked for.
func (v *view) refill(d Decision, floor int, reason Reason) Decision {
	why := fmt.Sprintf("the minimum is %d", v.Pool.Min)
	if v.taken > 0 {
		why = fmt.Sprintf("%s, and %d are needed", v.taking(), floor)
	}
	target := floor
	if v.State.Action == "" && v.coolsUp() <= 0 {
		target = max(floor, d.Recommended)
	}
	d.Want = v.aim(target)
	if v.State.Action != "" && v.State.Action != ActionDown {
		return d.hold(ActionOpen, "a %s is open (%s)", v.State.Action, why)
	}
	d.Urgent = true
	return v.launch(d, recommendation{cause: reason, Recommendation: Recommendation{Reason: why}})
}

// grow launches what the largest voice asks for.
func (v *view) grow(d Decision) Decision {
	d.Want = v.aim(d.Recommended)
	dominant := v.dominant()
	if len(v.staying) >= v.Pool.Max {
		return d.hold(AtMaximum, "%d are recommended and the maximum is %d (%s)", d.Recommended, v.Pool.Max, dominant.Reason)
	}
	if left := v.coolsUp(); left > 0 {
		return d.hold(CoolingDown, "%d are recommended, and the cooldown of scale-ups, %s, has %s left (%s)",
			d.Recommended, v.Pool.CooldownUp, short(left), dominant.Reason)
	}
	return v.launch(d, dominant)
}

// joins tells whether more is asked for than the open scale-up will bring, and it has room.
func (v *view) joins(recommended int) bool {
	return v.State.Action == ActionUp && v.State.Room > 0 && v.State.Failures == 0 && len(v.Notices) == 0 &&
		min(recommended, v.Pool.Max) > add(len(v.staying), v.State.Planned)
}

// extend launches what is asked for beyond an open scale-up as a part of it: a rise is not over when its first nodes have
// been asked for, and the next batch would come a whole launch later.
func (v *view) extend(d Decision) Decision {
	there := len(v.staying) + v.State.Planned
	d.Want = min(d.Recommended, v.Pool.Max, add(there, min(v.State.Room, v.batchUp())))
	dominant := v.dominant()
	d.Placements, d.Alternatives, d.Pinned = v.place(min(d.Want-there, v.places()-v.State.Planned), d.Recommended-there, dominant)
	if len(d.Placements) == 0 {
		return d.hold(ActionOpen, "a %s is open, and what else could be launched is cooling after errors (%s)", v.State.Action, dominant.Reason)
	}
	aim := d.Want
	d.Want = there + len(d.Placements)
	d.Step, d.Reason = ScaleUp, dominant.cause
	d.Message = fmt.Sprintf("Launch %d more beside %s, in the open scale-up: %s%s",
		len(d.Placements), count(there, "worker"), dominant.Reason, v.limits(max(aim, d.Recommended), d.Want))
	return d
}

// launch places the nodes to d.Want, unless launches fail or nothing can be launched anywhere.
func (v *view) launch(d Decision, r recommendation) Decision {
	urgent, why := d.Urgent, r.Reason
	d.Urgent = false
	if left := v.backsOffFor(urgent); left > 0 {
		return d.hold(BackingOff, "%d are recommended, and nothing joined in the last %s: the next is tried in %s (%s)",
			d.Want, count(v.State.Failures, "scale-up"), short(left), why)
	}
	n, places := len(v.staying), v.places()
	if len(v.Offers) == 0 {
		return d.hold(LaunchesUnknown, "%d are recommended, and what can be launched is not known: %s (%s)", d.Want, cmp.Or(v.OffersErr, "nothing is offered"), why)
	}
	d.GiveUp = v.kept(d.Want - n - places)
	if places == 0 {
		return v.full(d, why)
	}
	d.Placements, d.Alternatives, d.Pinned = v.place(min(d.Want-n, places), max(d.Want, d.Recommended)-n, r)
	if len(d.Placements) == 0 {
		return v.exhausted(d, r)
	}
	aim := d.Want
	d.Want = n + len(d.Placements)
	d.Step, d.Reason, d.Urgent = ScaleUp, r.cause, urgent
	d.Message = fmt.Sprintf("Launch %d beside %s: %s%s", len(d.Placements), count(n, "worker"), why, v.limits(max(aim, d.Recommended), d.Want))
	return d
}

// exhausted holds as nothing that would help can be launched: a node that helps nobody would be followed by another.
func (v *view) exhausted(d Decision, r recommendation) Decision {
	if len(Place(v.Snapshot, 1)) > 0 {
		return d.hold(InsufficientCapacity, "%d are recommended, and every kind of instance that the pending pods could run on is cooling after errors (%s)",
			d.Want, r.Reason)
	}
	return d.hold(InsufficientCapacity, "%d are recommended, and all %d kinds of instance that could be launched are cooling after errors (%s)",
		d.Want, len(v.Offers), r.Reason)
}

// full holds as workers and instances that did not join are as many as the maximum: while nobody looks at those, there would
// be more and more of them.
func (v *view) full(d Decision, why string) Decision {
	failed := 0
	for _, w := range v.Workers {
		if w.Failed && !w.Leaving {
			failed++
		}
	}
	if len(d.GiveUp) > 0 {
		return d.hold(InsufficientCapacity, "%d are recommended, and of %s that did not join some must be terminated first, as the maximum is %d (%s)",
			d.Want, count(failed, "instance"), v.Pool.Max, why)
	}
	return d.hold(InsufficientCapacity, "%d are recommended, and %s that did not join or are broken are kept, with which the maximum of %d is reached: terminate some, or set join.keepFailed to false (%s)",
		d.Want, count(failed, "instance"), v.Pool.Max, why)
}

// places is how many more instances the maximum allows. One that did not join has its place until it is gone, and so have
// broken ones, but for one in ten, which are replaced at once. One that leaves or that the cloud takes back has none.
func (v *view) places() int {
	failed, broken := 0, 0
	for _, w := range v.Workers {
		switch {
		case w.Leaving || !w.Failed:
		case w.Broken:
			broken++
		default:
			failed++
		}
	}
	return max(0, v.Pool.Max-len(v.staying)-failed-max(0, broken-max(1, v.Pool.Max/10)))
}

// kept returns up to n instances that did not join and are kept to be looked at, the oldest first.
func (v *view) kept(n int) []string {
	var out []string
	for _, w := range v.Workers {
		if w.Kept && !w.Leaving && len(out) < n {
			out = append(out, w.InstanceID)
		}
	}
	return out
}

// limits tells why fewer nodes are launched than were asked for.
func (v *view) limits(recommended, want int) string {
	if recommended <= want {
		return ""
	}
	switch {
	case want == v.Pool.Max:
		return fmt.Sprintf("; %d are recommended and the maximum is %d", recommended, v.Pool.Max)
	case v.State.Failures > 0:
		return fmt.Sprintf("; %d are recommended, and one is tried while launches fail", recommended)
	}
	return fmt.Sprintf("; %d are recommended, and one step goes to %d", recommended, want)
}

// add is a + b, or the largest int: neither is negative.
func add(a, b int) int {
	if b > math.MaxInt-a {
		return math.MaxInt
	}
	return a + b
}

// count is a number of things for people.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// short is a duration for people, rounded up to seconds so that what is left is never nothing.
func short(d time.Duration) time.Duration {
	if r := d.Round(time.Second); r >= d || r > math.MaxInt64-time.Second {
		return r
	}
	return d.Round(time.Second) + time.Second
}
