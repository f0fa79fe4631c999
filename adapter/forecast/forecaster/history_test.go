package forecaster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/schedule"
	"github.com/foresail/foresail/pipeline"
)

// week is a load of 2 by the minute that ended five minutes ago.
func week() (begin int64, minutes []pipeline.Minute) {
	for range 7 * 24 * 60 {
		minutes = append(minutes, pipeline.Minute{Mean: 2})
	}
	end := time.Now().Add(-5 * time.Minute).Truncate(time.Minute)
	return end.Add(-7 * 24 * time.Hour).UnixMilli(), minutes
}

// TestFilledLoads: a load is little known once it is known that there is no checkpoint, until it
// was filled; then it is shown and kept.
func TestFilledLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := learning(t)
		assert.Empty(t, w.forecaster.Learned().LittleKnown(24*time.Hour), "there was no forecast yet")
		w.pass(time.Minute, nil)
		assert.Empty(t, w.forecaster.Learned().LittleKnown(24*time.Hour), "there may be a checkpoint")
		w.forecaster.Learned().NoCheckpoint(key)
		loads := w.forecaster.Learned().LittleKnown(24 * time.Hour)
		require.Len(t, loads, 1)
		assert.Equal(t, key, loads[0].Key)
		assert.Equal(t, "pods", loads[0].Source)

		begin, minutes := week()
		known, ok := w.forecaster.Learned().Fill(&loads[0], begin, minutes)
		require.True(t, ok)
		assert.InDelta(t, 7*24, known.Hours(), 0.5)
		assert.Empty(t, w.forecaster.Learned().LittleKnown(24*time.Hour))
		var last snapshot.Snapshot
		w.pass(5*time.Minute, func(s snapshot.Snapshot) { last = s })
		require.NoError(t, last.Err)
		assert.InDelta(t, 7*24, last.Learned.Hours(), 0.5)

		saved, ok := w.forecaster.Learned().Checkpoint(key)
		require.True(t, ok)
		assert.InDelta(t, 7*24, saved.Learned.Hours(), 0.5)
		other := learning(t)
		other.pass(time.Minute, nil)
		adopted, err := other.forecaster.Learned().Restore(key, saved.Data, true)
		require.NoError(t, err)
		assert.True(t, adopted, "the other replicas take it over")
		assert.Empty(t, other.forecaster.Learned().LittleKnown(24*time.Hour))

		w.forecaster.Learned().Forget(key)
		w.pass(time.Second, nil)
		assert.Len(t, w.forecaster.Learned().LittleKnown(24*time.Hour), 1, "someone deleted the checkpoint")
	})
}

// TestHistoriesOfOtherLoads are not taken.
func TestHistoriesOfOtherLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := learning(t)
		w.pass(time.Minute, nil)
		w.forecaster.Learned().NoCheckpoint(key)
		loads := w.forecaster.Learned().LittleKnown(24 * time.Hour)
		require.Len(t, loads, 1)
		begin, minutes := week()

		c := w.feed.settings.Load().Config
		c.Params.Model = pipeline.Model{Kind: pipeline.Quadratic}
		_, err := w.forecaster.Set(key, c)
		require.NoError(t, err)
		w.pass(time.Minute, nil)
		_, ok := w.forecaster.Learned().Fill(&loads[0], begin, minutes)
		assert.False(t, ok, "it is in another unit")

		c.Params = loads[0].Params
		c.Origin = "another target"
		_, err = w.forecaster.Set(key, c)
		require.NoError(t, err)
		_, ok = w.forecaster.Learned().Fill(&loads[0], begin, minutes)
		assert.False(t, ok, "it is of other pods")

		w.forecaster.Remove(key)
		_, ok = w.forecaster.Learned().Fill(&loads[0], begin, minutes)
		assert.False(t, ok)
	})
}

// TestNothingIsFilledOfHolidays: what is not learned as it comes is not read from the history either.
func TestNothingIsFilledOfHolidays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, steady(2))
		w.scheduled(pipeline.Adaptive, -5*24*time.Hour, -3*24*time.Hour, schedule.Entry{Min: new(1), Unlearned: true})
		w.pass(time.Minute, nil)
		w.forecaster.Learned().NoCheckpoint(key)
		loads := w.forecaster.Learned().LittleKnown(24 * time.Hour)
		require.Len(t, loads, 1)
		begin, minutes := week()
		known, ok := w.forecaster.Learned().Fill(&loads[0], begin, minutes)
		require.True(t, ok)
		assert.InDelta(t, 5*24, known.Hours(), 0.5)
	})
}
