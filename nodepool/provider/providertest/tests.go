package providertest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

func testOffers(t *testing.T, h Harness) {
	offers, err := newPool(t, h).Offers(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, offers)
	seen := map[fleet.Offer]bool{}
	for _, o := range offers {
		assert.NotEmpty(t, o.Zone)
		assert.NotEmpty(t, o.InstanceType)
		assert.False(t, seen[o.Offer], "%+v is offered twice", o.Offer)
		seen[o.Offer] = true
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
			quantity, ok := o.Allocatable[name]
			assert.True(t, ok && quantity.Sign() > 0, "%+v: %s: %s", o.Offer, name, quantity.String())
		}
		assert.Equal(t, o.Zone, o.Labels[corev1.LabelTopologyZone])
		assert.Equal(t, o.InstanceType, o.Labels[corev1.LabelInstanceTypeStable])
		assert.NotEmpty(t, o.Labels[corev1.LabelArchStable])
	}
}

func testLaunch(t *testing.T, h Harness) {
	p := newPool(t, h)
	for i, market := range []fleet.Market{fleet.Spot, fleet.OnDemand} {
		l := provider.Launch{Action: unique("up"), Slot: i + 3, Token: unique("t"), Placement: placement(t, p, market)}
		got, err := p.Launch(t.Context(), l)
		require.NoError(t, err)
		h.Settle(t)
		all, err := p.List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, i+1)
		listed := find(t, all, got.ID)
		for _, instance := range []fleet.Instance{got.Instance, listed} {
			assert.NotEmpty(t, instance.ProviderID)
			assert.Equal(t, got.ProviderID, instance.ProviderID)
			assert.Equal(t, l.Action, instance.Action)
			assert.Equal(t, l.Slot, instance.Slot)
			assert.Equal(t, l.Token, instance.Token)
			assert.Equal(t, l.Placement, instance.Placement)
			assert.Contains(t, []fleet.InstanceState{fleet.Pending, fleet.Running}, instance.State)
			assert.False(t, instance.Launched.IsZero())
			assert.False(t, instance.JoinFailed)
		}
	}
}

func find(t *testing.T, instances []fleet.Instance, id string) fleet.Instance {
	t.Helper()
	for _, i := range instances {
		if i.ID == id {
			return i
		}
	}
	require.Contains(t, ids(instances), id)
	return fleet.Instance{}
}

func testToken(t *testing.T, h Harness) {
	p := newPool(t, h)
	l := newLaunch(t, p)
	first, err := p.Launch(t.Context(), l)
	require.NoError(t, err)
	again, err := p.Launch(t.Context(), l)
	require.NoError(t, err)
	assert.Equal(t, first.ID, again.ID, "before it is visible")
	h.Settle(t)
	again, err = p.Launch(t.Context(), l)
	require.NoError(t, err)
	assert.Equal(t, first.ID, again.ID)
	assert.Equal(t, []string{first.ID}, ids(working(t, p)))

	l.Token = unique("t")
	other, err := p.Launch(t.Context(), l)
	require.NoError(t, err)
	assert.NotEqual(t, first.ID, other.ID, "another token is another instance")
	h.Settle(t)
	assert.ElementsMatch(t, []string{first.ID, other.ID}, ids(working(t, p)))
}

// testSeveral launches several instances in one call. Its token returns the same ones, each with the tags of the call.
func testSeveral(t *testing.T, h Harness) {
	for _, alternatives := range [][]string{nil, {h.Alternative()}} {
		p := newPool(t, h)
		l := newLaunch(t, p)
		l.Count, l.Alternatives = 3, alternatives
		first, err := p.Launch(t.Context(), l)
		require.NoError(t, err)
		all := append([]fleet.Instance{first.Instance}, first.Others...)
		require.Len(t, all, 3)
		h.Settle(t)
		assert.ElementsMatch(t, ids(all), ids(working(t, p)))
		for _, i := range working(t, p) {
			assert.True(t, l.Takes(i), "%+v", i)
		}
		again, err := p.Launch(t.Context(), l)
		require.NoError(t, err)
		assert.ElementsMatch(t, ids(all), ids(append([]fleet.Instance{again.Instance}, again.Others...)))
		assert.Len(t, working(t, p), 3)
	}
}

