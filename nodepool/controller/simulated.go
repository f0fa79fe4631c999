package controller

import (
	"context"
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
	end := time.Now().Add(listenFor)
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	ticker := time.NewTicker(listenEvery)
	defer ticker.Stop()
	for {
		notices, err := s.Cloud.Notices(ctx)
		// A client may say in its own words, and before the context does, that its time is over.
		if err != nil && !time.Now().Before(end) {
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
