package providertest

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// unique returns a unique name for a token or a pool.
func unique(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()) }

// newPool returns a provider for a new pool.
func newPool(t *testing.T, h Harness) provider.Provider {
	t.Helper()
	return h.Provider(t, unique("pool"))
}

// placement returns the preferred placement of a pool in a market.
func placement(t *testing.T, p provider.Provider, market fleet.Market) fleet.Placement {
	t.Helper()
	offers, err := p.Offers(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, offers)
	return placementOf(offers[0], market)
}

func placementOf(o provider.Offer, market fleet.Market) fleet.Placement {
	return fleet.Placement{Zone: o.Zone, Subnet: o.Subnet, InstanceType: o.InstanceType, Market: market}
}

// newLaunch returns a launch of an On-Demand instance at the preferred placement, with a new token.
func newLaunch(t *testing.T, p provider.Provider) provider.Launch {
	t.Helper()
	return provider.Launch{Action: unique("up"), Slot: 1, Token: unique("t"), Placement: placement(t, p, fleet.OnDemand)}
}

// launched launches an instance and waits until it is visible.
func launched(t *testing.T, h Harness, p provider.Provider) fleet.Instance {
	t.Helper()
	instance, err := p.Launch(t.Context(), newLaunch(t, p))
	require.NoError(t, err)
	h.Settle(t)
	return instance.Instance
}

// working lists the instances that are not leaving.
func working(t *testing.T, p provider.Provider) []fleet.Instance {
	t.Helper()
	all, err := p.List(t.Context())
	require.NoError(t, err)
	return slices.DeleteFunc(all, func(i fleet.Instance) bool { return i.State == fleet.Leaving })
}

func ids(instances []fleet.Instance) []string {
	var out []string
	for _, i := range instances {
		out = append(out, i.ID)
	}
	return out
}

// requireClass checks the class of a provider's error.
func requireClass(t *testing.T, want provider.Class, err error) {
	t.Helper()
	require.Error(t, err)
	require.ErrorAs(t, err, new(*provider.Error))
	require.Equal(t, want, provider.ClassOf(err), "%v", err)
}

// assertIndefinite checks that an error leaves the outcome open.
func assertIndefinite(t *testing.T, err error) {
	t.Helper()
	assert.True(t, errors.As(err, new(*provider.Error)), "%v", err)
	assert.Contains(t, []provider.Class{provider.Unknown, provider.Throttled}, provider.ClassOf(err), "%v", err)
}
