package statetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

func testZero(t *testing.T, open Open) {
	got, err := open(t, through, "zero").Load(t.Context(), "zero")
	require.NoError(t, err)
	assert.Equal(t, state.Record{}, got)
}

func testRoundTrip(t *testing.T, open Open) {
	store := open(t, through, "round-trip")
	want := Filled()
	want.Version = 0
	saved, err := store.Save(t.Context(), "round-trip", want)
	require.NoError(t, err)
	want.Version = 1
	assert.Equal(t, want, saved)
	loaded, err := store.Load(t.Context(), "round-trip")
	require.NoError(t, err)
	assert.Equal(t, want, loaded)
}

// testCleared fails for a store that merges a record into the previous one.
func testCleared(t *testing.T, open Open) {
	store := open(t, through, "cleared")
	full := Filled()
	full.Version = 0
	_, err := store.Save(t.Context(), "cleared", full)
	require.NoError(t, err)
	_, err = store.Save(t.Context(), "cleared", state.Record{Version: 1})
	require.NoError(t, err)
	loaded, err := store.Load(t.Context(), "cleared")
	require.NoError(t, err)
	assert.Equal(t, state.Record{Version: 2}, loaded)
}

func testVersions(t *testing.T, open Open) {
	store := open(t, through, "versions")
	var r state.Record
	for want := int64(1); want <= 12; want++ {
		r.Owner = fmt.Sprintf("owner-%d", want)
		var err error
		r, err = store.Save(t.Context(), "versions", r)
		require.NoError(t, err)
		require.Equal(t, want, r.Version)
		loaded, err := store.Load(t.Context(), "versions")
		require.NoError(t, err)
		require.Equal(t, r, loaded)
	}
}

func testConflict(t *testing.T, open Open) {
	store := open(t, through, "conflict")
	_, err := store.Save(t.Context(), "conflict", state.Record{Version: 7, Owner: "from a record that is gone"})
	require.ErrorIs(t, err, state.ErrConflict)
	loaded, err := store.Load(t.Context(), "conflict")
	require.NoError(t, err)
	require.Equal(t, state.Record{}, loaded)

	first, err := store.Save(t.Context(), "conflict", state.Record{Owner: "first"})
	require.NoError(t, err)
	second, err := store.Save(t.Context(), "conflict", first)
	require.NoError(t, err)
	for _, version := range []int64{0, first.Version, second.Version + 1} {
		_, err := store.Save(t.Context(), "conflict", state.Record{Version: version, Owner: "other"})
		require.ErrorIs(t, err, state.ErrConflict, "version %d", version)
		loaded, err := store.Load(t.Context(), "conflict")
		require.NoError(t, err)
		require.Equal(t, second, loaded)
	}
}

const (
	writers = 100
	rounds  = 5
)

// testRace lets a hundred writers write each version at once.
func testRace(t *testing.T, open Open) {
	store := open(t, through, "race")
	for version := range int64(rounds) {
		var racing sync.WaitGroup
		start := make(chan struct{})
		errs := make([]error, writers)
		for i := range writers {
			racing.Go(func() {
				<-start
				_, errs[i] = store.Save(t.Context(), "race", state.Record{Version: version, Owner: owner(i)})
			})
		}
		close(start)
		racing.Wait()

		var winners []string
		for i, err := range errs {
			if err == nil {
				winners = append(winners, owner(i))
				continue
			}
			assert.ErrorIs(t, err, state.ErrConflict)
		}
		loaded, err := store.Load(t.Context(), "race")
		require.NoError(t, err)
		require.Equal(t, version+1, loaded.Version)
		require.Equal(t, []string{loaded.Owner}, winners)
	}
}

func owner(i int) string { return fmt.Sprintf("writer-%d", i) }

func testApart(t *testing.T, open Open) {
	store := open(t, through, "apart", "apart-2")
	one, err := store.Save(t.Context(), "apart", state.Record{Owner: "one"})
	require.NoError(t, err)
	loaded, err := store.Load(t.Context(), "apart-2")
	require.NoError(t, err)
	require.Equal(t, state.Record{}, loaded)
	two, err := store.Save(t.Context(), "apart-2", state.Record{Owner: "two"})
	require.NoError(t, err)
	for pool, want := range map[string]state.Record{"apart": one, "apart-2": two} {
		loaded, err := store.Load(t.Context(), pool)
		require.NoError(t, err)
		assert.Equal(t, want, loaded)
	}
}

// testLostAnswer closes the connection after the write: a store must not retry by itself and take
// its own write for that of another writer.
func testLostAnswer(t *testing.T, open Open) {
	faults := &faults{}
	store := open(t, faults.wrap, "lost-answer")
	before, err := store.Save(t.Context(), "lost-answer", state.Record{Owner: "a"})
	require.NoError(t, err)

	for version, lose := range []fault{loseAnswer, answerLate} {
		before.Owner = fmt.Sprintf("b-%d", version)
		faults.next(lose)
		_, err = store.Save(t.Context(), "lost-answer", before)
		require.Error(t, err)
		require.NotErrorIs(t, err, state.ErrConflict)
		require.True(t, faults.happened())

		loaded, err := store.Load(t.Context(), "lost-answer")
		require.NoError(t, err)
		before.Version++
		require.Equal(t, before, loaded)
	}
}

