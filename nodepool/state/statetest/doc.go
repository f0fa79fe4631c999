// Package statetest tests that a [state.Store] does what its documentation promises.
package statetest

import (
	"net/http"
	"testing"

	"github.com/foresail/foresail/nodepool/state"
)

// Open returns a store in which the named pools have no record yet. All its requests use the
// transport that wrap returns.
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

// through returns the transport of a store unchanged.
func through(transport http.RoundTripper) http.RoundTripper { return transport }
