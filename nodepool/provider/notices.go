package provider

import (
	"context"
	"time"
)

// Message is what the cloud reports about an instance without being asked.
type Message struct {
	InstanceID string
	Kind       string    // MessageInterruption, MessageRebalance or MessageStateChange
	Deadline   time.Time // of an interruption
	Handle     string    // of the message, for Done
}

// The kinds of a message.
const (
	MessageInterruption = "Interruption"
	MessageRebalance    = "Rebalance"
	MessageStateChange  = "StateChange"
)

// Notices receives the messages of the cloud. Each pool has a queue of its own: it deletes messages about instances that
// are not its own.
type Notices interface {
	// Receive waits a while for messages. A message that is not done comes again later.
	Receive(ctx context.Context) ([]Message, error)
	Done(ctx context.Context, m Message) error
}
