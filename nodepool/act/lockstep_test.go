package act

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/journal"
)

// Tasks make their calls at the same time, and share writes. Between calls they run one after the
// other, so that they may change the same data.
func TestLockstep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []int
		var l *lockstep
		writes := 0
		l = &lockstep{save: func(context.Context) error { writes++; return nil }}
		began := time.Now()
		errs := l.together(maxCalls, func(i int) error {
			for range 2 {
				require.NoError(t, l.do(func() { time.Sleep(time.Second) }))
				order = append(order, i)
				require.NoError(t, l.write(t.Context()))
			}
			if i == 3 {
				return errors.New("three")
			}
			return nil
		})
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, 2, writes)
		require.Len(t, order, 2*maxCalls)
		for k, i := range order {
			require.Equal(t, k%maxCalls, i)
		}
		require.EqualError(t, errors.Join(errs...), "three")
		require.Nil(t, l.running)
	})
}

// After a write that failed no call is made, because it is unknown whether this process may act.
func TestLockstepEndsWithAFailedWrite(t *testing.T) {
	l := &lockstep{save: func(context.Context) error { return journal.ErrStop }}
	calls := 0
	errs := l.together(3, func(i int) error {
		if i == 1 {
			return l.write(t.Context())
		}
		return l.do(func() { calls++ })
	})
	for _, err := range errs {
		require.ErrorIs(t, err, journal.ErrStop)
	}
	require.Zero(t, calls)
}
