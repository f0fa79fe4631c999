package provider

import (
	"context"
	"time"
)

// Message is a notice of the cloud about an instance.
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

// Notices receives the messages of the cloud. Each pool has its own queue, and deletes messages about other instances.
type Notices interface {
	// Receive waits for messages for a limited time. Messages that are not done are received again later.
	Receive(ctx context.Context) ([]Message, error)
	Done(ctx context.Context, m Message) error
}