func testLostRequest(t *testing.T, open Open) {
	faults := &faults{}
	store := open(t, faults.wrap, "lost-request")
	before, err := store.Save(t.Context(), "lost-request", state.Record{Owner: "a"})
	require.NoError(t, err)

	faults.next(loseRequest)
	_, err = store.Save(t.Context(), "lost-request", state.Record{Version: before.Version, Owner: "b"})
	require.Error(t, err)
	require.NotErrorIs(t, err, state.ErrConflict)
	require.True(t, faults.happened())
	loaded, err := store.Load(t.Context(), "lost-request")
	require.NoError(t, err)
	assert.Equal(t, before, loaded)
}

// testShortage stores the largest record of a pool of 1,000 nodes: the largest scale-up, all of
// whose slots still have to be launched after a refusal, as many cooling placements as possible,
// and an interruption of each node.
func testShortage(t *testing.T, open Open) {
	store := open(t, through, "shortage")
	saved, err := store.Save(t.Context(), "shortage", Shortage(1000))
	require.NoError(t, err)
	loaded, err := store.Load(t.Context(), "shortage")
	require.NoError(t, err)
	assert.Equal(t, saved.Interruptions[:10], without(loaded.Interruptions[:10]))
	assert.Len(t, loaded.Interruptions, len(saved.Interruptions))
	require.Len(t, loaded.Action.Slots, len(saved.Action.Slots))
	for i, s := range saved.Action.Slots {
		s.Error, loaded.Action.Slots[i].Error = "", ""
		require.Equal(t, s, loaded.Action.Slots[i])
	}
	assert.Len(t, loaded.Cooling, len(saved.Cooling))
	slim, err := store.Save(t.Context(), "shortage", loaded.Slim())
	require.NoError(t, err)
	assert.Len(t, slim.Interruptions, len(saved.Interruptions))
}

// without returns removals without their texts.
func without(list []state.Removal) []state.Removal {
	for i := range list {
		list[i].Error = ""
	}
	return list
}

// Shortage returns the record of a pool of n nodes in a shortage, with messages as long as EC2's.
// Each has its own request id, so that they all differ.
func Shortage(n int) state.Record {
	sentence := func(i int) string {
		return fmt.Sprintf("RequestID: %032x, api error InsufficientInstanceCapacity: %s", i,
			strings.Repeat("We currently do not have sufficient capacity. ", 60))
	}
	r := state.Record{Owner: "large", DrainBackoff: map[string]time.Time{},
		FailedDrains: map[string]int{}, Action: &state.Action{
			ID: "up-20260302-090000-0123456789", Kind: state.ActionUp, Reason: plan.PodsPending,
			Message: sentence(0), Started: moment(1),
		}}
	for i := range plan.MaxBatch {
		r.Action.Slots = append(r.Action.Slots, state.Slot{
			Alternatives: slices.Repeat([]string{"m6idn.metal-32xl"}, plan.MaxAlternatives),
			Number:       i, Token: fmt.Sprintf("up-20260302-090000-0123456789-%d-12", i), State: state.SlotPlanned,
			Placement: fleet.Placement{Zone: "eu-central-1a", Subnet: "subnet-0123456789abcdef0",
				InstanceType: "m6idn.metal-32xl", Market: fleet.OnDemand},
			Requested: moment(i), NotBefore: moment(i), Tries: 12, Attempt: 12, Error: sentence(i),
		})
	}
	for i := range n {
		id := fmt.Sprintf("i-%017x", i*7919)
		r.Interruptions = append(r.Interruptions, state.Removal{
			InstanceID: id, ProviderID: "aws:///eu-central-1a/" + id,
			Node: fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/256, i%256),
			Zone: "eu-central-1a", State: state.RemovalDraining, Since: moment(i), Began: moment(i),
			Deadline: moment(i), ReplacementSettled: true,
		})
		r.DrainBackoff[id], r.FailedDrains[id] = moment(i), 3
	}
	for i := range 60 * 6 * 2 { // types, zones, markets
		r.Cooling = append(r.Cooling, fleet.Cooling{
			Zone: "eu-central-1a", InstanceType: fmt.Sprintf("m6idn.metal-%d", i), Market: fleet.OnDemand,
			Until: moment(i), Reason: sentence(i),
		})
	}
	return r
}

func testContext(t *testing.T, open Open) {
	store := open(t, through, "context")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the lease is over"))
	_, err := store.Load(ctx, "context")
	require.ErrorIs(t, err, context.Canceled)
	_, err = store.Save(ctx, "context", state.Record{Owner: "late"})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, state.ErrConflict)
	loaded, err := store.Load(t.Context(), "context")
	require.NoError(t, err)
	assert.Equal(t, state.Record{}, loaded)
}

func moment(i int) time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC).Add(time.Duration(i) * time.Second)
}
