package nodepool

import (
	"slices"

	"github.com/foresail/foresail/nodepool/provider"
)

// Notify takes messages of the cloud for the next cycle, which Run has made at once. Run passes on what Notices receives.
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

// later keeps messages for the next cycle, whenever that is: to hurry would bring nothing.
func (p *Pool) deferMessages(messages ...provider.Message) {
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
func (p *Pool) hasMessages() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.inbox) > 0
}

// unheard tells whether messages are kept for the next cycle.
func (p *Pool) hasDeferred() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.deferred) > 0
}
