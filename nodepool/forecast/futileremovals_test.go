package forecast

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/state"
)

func TestNoteFutileRemovals(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pod := func(name, owner string, since time.Duration) cluster.Pending {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(owner), Controller: new(true)}}
		}
		return cluster.Pending{Pod: p, Since: now.Add(-since)}
	}
	saved := func(change func(*state.Saving)) state.Record {
		s := &state.Saving{Began: now.Add(-10 * time.Minute), Ended: now.Add(-5 * time.Minute), Owners: []string{"web"}}
		change(s)
		return state.Record{Saved: s}
	}
	same := func(*state.Saving) {}
	for _, c := range []struct {
		name   string
		record state.Record
		pod    cluster.Pending
		undone bool
	}{
		{"a pod in place of an evicted one", saved(same), pod("a", "web", 6*time.Minute), true},
		{"right after the end", saved(same), pod("a", "web", 5*time.Minute-10*time.Second), true},
		{"during a removal that goes on", saved(func(s *state.Saving) { s.Ended = time.Time{} }), pod("a", "web", 0), true},
		{"long after the end", saved(same), pod("a", "web", time.Minute), false},
		{"it has waited since before", saved(same), pod("a", "web", 11*time.Minute), false},
		{"of another controller", saved(same), pod("a", "mail", 6*time.Minute), false},
		{"without a controller", saved(same), pod("a", "", 6*time.Minute), false},
		{"nothing was removed", state.Record{}, pod("a", "web", 6*time.Minute), false},
	} {
		f := Forecast{eligible: []cluster.Pending{c.pod}, new: []string{"shop/a"}}
		f.NoteFutileRemovals(&c.record, now)
		if !c.undone {
			assert.Empty(t, c.record.FutileRemovals, c.name)
			continue
		}
		assert.Equal(t, []state.FutileRemoval{{Owner: "web", Times: 1, Until: now.Add(futileRemovalBackoffMin)}},
			c.record.FutileRemovals, c.name)
		assert.Nil(t, c.record.Saved, c.name)
	}

	f := Forecast{eligible: []cluster.Pending{pod("a", "web", 6*time.Minute)}, new: []string{"shop/b"}}
	r := saved(same)
	f.NoteFutileRemovals(&r, now)
	assert.Empty(t, r.FutileRemovals, "the launch is for another pod")
}

// TestFutileRemovalBackoffDoubles: with each futile removal, up to a day.
func TestFutileRemovalBackoffDoubles(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := state.Record{}
	want := futileRemovalBackoffMin
	for range 12 {
		noteFutileRemoval(&r, "web", now)
		assert.Equal(t, now.Add(want), r.FutileRemovals[0].Until)
		noteFutileRemoval(&r, "web", now.Add(time.Second))
		assert.Equal(t, now.Add(want), r.FutileRemovals[0].Until, "another pod of the same scale-down")
		now, want = r.FutileRemovals[0].Until, min(2*want, state.FutileRemovalBackoffMax)
	}
	for i := range 2 * state.MaxOwners {
		noteFutileRemoval(&r, string(rune('a'+i)), now)
	}
	assert.Len(t, r.FutileRemovals, state.MaxOwners)
}
