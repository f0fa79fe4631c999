package nodepool

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCrash kills a process at every call of every workflow that changes something, before it is sent and after it was
// answered, and has another one take over.
func TestCrash(t *testing.T) {
	for _, in := range places() {
		var ran atomic.Int64
		t.Run(in.name, func(t *testing.T) {
			for _, sc := range scenarios() {
				t.Run(sc.name, func(t *testing.T) {
					t.Parallel()
					crashEverywhere(t, sc, in.make, &ran)
				})
			}
		})
		t.Logf("%s: %d crash points", in.name, ran.Load())
	}
}

// crashEverywhere learns the calls of a scenario in which nobody dies, and then has a process die at each.
func crashEverywhere(t *testing.T, sc scenario, newCloud func(*stage) cloud, ran *atomic.Int64) {
	var calls []string
	if !t.Run("nobody dies", func(t *testing.T) { calls = undisturbed(t, sc, newCloud) }) {
		return
	}
	names := titles(calls)
	for _, at := range points(calls) {
		for _, when := range []moment{before, after} {
			ran.Add(1)
			t.Run(fmt.Sprintf("%s %s", when, names[at-1]), func(t *testing.T) {
				t.Parallel()
				crash(t, sc, newCloud, kill{at: at, when: when}, calls[:at])
			})
		}
	}
}

// undisturbed runs a scenario to its end and returns the calls that changed something on the way to rest.
func undisturbed(t *testing.T, sc scenario, newCloud func(*stage) cloud) []string {
	s := newStage(t, sc, newCloud)
	p := s.start("one", nil, 0)
	require.True(t, s.drive(p))
	calls := p.wire.calls
	require.True(t, s.linger(p))
	s.check()
	t.Logf("%d calls: %q", len(calls), titles(calls))
	return calls
}

// crash kills a process, which is expected to make the given calls, and has another one finish what it began.
func crash(t *testing.T, sc scenario, newCloud func(*stage) cloud, k kill, calls []string) {
	s := newStage(t, sc, newCloud)
	one := s.start("one", &k, 0)
	require.False(t, s.drive(one), "it makes %d calls and not %d: %q", len(one.wire.calls), k.at, one.wire.calls)
	require.Equal(t, calls, one.wire.calls, "the calls of one run are those of another")
	s.note("one is killed %s %s", k.when, calls[len(calls)-1])
	two := s.start("two", nil, 0)
	require.True(t, s.drive(two))
	require.True(t, s.linger(two))
	s.check()
}
