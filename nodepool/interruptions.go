package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// noticeTime is what an interruption leaves at most, and if its message does not say or says what cannot be: what EC2 gives
// Spot instances. A deadline that has passed was late, or is another's by a clock that is wrong; the drain has its time all
// the same, and the cloud does not wait for it. One further ahead is of a clock ahead of ours: to count on it would leave
// pods running when the instance goes.
const noticeTime = 2 * time.Minute

// Notify takes messages of the cloud for the next tick, which Run has made at once. Run passes on what Notices receives.
// Of messages that say the same of the same instance it keeps the last, whose handle is the one that works.
func (p *Pool) Notify(messages ...provider.Message) {
	p.mu.Lock()
	for _, m := range messages {
		p.inbox = append(without(p.inbox, m), m)
		p.deferred = without(p.deferred, m)
	}
	p.mu.Unlock()
	p.wake()
}

// later keeps messages for the next tick, whenever that is: to hurry would bring nothing.
func (p *Pool) later(messages ...provider.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range messages {
		if !slices.ContainsFunc(p.inbox, like(m)) {
			p.deferred = append(without(p.deferred, m), m)
		}
	}
}

// like returns whether another message reports the same about the same instance.
func like(m provider.Message) func(provider.Message) bool {
	return func(other provider.Message) bool { return m.InstanceID == other.InstanceID && m.Kind == other.Kind }
}

func without(messages []provider.Message, m provider.Message) []provider.Message {
	return slices.DeleteFunc(messages, like(m))
}

// messages empties the inbox, with what was kept for later, and returns why it is not filled.
func (p *Pool) messages() ([]provider.Message, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := append(p.deferred, p.inbox...)
	p.deferred, p.inbox = nil, nil
	return out, p.receiveErr
}

// spoken tells whether there are messages that have not been looked at.
func (p *Pool) spoken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.inbox) > 0
}

// unheard tells whether messages are kept for the next tick.
func (p *Pool) unheard() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.deferred) > 0
}

// takeMessages puts interruptions into the journal; only then is the queue told that they have been heard. Messages that
// cannot be taken now stay for the next tick.
func (t *tick) takeMessages(ctx context.Context) error {
	messages, err := t.messages()
	if err != nil {
		t.errs = append(t.errs, err)
	}
	if t.spec.DryRun || len(messages) == 0 {
		return nil // the queue tells again what it has not been told to be done
	}
	var heard []provider.Message
	added := false
	for _, m := range messages {
		switch m.Kind {
		case provider.MessageInterruption:
			if t.sightings[m.InstanceID] == nil && t.listErr != nil {
				t.later(m) // whose it is cannot be told
				continue
			}
			added = t.interrupted(m) || added
		case provider.MessageRebalance:
			if err := t.carryOn(ctx, t.advised(ctx, m)); err != nil {
				t.later(messages...)
				return err
			}
		}
		heard = append(heard, m)
	}
	if added {
		if err := t.save(ctx); err != nil {
			t.later(heard...)
			return err
		}
	}
	if t.options.Notices == nil {
		return nil
	}
	for _, m := range heard {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := t.options.Notices.Done(call, m)
		cancel()
		if err != nil {
			t.errs = append(t.errs, fmt.Errorf("end the message about %s: %w", m.InstanceID, err))
		}
	}
	return nil
}

// interrupted notes that the cloud takes an instance back, and tells whether the record has changed.
func (t *tick) interrupted(m provider.Message) bool {
	known := t.sightings[m.InstanceID]
	if known == nil || t.interruption(m.InstanceID) != nil || t.went(m.InstanceID) {
		return false // another's, or known already, or told again: there is nothing left to be drained
	}
	r := state.Removal{
		InstanceID: m.InstanceID, ProviderID: known.instance.ProviderID, Zone: known.instance.Zone,
		State: state.RemovalPlanned, Since: t.options.Now(), Deadline: m.Deadline,
	}
	if ahead := r.Deadline.Sub(r.Since); ahead <= 0 || ahead > noticeTime {
		r.Deadline = r.Since.Add(noticeTime)
	}
	if n := t.node(known.instance); n != nil {
		if controlPlane(n.Object) {
			return false
		}
		r.Node = n.Object.Name
	}
	if target := t.target(m.InstanceID); target != nil {
		if target.State == state.RemovalDrained || target.State == state.RemovalTerminated {
			return false // it is about to go anyway
		}
		// Nobody desired it, so that nothing replaces it. The interruption goes on where the scale-down was.
		target.State, target.Since, target.Error = state.RemovalFailed, r.Since, "the cloud reclaims the instance"
		r.Replaced = true
	}
	if p := known.instance.Placement; p.Market == plan.Spot {
		t.cool(provider.Capacity, p, "the cloud reclaims "+m.InstanceID) // its replacement would be the next to go
	}
	t.record.Interruptions = append(t.record.Interruptions, r)
	slices.SortStableFunc(t.record.Interruptions, func(a, b state.Removal) int { return a.Deadline.Compare(b.Deadline) })
	t.event(Event{
		Reason: EventInterrupted, Warning: true, Instance: m.InstanceID, Node: r.Node,
		Message: fmt.Sprintf("The cloud reclaims %s at %s", m.InstanceID, r.Deadline.UTC().Format(time.RFC3339)),
	})
	return true
}

