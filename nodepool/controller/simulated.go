package controller

import (
	"context"
	"errors"
	"time"

	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/simulated"
)

// How long a simulated cloud is listened to at a time, and how often it is asked.
const (
	listenFor   = 10 * time.Second
	listenEvery = time.Second
)

// SimulatedNotices tells what a simulated cloud says of instances that it takes back.
type SimulatedNotices struct{ Cloud *simulated.Cloud }

var _ nodepool.Notices = SimulatedNotices{}

// Receive waits for notices for a while.
func (s SimulatedNotices) Receive(ctx context.Context) ([]nodepool.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, listenFor)
	defer cancel()
	ticker := time.NewTicker(listenEvery)
	defer ticker.Stop()
	for {
		notices, err := s.Cloud.Notices(ctx)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
			return nil, nil
		}
		if err != nil || len(notices) > 0 {
			return messages(notices), err
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-ticker.C:
		}
	}
}

// Done keeps a message from coming again.
func (s SimulatedNotices) Done(ctx context.Context, m nodepool.Message) error {
	return s.Cloud.Heard(ctx, simulated.Notice{InstanceID: m.InstanceID, Deadline: m.Deadline})
}

func messages(notices []simulated.Notice) []nodepool.Message {
	var out []nodepool.Message
	for _, n := range notices {
		m := nodepool.Message{InstanceID: n.InstanceID, Kind: nodepool.MessageInterruption, Deadline: n.Deadline}
		if n.Deadline.IsZero() {
			m.Kind = nodepool.MessageRebalance
		}
		out = append(out, m)
	}
	return out
}
