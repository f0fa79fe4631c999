// Package providertest has the tests that every provider passes.
package providertest

import (
	"testing"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// Harness is a cloud that the tests run against. Its methods end the test if they fail. Its pools have at least one
// zone, and instances of both markets.
type Harness interface {
	// Provider returns a provider for a pool. All providers of a harness use the same cloud.
	Provider(t testing.TB, pool string) provider.Provider
	// Renew changes the new instances of a pool, and returns a provider for the changed pool. Existing instances stay.
	Renew(t testing.TB, pool string) provider.Provider
	// Exhaust removes all capacity of placements until restore is called.
	Exhaust(t testing.TB, placements ...fleet.Placement) (restore func())
	// Alternative returns another instance type than the preferred one, which can be launched instead.
	Alternative() string
	// Untag removes the pool's tags from an instance, and Adopt makes another controller own it, such as an Auto Scaling
	// group. They report false for a cloud without these.
	Untag(t testing.TB, id string) bool
	Adopt(t testing.TB, id string) bool
	// End completes the termination of all instances.
	End(t testing.TB)
	// Settle returns once all changes of the cloud are visible.
	Settle(t testing.TB)
}

// UnknownID is the id of an instance that does not exist.
const UnknownID = "i-0123456789abcdef0"

// Run runs the tests one after another, each with its own pool.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Harness)
	}{
		{"offers", testOffers},
		{"an instance has the tags of its launch", testLaunch},
		{"one token launches one instance", testToken},
		{"concurrent launches with one token launch one instance", testTokenAtOnce},
		{"one call launches several instances", testSeveral},
		{"a token belongs to its parameters", testTokenMismatch},
		{"the token of a terminated instance launches nothing", testTokenOfTerminated},
		{"instances of other pools are not listed", testPoolsApart},
		{"instances are terminated, also twice", testTerminate},
		{"instances of other pools are not changed", testNotOwned},
		{"an unknown instance counts as terminated", testTerminateUnknown},
		{"instances that did not join are marked", testMarkJoinFailed},
		{"instances that differ from new ones are outdated", testOutdated},
		{"missing capacity is an error until it returns", testCapacity},
		{"one of several types is launched", testAlternatives},
		{"a token belongs to its alternatives", testAlternativesToken},
		{"the first type with capacity is launched", testAlternativesShort},
		{"missing capacity of all types is returned for each", testAlternativesGone},
		{"instances are found by id", testFind},
		{"instances without tags are found", testFindUntagged},
		{"instances of other controllers are not changed", testOwnedByOthers},
		{"calls end with their context", testContext},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, h) })
	}
}
