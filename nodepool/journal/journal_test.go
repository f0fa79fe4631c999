package journal

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/state"
)

// memory is a store of one record.
type memory struct{ stored state.Record }

func (m *memory) Load(context.Context, string) (state.Record, error) { return m.stored, nil }

func (m *memory) Save(_ context.Context, _ string, r state.Record) (state.Record, error) {
	if r.Version != m.stored.Version {
		return state.Record{}, state.ErrConflict
	}
	r.Version++
	m.stored = r
	return r, nil
}

// A process that was suspended in a cycle sees by a renewal that another one has written the record. It does not write
// what it loaded before over that.
func TestARecordOfAnotherIsNotOverwritten(t *testing.T) {
	store := &memory{}
	j := New("one", time.Now)
	j.Store, j.Pool = store, "workers"
	require.NoError(t, j.Load(t.Context(), config.Spec{}))
	store.stored.Owner, store.stored.Version = "another", store.stored.Version+1
	other := store.stored

	j.lease.lose()
	_, err := j.Keep(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, j.Save(t.Context()), state.ErrConflict)
	require.Equal(t, other, store.stored)
}
