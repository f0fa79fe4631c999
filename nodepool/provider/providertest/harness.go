// Package providertest holds the tests that every provider of instances passes.
package providertest

import (
	"testing"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// Harness is a cloud that the tests run against. Its methods end the test if they fail. The instances of its pools have
// at least one zone to be in, and can be bought on both markets.
type Harness interface {
	// Provider returns a provider for a pool. All that are made for the pools of one harness speak to one cloud.
	Provider(t testing.TB, pool string) provider.Provider
	// Renew changes what new instances of a pool are, and returns a provider for the pool as it is from then on. The instances
	// that there are stay as they are.
	Renew(t testing.TB, pool string) provider.Provider
	// Exhaust takes all capacity of zones, instance types and markets away, until restore is called.
	Exhaust(t testing.TB, placements ...fleet.Placement) (restore func())
	// Alternative is another instance type than the most preferred one, which can be launched in its place.
	Alternative() string
	// Untag takes the tags of its pool away from an instance, and Adopt has another controller own it, as an Auto Scaling group
	// does. Where a cloud has neither, they report false.
	Untag(t testing.TB, id string) bool
	Adopt(t testing.TB, id string) bool
	// End has all that is terminated be so at last, and nothing run on it any more.
	End(t testing.TB)
	// Settle returns once everything that has been done to the cloud can be seen in it.
	Settle(t testing.TB)
}

// UnknownID is an instance that no cloud of a test has.
const UnknownID = "i-0123456789abcdef0"

// Run runs the tests, each in a pool of its own, one after the other.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Harness)
	}{
		{"offers say what can be launched", testOffers},
		{"an instance carries what it was launched for", testLaunch},
		{"one token launches one instance", testToken},
		{"one token launches one instance at the same time", testTokenAtOnce},
		{"one call launches several instances", testSeveral},
		{"a token belongs to its parameters", testTokenMismatch},
		{"the token of a terminated instance launches nothing", testTokenOfTerminated},
		{"instances of other pools are not listed", testPoolsApart},
		{"terminated instances go, and may go twice", testTerminate},
		{"instances of other pools are left alone", testNotOwned},
		{"an instance that there is not is terminated already", testTerminateUnknown},
		{"instances that did not join are marked", testMarkJoinFailed},
		{"instances that are not what a new one would be are outdated", testOutdated},
		{"capacity that is gone is told, and comes back", testCapacity},
		{"one of several types is launched", testAlternatives},
		{"a token belongs to its alternatives", testAlternativesToken},
		{"the first type that is left is launched", testAlternativesShort},
		{"capacity of all types that is gone is told of each", testAlternativesGone},
		{"instances are found by their ids", testFind},
		{"instances that have lost their tags are found", testFindUntagged},
		{"instances that another controller owns are left alone", testOwnedByOthers},
		{"calls end with their context", testContext},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, h) })
	}
}