// testTokenAtOnce accepts errors that leave the outcome open: a repeated call returns the instance.
func testTokenAtOnce(t *testing.T, h Harness) {
	p := newPool(t, h)
	l := newLaunch(t, p)
	var (
		calls    sync.WaitGroup
		mu       sync.Mutex
		launched []string
	)
	for range 8 {
		calls.Go(func() {
			instance, err := p.Launch(t.Context(), l)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				assertIndefinite(t, err)
				return
			}
			launched = append(launched, instance.ID)
		})
	}
	calls.Wait()
	h.Settle(t)
	last, err := p.Launch(t.Context(), l)
	require.NoError(t, err)
	for _, id := range launched {
		assert.Equal(t, last.ID, id)
	}
	assert.Equal(t, []string{last.ID}, ids(working(t, p)))
}

// testTokenMismatch does not try another zone: clouds may keep tokens for each zone.
func testTokenMismatch(t *testing.T, h Harness) {
	p := newPool(t, h)
	l := newLaunch(t, p)
	first, err := p.Launch(t.Context(), l)
	require.NoError(t, err)
	for name, change := range map[string]func(*provider.Launch){
		"market": func(l *provider.Launch) { l.Market = fleet.Spot },
		"slot":   func(l *provider.Launch) { l.Slot++ },
		"action": func(l *provider.Launch) { l.Action = unique("up") },
	} {
		other := l
		change(&other)
		_, err = p.Launch(t.Context(), other)
		requireClass(t, provider.TokenMismatch, err)
		h.Settle(t)
		assert.Equal(t, []string{first.ID}, ids(working(t, p)), name)
	}
}

// testTokenOfTerminated accepts the terminated instance and any definitive error.
func testTokenOfTerminated(t *testing.T, h Harness) {
	p := newPool(t, h)
	l := newLaunch(t, p)
	first, err := p.Launch(t.Context(), l)
	require.NoError(t, err)
	h.Settle(t)
	require.NoError(t, p.Terminate(t.Context(), first.ID))
	h.Settle(t)
	again, err := p.Launch(t.Context(), l)
	if err == nil {
		assert.Equal(t, first.ID, again.ID)
		assert.Equal(t, fleet.Leaving, again.State)
	} else {
		assert.NotContains(t, []provider.Class{provider.Unknown, provider.Throttled}, provider.ClassOf(err), "%v", err)
	}
	h.Settle(t)
	assert.Empty(t, working(t, p))
}

func testPoolsApart(t *testing.T, h Harness) {
	one, other := newPool(t, h), newPool(t, h)
	mine, theirs := launched(t, h, one), launched(t, h, other)
	assert.Equal(t, []string{mine.ID}, ids(working(t, one)))
	assert.Equal(t, []string{theirs.ID}, ids(working(t, other)))
}

func testTerminate(t *testing.T, h Harness) {
	p := newPool(t, h)
	gone, stays := launched(t, h, p), launched(t, h, p)
	require.NoError(t, p.Terminate(t.Context(), gone.ID))
	require.NoError(t, p.Terminate(t.Context(), gone.ID), "at once")
	h.Settle(t)
	require.NoError(t, p.Terminate(t.Context(), gone.ID), "again")
	assert.Equal(t, []string{stays.ID}, ids(working(t, p)))
}

func testNotOwned(t *testing.T, h Harness) {
	one, other := newPool(t, h), newPool(t, h)
	theirs := launched(t, h, other)
	requireClass(t, provider.NotOwned, one.Terminate(t.Context(), theirs.ID))
	requireClass(t, provider.NotOwned, one.MarkJoinFailed(t.Context(), theirs.ID))
	h.Settle(t)
	all := working(t, other)
	require.Equal(t, []string{theirs.ID}, ids(all))
	assert.False(t, all[0].JoinFailed)
}

func testTerminateUnknown(t *testing.T, h Harness) {
	assert.NoError(t, newPool(t, h).Terminate(t.Context(), UnknownID))
}

func testMarkJoinFailed(t *testing.T, h Harness) {
	p := newPool(t, h)
	failed, stays := launched(t, h, p), launched(t, h, p)
	require.NoError(t, p.MarkJoinFailed(t.Context(), failed.ID))
	require.NoError(t, p.MarkJoinFailed(t.Context(), failed.ID), "again")
	h.Settle(t)
	all := working(t, p)
	assert.True(t, find(t, all, failed.ID).JoinFailed)
	assert.False(t, find(t, all, stays.ID).JoinFailed)
}

