package simulated

import (
	"context"
	"time"

	"github.com/foresail/foresail/nodepool/provider"
)

// How long Receive waits for notices, and how often it asks.
const (
	receiveFor   = 10 * time.Second
	receiveEvery = time.Second
)

// Receiver receives the notices of a simulated cloud.
type Receiver struct{ Cloud *Cloud }

var _ provider.Notices = Receiver{}

// Receive waits for notices for a while.
func (r Receiver) Receive(ctx context.Context) ([]provider.Message, error) {
	end := time.Now().Add(receiveFor)
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	ticker := time.NewTicker(receiveEvery)
	defer ticker.Stop()
	for {
		notices, err := r.Cloud.Notices(ctx)
		// A client may report that the time is over before the context does, and with an error of its own.
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
func (r Receiver) Done(ctx context.Context, m provider.Message) error {
	return r.Cloud.Heard(ctx, Notice{InstanceID: m.InstanceID, Deadline: m.Deadline})
}

func messages(notices []Notice) []provider.Message {
	var out []provider.Message
	for _, n := range notices {
		m := provider.Message{InstanceID: n.InstanceID, Kind: provider.MessageInterruption, Deadline: n.Deadline}
		if n.Deadline.IsZero() {
			m.Kind = provider.MessageRebalance
		}
		out = append(out, m)
	}
	return out
}
