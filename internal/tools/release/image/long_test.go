//go:build long

package image

import "testing"

// TestReleaseRuns is about the real command, whose build for another architecture takes minutes.
func TestReleaseRuns(t *testing.T) {
	checkPulled(t, assemble(t, build(t, "../../../..", "./cmd/foresail")...), "version")
}
