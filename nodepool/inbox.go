package nodepool

import (
	"fmt"
	"slices"
	"sync"

	"github.com/foresail/foresail/nodepool/provider"
)

// inbox holds messages of the cloud until a cycle has decided about them. It is safe for concurrent
// use.
type inbox struct {
	mu         sync.Mutex
	fresh      []provider.Message // not processed by any cycle yet
	deferred   []provider.Message // put back by a cycle
	receiveErr error
}

// add adds messages for the next cycle. Of messages with the same report about the same instance it
// keeps the last one, whose handle is valid.
func (b *inbox) add(messages ...provider.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range messages {
		b.fresh = append(without(b.fresh, m), m)
		b.deferred = without(b.deferred, m)
	}
}

// deferMessages keeps messages for the next cycle without triggering one, which could do nothing with
// them either.
func (b *inbox) deferMessages(messages ...provider.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range messages {
		if !slices.ContainsFunc(b.fresh, like(m)) {
			b.deferred = append(without(b.deferred, m), m)
		}
	}
}

// take empties the inbox, and returns why messages may be missing.
func (b *inbox) take() ([]provider.Message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := append(b.deferred, b.fresh...)
	b.deferred, b.fresh = nil, nil
	return out, b.receiveErr
}

// hasFresh reports whether there are messages that no cycle has processed.
func (b *inbox) hasFresh() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.fresh) > 0
}

// hasDeferred reports whether messages were put back.
func (b *inbox) hasDeferred() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.deferred) > 0
}

// setReceiveErr records why messages cannot be received; nil clears it.
func (b *inbox) setReceiveErr(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.receiveErr = nil
	if err != nil {
		b.receiveErr = fmt.Errorf("receive messages of the cloud: %w", err)
	}
}

// like returns a function that reports whether another message has the same report about the same
// instance.
func like(m provider.Message) func(provider.Message) bool {
	return func(other provider.Message) bool { return m.InstanceID == other.InstanceID && m.Kind == other.Kind }
}

func without(messages []provider.Message, m provider.Message) []provider.Message {
	return slices.DeleteFunc(messages, like(m))
}
