package act

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

const (
	// PerLaunch bounds the instances of one call. EC2 allows two calls a second for an account and
	// region, and half of that is left to other clients, so 500 instances in a minute need calls for
	// several. EC2 advises against more than a hundred.
	PerLaunch = 50
	// LaunchesAtOnce is the number of such calls made at the same time.
	LaunchesAtOnce = 4
	// RetryMin is the wait before the same launch is retried. It doubles up to [state.RetryMax].
	RetryMin = 2 * time.Second
)

// launcher launches the slots of the open scale-up.
type launcher struct {
	c       *cycle
	random  *rand.Rand // for the jitter of retries
	calling []string   // tokens of the calls that are being made
}

// joinLaunches assigns slots with the same parameters to one call, up to its limit.
//
// All instances of a call have the same tags, so no instance belongs to a certain slot before the
// journal records it: it takes any planned slot with the token of its tag, unless a slot has it
// already.
func joinLaunches(a *state.Action, slots []*state.Slot) {
	var order []string
	byParameters := map[string][]*state.Slot{}
	for _, s := range slots {
		key := fmt.Sprintf("%q %s", s.Placement, strings.Join(s.Alternatives, " "))
		if byParameters[key] == nil {
			order = append(order, key)
		}
		byParameters[key] = append(byParameters[key], s)
	}
	for _, key := range order {
		for call := range slices.Chunk(byParameters[key], PerLaunch) {
			joinLaunch(a, call)
		}
	}
}

// joinLaunch gives slots the token of one call. The token names the first of them and its attempt,
// which no earlier call had.
func joinLaunch(a *state.Action, slots []*state.Slot) {
	for _, s := range slots {
		s.Token = state.Token(a.ID, slots[0].Number, slots[0].Attempt, len(slots))
	}
}

// adopt finds instances whose launch was not recorded because the process ended or the answer was
// lost.
func (x *launcher) adopt(ctx context.Context, a *state.Action) error {
	adopted := false
	for _, id := range slices.Sorted(maps.Keys(x.c.seen.Instances)) {
		i := x.c.seen.Instances[id]
		if i.Action == a.ID && i.State != fleet.Leaving {
			adopted = x.takeSlot(a, i) || adopted
		}
	}
	if !adopted {
		return nil
	}
	return x.c.save(ctx)
}

// takeSlot assigns an instance to a planned slot with its token. It returns false if there is none,
// or the instance already has a slot.
func (x *launcher) takeSlot(a *state.Action, i fleet.Instance) bool {
	if slices.ContainsFunc(a.Slots, func(s state.Slot) bool { return s.InstanceID == i.ID }) {
		return false
	}
	slots := a.Planned(i.Token)
	if len(slots) == 0 {
		return false
	}
	x.launched(slots[0], i)
	return true
}

// launched assigns an instance to a slot.
func (x *launcher) launched(s *state.Slot, i fleet.Instance) {
	s.State, s.InstanceID, s.ProviderID, s.Error = state.SlotLaunched, i.ID, i.ProviderID, ""
	if slices.Contains(s.Alternatives, i.InstanceType) {
		s.InstanceType = i.InstanceType
	}
	s.Alternatives = nil
	if s.Requested.IsZero() {
		s.Requested = x.c.now()
	}
	x.c.event(journal.Event{
		Reason: journal.EventLaunched, Instance: i.ID, Action: x.c.record.Action.ID,
		Message: fmt.Sprintf("Launched %s: %s %s in %s", i.ID, s.Market, s.InstanceType, s.Zone),
	})
}

// launchPlanned makes the calls for planned slots, a few at a time, until none is due or the cycle
// is out of time. It makes some in each cycle even if messages keep arriving, as when many
// instances are reclaimed: they would delay the replacements.
func (x *launcher) launchPlanned(ctx context.Context) error {
	for began, more := x.c.now(), true; more; more = x.c.now().Sub(began) <= ActFor && !x.c.hasMessages() {
		tokens, changed := x.nextLaunches()
		if changed {
			if err := x.c.save(ctx); err != nil {
				return err
			}
		}
		if len(tokens) == 0 {
			return nil
		}
		x.calling = tokens
		err := x.c.each(ctx, len(tokens), func(i int) error { return x.launch(ctx, tokens[i]) })
		x.calling = nil
		if err != nil {
			return err
		}
	}
	return nil
}

