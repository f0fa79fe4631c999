package controlplane

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPollSaysWhatItWaitedFor(t *testing.T) {
	cluster := &Cluster{done: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(t.Context())
	err := cluster.poll(ctx, "something", func(context.Context) error {
		cancel(errors.New("out of patience"))
		return errors.New("nothing yet")
	})
	require.EqualError(t, err, "waiting for something: out of patience; last: nothing yet")
}

func TestPollGivesUpOnABrokenCluster(t *testing.T) {
	cluster := &Cluster{done: make(chan struct{})}
	reason := errors.New("etcd ended")
	err := cluster.poll(t.Context(), "something", func(context.Context) error {
		cluster.end(reason)
		return errors.New("nothing yet")
	})
	require.Equal(t, reason, err)

	stopped := &Cluster{done: make(chan struct{})}
	stopped.end(nil)
	err = stopped.poll(t.Context(), "something", func(context.Context) error { return errors.New("nothing yet") })
	require.EqualError(t, err, "waiting for something: the cluster was stopped")
}
