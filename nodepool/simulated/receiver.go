package simulated

import (
	"context"
	"time"

	"github.com/foresail/foresail/nodepool/provider"
)

const (
	// receiveFor bounds how long Receive waits for messages, and receiveEvery is how often it reads them.
	receiveFor   = 10 * time.Second
	receiveEvery = time.Second
)

// Receiver receives the messages of a simulated cloud.
type Receiver struct{ Cloud *Cloud }

var _ provider.Notices = Receiver{}

// Receive implements [provider.Notices].
func (r Receiver) Receive(ctx context.Context) ([]provider.Message, error) {
	end := time.Now().Add(receiveFor)
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	ticker := time.NewTicker(receiveEvery)
	defer ticker.Stop()
	for {
		messages, err := r.Cloud.Messages(ctx)
		// A client may fail shortly before the deadline of the context, with an error of its own.
		if err != nil && !time.Now().Before(end) {
			return nil, nil
		}
		if err != nil || len(messages) > 0 {
			return messages, err
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-ticker.C:
		}
	}
}

// Done implements [provider.Notices].
func (r Receiver) Done(ctx context.Context, m provider.Message) error {
	return r.Cloud.Done(ctx, m)
}
