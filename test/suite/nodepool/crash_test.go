package nodepool

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// crashEvery is the share of the crash points that TestCrash takes, one in so many. TestEveryCrash takes all.
const crashEvery = 8

// TestCrash kills a process at calls of every workflow that change something, before they are sent
// and after they were answered, and has another one take over. It takes one crash point in eight,
// and each kind of call at least once.
func TestCrash(t *testing.T) { testCrash(t, crashEvery) }

func testCrash(t *testing.T, every int) {
	story := 0 // stories begin at different points, so that stores complement each other
	for _, in := range places() {
		var ran, all atomic.Int64
		t.Run(in.name, func(t *testing.T) {
			for _, sc := range append(scenarios(), in.more...) {
				first := story % every
				story++
				t.Run(sc.name, func(t *testing.T) {
					t.Parallel()
					var calls []string
					if !t.Run("nobody dies", func(t *testing.T) { calls = undisturbed(t, sc, in.make) }) {
						return
					}
					kills := killsOf(calls)
					chosen := choose(calls, kills, first, every)
					all.Add(int64(len(kills)))
					ran.Add(int64(len(chosen)))
					crashAt(t, sc, in.make, calls, chosen)
				})
			}
		})
		t.Logf("%s: %d of %d crash points", in.name, ran.Load(), all.Load())
	}
}

// killsOf returns all crash points of a scenario with these calls.
func killsOf(calls []string) []kill {
	var out []kill
	for _, at := range points(calls) {
		out = append(out, kill{at, before}, kill{at, after})
	}
	return out
}

// choose returns one kill in so many, from a first one on, and one of each kind of call that these leave out.
func choose(calls []string, kills []kill, first, every int) []kill {
	var out []kill
	kinds := map[string]bool{}
	for i := first; i < len(kills); i += every {
		out = append(out, kills[i])
		kinds[kindOf(calls[kills[i].at-1])] = true
	}
	for _, k := range kills {
		if kind := kindOf(calls[k.at-1]); !kinds[kind] {
			out = append(out, k)
			kinds[kind] = true
		}
	}
	return out
}

// kindOf is the name of a call, without what is written to the journal.
func kindOf(call string) string {
	if strings.HasPrefix(call, "save ") {
		return "save"
	}
	return call
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

// crashAt has a process of a scenario with these calls die at each of the chosen ones.
func crashAt(t *testing.T, sc scenario, newCloud func(*stage) cloud, calls []string, chosen []kill) {
	names := titles(calls)
	for _, k := range chosen {
		t.Run(fmt.Sprintf("%s %s", k.when, names[k.at-1]), func(t *testing.T) {
			t.Parallel()
			crash(t, sc, newCloud, k, calls[:k.at])
		})
	}
}

// crash kills a process, which is expected to make the given calls, and has another one finish what it began.
func crash(t *testing.T, sc scenario, newCloud func(*stage) cloud, k kill, calls []string) {
	s := newStage(t, sc, newCloud)
	one := s.start("one", &k, 0)
	require.False(t, s.drive(one), "it makes %d calls and not %d: %q", len(one.wire.calls), k.at, one.wire.calls)
	require.Equal(t, calls, one.wire.calls[:len(calls)],
		"the calls of one run are those of another, and others are under way at the same time")
	s.note("one is killed %s %s", k.when, calls[len(calls)-1])
	two := s.start("two", nil, 0)
	require.True(t, s.drive(two))
	require.True(t, s.linger(two))
	s.check()
}
