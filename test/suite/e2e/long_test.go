//go:build long

package e2e

import "testing"

// timeScale is 1: HPAs sync every 15 s, pods take 20 s to become ready, and the ramp is that of the paper.
const timeScale = 1

func TestClosedLoopOfRealLength(t *testing.T) { testClosedLoop(t) }

func TestSourcesOfRealLength(t *testing.T) { testSources(t) }