func testOutdated(t *testing.T, h Harness) {
	pool := unique("pool")
	p := h.Provider(t, pool)
	old := launched(t, h, p)
	got := find(t, working(t, p), old.ID)
	assert.Empty(t, got.Outdated)
	assert.Empty(t, got.OutdatedErr)

	p = h.Renew(t, pool)
	assert.NotEmpty(t, find(t, working(t, p), old.ID).Outdated, "before a new one exists")
	fresh := launched(t, h, p)
	all := working(t, p)
	why := find(t, all, old.ID).Outdated
	require.NotEmpty(t, why)
	assert.Equal(t, strings.ToLower(why[:1]), why[:1], "it is a clause")
	assert.False(t, strings.HasSuffix(why, "."), why)
	assert.Empty(t, find(t, all, fresh.ID).Outdated)
	for _, i := range all {
		assert.Empty(t, i.OutdatedErr)
	}
	require.NoError(t, p.Terminate(t.Context(), old.ID), "it is still the pool's")
	h.Settle(t)
	assert.Equal(t, []string{fresh.ID}, ids(working(t, p)))
}

func testCapacity(t *testing.T, h Harness) {
	p := newPool(t, h)
	l := newLaunch(t, p)
	l.Market = fleet.Spot
	restore := h.Exhaust(t, l.Placement)
	t.Cleanup(restore)
	_, err := p.Launch(t.Context(), l)
	requireClass(t, provider.Capacity, err)
	h.Settle(t)
	assert.Empty(t, working(t, p), "a refused launch has no effect")

	elsewhere := l
	elsewhere.Token, elsewhere.Market = unique("t"), fleet.OnDemand
	onDemand, err := p.Launch(t.Context(), elsewhere)
	require.NoError(t, err, "the other market has its own capacity")

	restore()
	l.Token = unique("t")
	spot, err := p.Launch(t.Context(), l)
	require.NoError(t, err)
	h.Settle(t)
	assert.ElementsMatch(t, []string{onDemand.ID, spot.ID}, ids(working(t, p)))
}

func testAlternatives(t *testing.T, h Harness) {
	p := newPool(t, h)
	for i, market := range []fleet.Market{fleet.Spot, fleet.OnDemand} {
		l := newLaunch(t, p)
		l.Market, l.Slot, l.Alternatives = market, i+3, []string{h.Alternative()}
		got, err := p.Launch(t.Context(), l)
		require.NoError(t, err)
		h.Settle(t)
		assert.Empty(t, got.Refusals)
		listed := find(t, working(t, p), got.ID)
		for _, instance := range []fleet.Instance{got.Instance, listed} {
			assert.True(t, l.Takes(instance), "%+v", instance)
			assert.Equal(t, got.ProviderID, instance.ProviderID)
			assert.Equal(t, got.Placement, instance.Placement)
			assert.Contains(t, []fleet.InstanceState{fleet.Pending, fleet.Running}, instance.State)
			assert.False(t, instance.Launched.IsZero())
		}
	}
}

func testAlternativesToken(t *testing.T, h Harness) {
	p := newPool(t, h)
	l := newLaunch(t, p)
	l.Alternatives = []string{h.Alternative()}
	first, err := p.Launch(t.Context(), l)
	require.NoError(t, err)
	for _, when := range []string{"before it is visible", "afterwards"} {
		again, err := p.Launch(t.Context(), l)
		require.NoError(t, err)
		assert.Equal(t, first.ID, again.ID, when)
		assert.Equal(t, first.Placement, again.Placement, when)
		h.Settle(t)
	}
	other := l
	other.InstanceType, other.Alternatives = h.Alternative(), []string{"m5.24xlarge"}
	if first.InstanceType == other.InstanceType {
		other.InstanceType = "m5.12xlarge"
	}
	_, err = p.Launch(t.Context(), other)
	requireClass(t, provider.TokenMismatch, err)
	h.Settle(t)
	assert.Equal(t, []string{first.ID}, ids(working(t, p)))
}

func testAlternativesShort(t *testing.T, h Harness) {
	p := newPool(t, h)
	l := newLaunch(t, p)
	l.Market, l.Alternatives = fleet.Spot, []string{h.Alternative()}
	t.Cleanup(h.Exhaust(t, l.Placement))
	got, err := p.Launch(t.Context(), l)
	require.NoError(t, err)
	assert.Equal(t, h.Alternative(), got.InstanceType)
	require.Len(t, got.Refusals, 1)
	assert.Equal(t, l.InstanceType, got.Refusals[0].InstanceType)
	assert.Equal(t, provider.Capacity, got.Refusals[0].Class)
	assert.NotEmpty(t, got.Refusals[0].Reason)
	h.Settle(t)
	assert.Equal(t, []string{got.ID}, ids(working(t, p)))
}