// nextLaunches returns the tokens of the calls to make now, and whether the record has changed:
// requests are recorded before they are made. A placement is first tried by one call, so that a
// refusal costs only one. Slots that have not been tried and whose placement has been refused
// meanwhile are lost without a call.
func (x *launcher) nextLaunches() (tokens []string, changed bool) {
	a, now := x.c.record.Action, x.c.now()
	trying := map[fleet.Placement]bool{}
	for i := range a.Slots {
		s := &a.Slots[i]
		switch {
		case s.State != state.SlotPlanned, now.Before(s.NotBefore), slices.Contains(tokens, s.Token):
		case now.Sub(a.Started) > x.c.seen.Spec.Join.Timeout:
			failSlot(x.c, s, fmt.Sprintf("no instance was launched in %s: %s", x.c.seen.Spec.Join.Timeout, s.Error))
			changed = true
		case s.Requested.IsZero() && x.c.cooler().cools(s):
			lose(s, "it was not requested, because its placement has just been refused", true)
			changed = true
		case len(tokens) == LaunchesAtOnce, trying[s.Placement] && !a.HasLaunched(s.Placement):
		default:
			tokens, trying[s.Placement] = append(tokens, s.Token), true
		}
	}
	for i := range a.Slots {
		if s := &a.Slots[i]; s.State == state.SlotPlanned && s.Requested.IsZero() && slices.Contains(tokens, s.Token) {
			s.Requested, changed = now, true
		}
	}
	return tokens, changed
}

// launchOf returns the call of a token. It does not change while slots of it are launched: the slot
// in its tags is always the first one.
func launchOf(a *state.Action, token string) provider.Launch {
	first := slices.IndexFunc(a.Slots, func(s state.Slot) bool { return s.Token == token })
	s := a.Planned(token)[0]
	return provider.Launch{
		Action: a.ID, Slot: a.Slots[first].Number, Token: token, Count: state.InstancesOf(token),
		Placement: s.Placement, Alternatives: s.Alternatives,
	}
}

// launch makes one call.
func (x *launcher) launch(ctx context.Context, token string) error {
	l := launchOf(x.c.record.Action, token)
	i, err := x.c.cloud.launch(ctx, l)
	switch {
	case err == nil:
		x.launchSucceeded(l, i)
	case endsCycle(err):
		return err
	case x.c.journal.MayAct() <= 0, ctx.Err() != nil:
		return fmt.Errorf("%w: %w", journal.ErrStop, err)
	default:
		x.launchFailed(l, err)
	}
	return x.c.save(ctx)
}

// launchSucceeded assigns instances to slots. Fewer than requested means that there is no more
// capacity.
func (x *launcher) launchSucceeded(l provider.Launch, i provider.Launched) {
	a := x.c.record.Action
	var kinds []string
	for _, one := range append([]fleet.Instance{i.Instance}, i.Others...) {
		x.takeSlot(a, one)
		kinds = append(kinds, one.InstanceType)
	}
	x.c.cooler().refused(l.Placement, i.Refusals, kinds...)
	rest := a.Planned(l.Token)
	if len(rest) == 0 {
		return
	}
	why := fmt.Sprintf("%d of %d instances were launched: there is no more capacity", l.Count-len(rest), l.Count)
	if !x.c.cooler().cools(rest[0]) {
		x.c.cooler().cool(provider.Capacity, l.Placement, why)
	}
	x.loseAll(rest, why, true)
}

// launchFailed handles the error of a call. A definitive error loses the slots, and the next
// decision finds substitutes. After others the same call is repeated, because it may have launched
// something.
func (x *launcher) launchFailed(l provider.Launch, err error) {
	a := x.c.record.Action
	slots := a.Planned(l.Token)
	switch class := provider.ClassOf(err); class {
	case provider.Unknown, provider.Throttled:
		x.retryLater(slots, err)
	case provider.TokenMismatch:
		// The token may have launched an instance with other parameters that is not listed yet.
		if x.c.now().Sub(slots[0].Requested) < x.c.seen.VanishGrace {
			x.retryLater(slots, err)
			return
		}
		x.loseAll(slots, provider.Reason(err), false)
	case provider.Capacity, provider.Quota, provider.Address, provider.ZoneCapacity, provider.AccountQuota:
		if splits(class) && len(slots) > 1 && len(l.Alternatives) == 0 {
			split(a, slots)
			return
		}
		x.coolRefused(l, class, err)
		x.loseAll(slots, provider.Reason(err), true)
	default:
		x.c.errs = append(x.c.errs, fmt.Errorf("launch slot %d of %s: %w", l.Slot, a.ID, err))
		x.c.cooler().suspect(l.Placement, provider.Reason(err))
		x.c.cooler().refused(l.Placement, provider.RefusalsOf(err))
		x.failAll(l.Token, provider.Reason(err))
	}
}

