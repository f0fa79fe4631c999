package nodepool

import (
	"fmt"
	"slices"
	"sync"

	"github.com/foresail/foresail/nodepool/provider"
)

// inbox keeps messages of the cloud until a cycle has decided about them. It is safe for several goroutines.
type inbox struct {
	mu         sync.Mutex
	fresh      []provider.Message // that no cycle has looked at
	deferred   []provider.Message // that a cycle could do nothing with yet
	receiveErr error
}

// add keeps messages for the next cycle. Of messages that report the same about the same instance it keeps the last, as
// its handle is the one that works.
func (b *inbox) add(messages ...provider.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range messages {
		b.fresh = append(without(b.fresh, m), m)
		b.deferred = without(b.deferred, m)
	}
}

// putBack keeps messages for the next cycle, whenever that is: an early one could do nothing with them either.
func (b *inbox) putBack(messages ...provider.Message) {
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

// hasFresh reports whether there are messages that no cycle has looked at.
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

// setReceiveErr has cycles report why messages cannot be received; nil: they can.
func (b *inbox) setReceiveErr(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.receiveErr = nil
	if err != nil {
		b.receiveErr = fmt.Errorf("receive messages of the cloud: %w", err)
	}
}

// like returns whether another message reports the same about the same instance.
func like(m provider.Message) func(provider.Message) bool {
	return func(other provider.Message) bool { return m.InstanceID == other.InstanceID && m.Kind == other.Kind }
}

func without(messages []provider.Message, m provider.Message) []provider.Message {
	return slices.DeleteFunc(messages, like(m))
}