func testAlternativesGone(t *testing.T, h Harness) {
	p := newPool(t, h)
	l := newLaunch(t, p)
	l.Market, l.Alternatives = fleet.Spot, []string{h.Alternative()}
	restore := h.Exhaust(t, l.Placement, l.Of(h.Alternative()))
	t.Cleanup(restore)
	_, err := p.Launch(t.Context(), l)
	requireClass(t, provider.Capacity, err)
	var refused []string
	for _, r := range provider.RefusalsOf(err) {
		assert.Equal(t, provider.Capacity, r.Class)
		refused = append(refused, r.InstanceType)
	}
	assert.ElementsMatch(t, []string{l.InstanceType, h.Alternative()}, refused)
	h.Settle(t)
	assert.Empty(t, working(t, p))
	restore()
	l.Token = unique("t")
	got, err := p.Launch(t.Context(), l)
	require.NoError(t, err)
	h.Settle(t)
	assert.Equal(t, []string{got.ID}, ids(working(t, p)))
}

// foundAs finds an existing instance.
func foundAs(t *testing.T, p provider.Provider, ref fleet.Ref) fleet.Instance {
	t.Helper()
	found, err := p.Find(t.Context(), []fleet.Ref{ref})
	require.NoError(t, err)
	require.Contains(t, found, ref.ID)
	return found[ref.ID]
}

func testFind(t *testing.T, h Harness) {
	p, other := newPool(t, h), newPool(t, h)
	i := launched(t, h, p)
	theirs := launched(t, h, other)
	ref := fleet.Ref{ID: i.ID, ProviderID: i.ProviderID}
	malformed := fleet.Ref{ID: "ip-10-0-0-1", ProviderID: "aws:///eu-central-1a/ip-10-0-0-1"}
	refs := []fleet.Ref{ref, {ID: theirs.ID}, {ID: UnknownID}, malformed}
	found, err := p.Find(t.Context(), refs)
	require.NoError(t, err)
	require.Len(t, found, 3, "a malformed id has no result")
	assert.Contains(t, []fleet.InstanceState{fleet.Pending, fleet.Running}, found[i.ID].State)
	assert.Equal(t, i.ProviderID, found[i.ID].ProviderID)
	assert.Equal(t, find(t, working(t, p), i.ID).Addresses, found[i.ID].Addresses)
	assert.NotEmpty(t, found[i.ID].Addresses)
	assert.Empty(t, found[i.ID].Disowned)
	assert.NotEmpty(t, found[theirs.ID].Disowned)
	assert.Equal(t, fleet.Absent, found[UnknownID].State)

	require.NoError(t, p.Terminate(t.Context(), i.ID))
	h.End(t)
	h.Settle(t)
	assert.Equal(t, fleet.Gone, foundAs(t, p, ref).State)
	none, err := p.Find(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, none)
}

func testFindUntagged(t *testing.T, h Harness) {
	p := newPool(t, h)
	i := launched(t, h, p)
	if !h.Untag(t, i.ID) {
		t.Skip("the cloud has no tags")
	}
	assert.Empty(t, working(t, p))
	found := foundAs(t, p, fleet.Ref{ID: i.ID})
	assert.Contains(t, []fleet.InstanceState{fleet.Pending, fleet.Running}, found.State)
	assert.NotEmpty(t, found.Disowned)
	requireClass(t, provider.NotOwned, p.Terminate(t.Context(), i.ID))
}

func testOwnedByOthers(t *testing.T, h Harness) {
	p := newPool(t, h)
	i := launched(t, h, p)
	if !h.Adopt(t, i.ID) {
		t.Skip("the cloud has no other controllers")
	}
	assert.NotEmpty(t, find(t, working(t, p), i.ID).OwnedBy)
	assert.NotEmpty(t, foundAs(t, p, fleet.Ref{ID: i.ID}).OwnedBy)
	requireClass(t, provider.NotOwned, p.Terminate(t.Context(), i.ID))
	requireClass(t, provider.NotOwned, p.MarkJoinFailed(t.Context(), i.ID))
	h.Settle(t)
	assert.Equal(t, []string{i.ID}, ids(working(t, p)))
}

func testContext(t *testing.T, h Harness) {
	p := newPool(t, h)
	l := newLaunch(t, p)
	instance := launched(t, h, p)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Launch(ended, l)
	require.ErrorIs(t, err, context.Canceled)
	assertIndefinite(t, err)
	_, err = p.List(ended)
	require.ErrorIs(t, err, context.Canceled)
	_, err = p.Find(ended, []fleet.Ref{{ID: instance.ID}})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, p.Terminate(ended, instance.ID), context.Canceled)
	require.ErrorIs(t, p.MarkJoinFailed(ended, instance.ID), context.Canceled)
	h.Settle(t)
	assert.Equal(t, []string{instance.ID}, ids(working(t, p)))
}
