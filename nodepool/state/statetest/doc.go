// Package statetest holds every [state.Store] to what its documentation promises.
package statetest

import (
	"net/http"
	"testing"

	"github.com/foresail/foresail/nodepool/state"
)

// Open returns a store in which the pools named have no record yet, whatever other tests have
// written. All its requests go through what wrap makes of its transport.
type Open func(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper, pools ...string) state.Store

// Run runs the tests, each as one of t.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, Open){
		"a pool without a record has the zero one": testZero,
		"records come back as they were written":   testRoundTrip,
		"what is cleared stays cleared":            testCleared,
		"versions are counted":                     testVersions,
		"a conflict writes nothing":                testConflict,
		"one of many writers wins":                 testRace,
		"pools are apart":                          testApart,
		"a lost answer is no conflict":             testLostAnswer,
		"a lost request writes nothing":            testLostRequest,
		"a shortage of 1,000 nodes fits":           testShortage,
		"a context that is over is an error":       testContext,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

// through leaves the transport of a store as it is.
func through(transport http.RoundTripper) http.RoundTripper { return transport }
