package keda

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
)

const (
	// period is the time between two checks of a stream for changes. Snapshots are made as often.
	period = time.Second
	// wakePause is the shortest time between two messages of one stream that a trigger is active. KEDA
	// writes the status of the ScaledObject at each.
	wakePause = 10 * time.Second
)

// streamLifetime spreads the ends of streams that were opened together, as at a restart of KEDA.
func streamLifetime() time.Duration { return maxStreamLifetime - rand.N(maxStreamLifetime/5) }

// activity of a trigger, as far as it is known.
type activity int

const (
	unknown activity = iota
	inactive
	active
)

func (s *Scaler) activity(t trigger) activity {
	if !s.exists(t) {
		return unknown
	}
	value, err := s.value(t)
	switch {
	case err != nil:
		return unknown
	case t.isActive(value):
		return active
	default:
		return inactive
	}
}

// exists reports whether the PredictedMetric exists, without the error that lists those that do.
func (s *Scaler) exists(t trigger) bool {
	_, ok := s.reader.Get(t.predicted)
	return ok
}

// StreamIsActive sends whether a trigger is active, at once and whenever it changes. What KEDA gets
// after a time without a forecast is new to it, whatever it got before.
func (s *Scaler) StreamIsActive(ref *externalscaler.ScaledObjectRef,
	stream grpc.ServerStreamingServer[externalscaler.IsActiveResponse]) error {
	t, err := triggerOf(ref)
	if err != nil {
		return asStatus(err)
	}
	last, woken := unknown, time.Time{}
	return s.follow(stream.Context(), func() error {
		current := s.activity(t)
		if current == last || current == active && !woken.IsZero() && s.now().Sub(woken) < wakePause {
			return nil
		}
		last = current
		switch current {
		case unknown:
			return nil
		case active:
			woken = s.now()
		}
		return stream.Send(&externalscaler.IsActiveResponse{Result: current == active})
	})
}

// StreamMetricSpec sends the metric of a trigger with its target, at once and whenever the target changes.
func (s *Scaler) StreamMetricSpec(ref *externalscaler.ScaledObjectRef,
	stream grpc.ServerStreamingServer[externalscaler.GetMetricSpecResponse]) error {
	t, err := triggerOf(ref)
	if err != nil {
		return asStatus(err)
	}
	last := 0.0
	return s.follow(stream.Context(), func() error {
		if !s.exists(t) {
			return nil
		}
		target, err := s.target(t)
		if err != nil || target == last {
			return nil //nolint:nilerr // the target that KEDA has stays until there is another
		}
		last = target
		return stream.Send(specOf(t, target))
	})
}

// follow looks now and in each round, until a look fails or the stream has to end.
func (s *Scaler) follow(ctx context.Context, look func() error) error {
	aged := time.NewTimer(s.lifetime())
	defer aged.Stop()
	for {
		next := s.rounds.wait()
		if err := look(); err != nil {
			return err
		}
		select {
		case <-next:
		case <-aged.C:
			return nil
		case <-s.ending:
			return nil
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// rounds wakes all streams at once: they need no timers of their own.
type rounds struct {
	mu   sync.Mutex
	next chan struct{} // closed when the next round begins
}

// wait returns what is closed when the next round begins.
func (r *rounds) wait() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

// begin begins the next round.
func (r *rounds) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.next)
	r.next = make(chan struct{})
}
