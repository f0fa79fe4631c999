//go:build long

package main

import "testing"

// TestReleaseRuns is about the real command, whose build for another architecture takes minutes.
func TestReleaseRuns(t *testing.T) {
	checkPulled(t, assemble(t, compile(t, "../../../..", "./cmd/foresail")...), "version")
}
