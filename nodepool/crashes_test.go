//go:build !race

package nodepool

import "testing"

// These play hundreds of cycles one after the other, in one goroutine: the race detector would find nothing in them.

func TestCrashAtEveryAct(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			crashes(t, s.play, s.play)
		})
	}
}

// TestCrashLeavesNoNodeOfAGoneInstance kills the process at each act. Its instances go at the same
// moment, so that the next process finds their Nodes by the journal and the pool's label alone.
func TestCrashLeavesNoNodeOfAGoneInstance(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			crashes(t, func(t *testing.T, k *killer) { s.labelled(t, k) }, s.loseInstances)
		})
	}
}

// TestManyProcesses runs cycles of several processes in random order, with wrong clocks, saves that conflict or whose
// answers are lost, failing launches, restarts, and instances that vanish. A run depends on nothing but its seed, the
// name of the subtest: FORESAIL_SEEDS=5-6 repeats those of 5. The long tests have more seeds.
func TestManyProcesses(t *testing.T) { testManyProcesses(t, 0, 3) }