// went tells whether an instance has gone, or is on its way out of the cloud.
func (t *tick) went(instance string) bool {
	i, listed := t.instances[instance]
	return listed && i.State == provider.Leaving || t.gone(instance)
}

// advised hears that an instance is likely to be taken back.
func (t *tick) advised(ctx context.Context, m provider.Message) error {
	known := t.sightings[m.InstanceID]
	if known == nil {
		return nil
	}
	n := t.node(known.instance)
	if n == nil || controlPlane(n.Object) {
		return nil
	}
	t.event(Event{Reason: EventRebalance, Instance: m.InstanceID, Node: n.Object.Name, Message: fmt.Sprintf("The cloud advises to leave %s", m.InstanceID)})
	if !t.spec.Drain.CordonOnRebalance {
		return nil
	}
	return t.act.cordon(ctx, n.Object.Name)
}

func (t *tick) interruption(instance string) *state.Removal {
	at := slices.IndexFunc(t.record.Interruptions, func(r state.Removal) bool { return r.InstanceID == instance })
	if at < 0 {
		return nil
	}
	return &t.record.Interruptions[at]
}

// target returns the removal of an instance in the open scale-down, nil if there is none or it has ended.
func (t *tick) target(instance string) *state.Removal {
	if t.record.Action == nil {
		return nil
	}
	for i := range t.record.Action.Targets {
		if r := &t.record.Action.Targets[i]; r.InstanceID == instance && !done(*r) {
			return r
		}
	}
	return nil
}

// leaves tells whether an instance is being removed.
func (t *tick) leaves(instance string) bool {
	return instance != "" && (t.interruption(instance) != nil || t.target(instance) != nil)
}

// advanceInterruptions drains the instances that the cloud takes back, the soonest first, and asks for replacements in an
// open scale-up. Without one, the decision begins one: it has been told of the notices.
func (t *tick) advanceInterruptions(ctx context.Context) error {
	if err := t.replaceInterrupted(ctx); err != nil {
		return err
	}
	ids := make([]string, 0, len(t.record.Interruptions))
	for _, r := range t.record.Interruptions {
		ids = append(ids, r.InstanceID)
	}
	var errs []error
	for _, id := range ids {
		m := removing{tick: t, action: "interruption-" + id, urgent: true, find: func() *state.Removal { return t.interruption(id) }}
		if err := m.advance(ctx); errors.Is(err, errStop) || errors.Is(err, errLeaseLost) {
			return err
		} else if err != nil {
			errs = append(errs, err)
		}
	}
	before := len(t.record.Interruptions)
	t.record.Interruptions = slices.DeleteFunc(t.record.Interruptions, done)
	if len(t.record.Interruptions) != before {
		if err := t.save(ctx); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// replaceInterrupted adds slots to an open scale-up, one for each instance that is taken back, as far as the decision wants
// workers.
func (t *tick) replaceInterrupted(ctx context.Context) error {
	a := t.record.Action
	if a == nil || a.Kind != plan.ActionUp {
		return nil
	}
	added := false
	for i := range t.record.Interruptions {
		r := &t.record.Interruptions[i]
		s := t.placing()
		if r.Replaced || expected(s.Workers) >= t.decision.Want {
			continue
		}
		for _, p := range plan.Place(s, 1) {
			addSlot(a, p, nil, false)
			r.Replaced, added = true, true
			t.event(Event{
				Reason: EventReplacement, Instance: r.InstanceID, Node: r.Node, Action: a.ID,
				Message: fmt.Sprintf("Slot %d takes the place of %s: %s %s in %s", len(a.Slots)-1, r.InstanceID, p.Market, p.InstanceType, p.Zone),
			})
		}
	}
	if !added {
		return nil
	}
	return t.save(ctx)
}
