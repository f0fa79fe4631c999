package forecaster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// learning is a world whose load is learned.
func learning(t *testing.T) *world {
	w := newWorld(t, 4, steady(2))
	_, err := w.forecaster.Set(key, learnedConfig())
	require.NoError(t, err)
	return w
}

// TestCheckpointsThatAreFollowed: one that is older than the window would leave a gap, and one from
// the future would stop the learning.
func TestCheckpointsThatAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := learning(t), learning(t)
		w.forecaster.Learned().NoCheckpoint(key)
		other.forecaster.Learned().NoCheckpoint(key)
		_, ok := other.forecaster.Learned().Checkpoint(key)
		require.False(t, ok, "nothing is learned")
		other.pass(10*time.Minute, nil)
		old, ok := other.forecaster.Learned().Checkpoint(key)
		require.True(t, ok)
		w.pass(6*time.Minute, nil)
		adopted, err := w.forecaster.Learned().Restore(key, old.Data, true)
		require.NoError(t, err)
		assert.False(t, adopted, "older than the window")

		w.pass(2*time.Minute, nil)
		other.pass(6*time.Minute, nil)
		fresh, ok := other.forecaster.Learned().Checkpoint(key)
		require.True(t, ok)
		adopted, err = w.forecaster.Learned().Restore(key, fresh.Data, false)
		require.NoError(t, err)
		assert.False(t, adopted, "the elected one does not follow")

		other.pass(2*time.Minute, nil)
		fresh, ok = other.forecaster.Learned().Checkpoint(key)
		require.True(t, ok)
		adopted, err = w.forecaster.Learned().Restore(key, fresh.Data, true)
		require.NoError(t, err)
		assert.True(t, adopted)
		_, ok = w.forecaster.Learned().Checkpoint(key)
		assert.False(t, ok, "it is stored already")
		adopted, err = w.forecaster.Learned().Restore(key, fresh.Data, true)
		require.NoError(t, err)
		assert.False(t, adopted, "it has it already")

		var past pipeline.Learned
		require.NoError(t, past.UnmarshalBinary(fresh.Data[originSize:]))
		data, err := past.Shifted(-time.Hour).MarshalBinary()
		require.NoError(t, err)
		_, err = w.forecaster.Learned().Restore(key, append(fresh.Data[:originSize:originSize], data...), true)
		require.ErrorContains(t, err, "ahead of the clock")
		_, err = w.forecaster.Learned().Restore(key, append(make([]byte, originSize), data...), true)
		require.ErrorIs(t, err, errOther)
	})
}
