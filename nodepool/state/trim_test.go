package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/nodepool/state"
)

func TestTrimSavings(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const delay = 7 * time.Minute
	record := func(ended time.Duration, change func(*state.Record)) state.Record {
		r := state.Record{
			Saved: &state.Saving{Began: now.Add(-ended - time.Minute), Ended: now.Add(-ended), Owners: []string{"shop"}},
			FutileRemovals: []state.FutileRemoval{{Owner: "shop", Times: 2, Until: now.Add(-time.Minute)},
				{Owner: "mail", Times: 1, Until: now}},
		}
		change(&r)
		r.Trim(now, 0, delay)
		return r
	}
	same := func(*state.Record) {}
	owners := func(r state.Record) (out []string) {
		for _, u := range r.FutileRemovals {
			out = append(out, u.Owner)
		}
		return out
	}

	r := record(10*time.Minute+delay, same)
	assert.Equal(t, []string{"mail"}, owners(r), "no new node was needed")
	assert.Nil(t, r.Saved)

	r = record(10*time.Minute+delay-time.Second, same)
	assert.Equal(t, []string{"shop", "mail"}, owners(r), "a launch may still wait for its pods and its cooldown")
	assert.NotNil(t, r.Saved)

	r = record(time.Hour, func(r *state.Record) { r.Failures = 1 })
	assert.Equal(t, []string{"shop", "mail"}, owners(r), "a launch may have been needed and failed")

	r = record(time.Hour, func(r *state.Record) { r.Saved.Ended = time.Time{} })
	assert.NotNil(t, r.Saved, "it goes on")

	r = record(0, func(r *state.Record) {
		r.FutileRemovals[0].Until, r.FutileRemovals[1].Until = now.Add(1000*time.Hour),
			now.Add(-state.FutileRemovalBackoffMax-time.Second)
	})
	assert.Equal(t, []string{"shop"}, owners(r), "the other has been quiet for a day")
	assert.Equal(t, now.Add(state.FutileRemovalBackoffMax), r.FutileRemovals[0].Until, "a clock was wrong")
}