// coolRefused records what cannot be launched now, which includes the placement of the call.
func (x *launcher) coolRefused(l provider.Launch, class provider.Class, err error) {
	refusals := provider.RefusalsOf(err)
	x.c.cooler().refused(l.Placement, refusals)
	if cooling, _ := x.c.cooler().cooling(l.Placement); !cooling {
		if len(refusals) > 0 {
			class = provider.Capacity
		}
		x.c.cooler().cool(class, l.Placement, provider.Reason(err))
	}
}

// retryLater schedules the same call again, with the same token.
func (x *launcher) retryLater(slots []*state.Slot, err error) {
	tries := slots[0].Tries + 1
	first := !slices.ContainsFunc(x.c.record.Action.Slots, func(s state.Slot) bool { return s.Tries > 0 })
	at := x.c.now().Add(Backoff(x.random, tries, RetryMin, state.RetryMax))
	for _, s := range slots {
		s.Tries, s.NotBefore, s.Error = tries, at, provider.Reason(err)
	}
	x.c.errs = append(x.c.errs, fmt.Errorf("launch slot %d of %s: %w", slots[0].Number, x.c.record.Action.ID, err))
	if s := slots[0]; first { // usually the others fail for the same reason
		x.c.event(journal.Event{
			Reason: journal.EventLaunchRetried, Warning: true, Action: x.c.record.Action.ID,
			Message: fmt.Sprintf("Slot %d, %s %s in %s, is retried: %s", s.Number, s.Market,
				s.InstanceType, s.Zone, s.Error),
		})
	}
}

// splits reports whether a call for fewer instances may succeed. EC2 refuses a call that exceeds a
// quota or a subnet as a whole, even if part of it would fit.
func splits(c provider.Class) bool {
	return c == provider.Quota || c == provider.Address || c == provider.AccountQuota
}

// split plans the slots of a call again, in two calls. The first is for one instance until one has
// been launched at the placement, because nothing may be left there, and for half of them after
// that.
func split(a *state.Action, slots []*state.Slot) {
	for _, s := range slots {
		s.Attempt++
		s.Requested, s.NotBefore, s.Tries, s.Error = time.Time{}, time.Time{}, 0, ""
	}
	first := 1
	if a.HasLaunched(slots[0].Placement) {
		first = (len(slots) + 1) / 2
	}
	joinLaunch(a, slots[:first])
	joinLaunch(a, slots[first:])
}

// loseAll fails the slots of a call that launched nothing for them, until a substitute is decided
// on.
func (x *launcher) loseAll(slots []*state.Slot, why string, refused bool) {
	s := slots[0]
	more := ""
	if len(slots) > 1 {
		more = fmt.Sprintf(" and %d others", len(slots)-1)
	}
	x.c.event(journal.Event{
		Reason: journal.EventLaunchFailed, Warning: true, Action: x.c.record.Action.ID,
		Message: fmt.Sprintf("Slot %d%s, %s %s in %s: %s", s.Number, more, s.Market, s.InstanceType, s.Zone, why),
	})
	for _, s := range slots {
		lose(s, why, refused)
	}
}

func lose(s *state.Slot, why string, refused bool) {
	s.State, s.Error, s.Alternatives = state.SlotFailed, why, nil
	s.Lost, s.Refused = true, refused
}

// failAll fails all slots that are still to be launched, except those of other calls under way,
// which end by their own answers.
func (x *launcher) failAll(token, why string) {
	for i := range x.c.record.Action.Slots {
		s := &x.c.record.Action.Slots[i]
		if s.State == state.SlotPlanned && (s.Token == token || !slices.Contains(x.calling, s.Token)) {
			failSlot(x.c, s, why)
		}
	}
}

// failSlot fails a slot permanently.
func failSlot(c *cycle, s *state.Slot, why string) {
	s.State, s.Error, s.Alternatives = state.SlotFailed, why, nil
	c.event(journal.Event{
		Reason: journal.EventLaunchFailed, Warning: true, Instance: s.InstanceID, Action: c.record.Action.ID,
		Message: fmt.Sprintf("Slot %d, %s %s in %s: %s", s.Number, s.Market, s.InstanceType, s.Zone, why),
	})
}
