package prometheus

import (
	"context"
	"fmt"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/internal/promapi"
)

// server is one address that is asked.
type server struct {
	client *promapi.Client
	slots  chan struct{} // of queries under way
	groups int           // that ask it; the source's lock guards it
}

// connect prepares to ask a server. The caller holds the lock.
func (s *Source) connect(address string) (*server, error) {
	client, err := s.connector.Connect(address)
	if err != nil {
		return nil, err
	}
	return &server{client: client, slots: make(chan struct{}, s.options.Concurrency)}, nil
}

// enter waits for a slot; false: ctx has ended.
func (v *server) enter(ctx context.Context) bool {
	select {
	case v.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (v *server) exit() { <-v.slots }

// rangeVector asks for the samples of a selector over a span that ends now, as the server's clock has it.
//
// The range stands on a line of its own, so that a comment at the end of the selector cannot hide it.
func (v *server) rangeVector(ctx context.Context, selector string, span time.Duration, options ...v1.Option) (model.Matrix, v1.Warnings, error) {
	query := fmt.Sprintf("%s\n[%ds]", selector, wholeSeconds(span)/time.Second)
	value, warnings, err := v.client.Query(ctx, query, time.Time{}, options...)
	if err != nil {
		return nil, nil, err
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, nil, &typeError{value.Type()}
	}
	return matrix, warnings, nil
}

// wholeSeconds rounds up, since Prometheus takes no fractions.
func wholeSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// typeError is an answer that is no range vector.
type typeError struct{ got model.ValueType }

func (e *typeError) Error() string { return fmt.Sprintf("the answer is a %s", e.got) }
