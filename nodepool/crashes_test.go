//go:build !race

package nodepool

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// These play hundreds of cycles one after the other, in one goroutine: the race detector would find nothing in them.

func TestCrashAtEveryAct(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			acts := s.play(t, &killer{at: -1})
			require.Greater(t, acts, 4)
			for at := range acts {
				for _, after := range []bool{false, true} {
					t.Run(fmt.Sprintf("%d %t", at, after), func(t *testing.T) { s.play(t, &killer{at: at, after: after}) })
				}
			}
			t.Logf("%d acts", acts)
		})
	}
}

// TestCrashLeavesNoNodeOfAGoneInstance kills the process at each act. Its instances go at the same moment, so that the next
// process finds their Nodes by the journal and the pool's label alone.
func TestCrashLeavesNoNodeOfAGoneInstance(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for at, more := 0, true; more; at++ {
				for _, after := range []bool{false, true} {
					more = s.loseInstances(t, &killer{at: at, after: after})
				}
			}
		})
	}
}

// TestManyProcesses runs cycles of several processes in random order, with wrong clocks, saves that conflict or whose
// answers are lost, failing launches, restarts, and instances that vanish. A run depends on nothing but its seed, the
// name of the subtest: FORESAIL_SEEDS=5-6 repeats those of 5. The long tests have more seeds.
func TestManyProcesses(t *testing.T) { testManyProcesses(t, 0, 3) }
