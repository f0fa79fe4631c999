package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

func TestCandidates(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*plan.Snapshot) // of a pool that has been idle for long enough, of whose four workers two would do
		want   []string
	}{
		"of an idle pool": {func(*plan.Snapshot) {}, []string{"i-000", "i-001"}},
		"beyond the batch": {func(s *plan.Snapshot) { s.Pool.MaxBatchDown = 1 },
			[]string{"i-000", "i-001"}},
		"of a pool that has just become idle": {func(s *plan.Snapshot) { s.Record.IdleSince = time.Time{} },
			[]string{"i-000", "i-001"}},
		"in the cooldown": {func(s *plan.Snapshot) { s.Record.LastDown = ago(time.Second) },
			[]string{"i-000", "i-001"}},
		"the idlest first": {func(s *plan.Snapshot) { s.Instances[3].Utilisation = 0.1 },
			[]string{"i-003", "i-000"}},
		"not beyond the minimum":              {func(s *plan.Snapshot) { s.Pool.Min = 3 }, []string{"i-000"}},
		"none at the minimum":                 {func(s *plan.Snapshot) { s.Pool.Min = 4 }, nil},
		"not beyond what a signal needs":      {func(s *plan.Snapshot) { s.Signals[0].Fits = 3 }, []string{"i-000"}},
		"none if the rest would not carry it": {func(s *plan.Snapshot) { s.Signals[0].Fits = 4 }, nil},
		"none that must not go": {func(s *plan.Snapshot) {
			s.Instances[0].Blocked = "it has a pod that must stay"
		}, []string{"i-001", "i-002"}},
		"none that is left alone after a drain": {func(s *plan.Snapshot) {
			s.Record.DrainBackoff = map[string]time.Time{"i-001": noon.Add(time.Minute)}
		}, []string{"i-000", "i-003"}},
		"none of a busy pool": {func(s *plan.Snapshot) { s.Signals[0].Now = 0.4 }, nil},
		"of a busy pool that does not ask for it": {func(s *plan.Snapshot) { s.Signals[0].Now, s.Pool.Idle.CPU = 0.4, 1 },
			[]string{"i-000", "i-001"}},
		"of a pool above its maximum, if busy": {func(s *plan.Snapshot) { s.Signals[0].Now, s.Pool.Max = 0.4, 3 },
			[]string{"i-000"}},
		"none while pods are pending":      {func(s *plan.Snapshot) { s.Pending.Pods = 1 }, nil},
		"none while pods are unknown":      {func(s *plan.Snapshot) { s.Pending.Known = false }, nil},
		"none while a signal is not known": {func(s *plan.Snapshot) { loses(s, "memory") }, nil},
		"none while workers are not known": {func(s *plan.Snapshot) { s.WorkersErr = "the cloud does not answer" },
			nil},
		"none while a scale-up is open": {func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionUp) },
			nil},
		"the next ones while a scale-down is open": {func(s *plan.Snapshot) {
			s.Record.Action, s.Instances[0].Leaving = opened(state.ActionDown), true
		}, []string{"i-001"}},
		"none while a voice asks for more":     {func(s *plan.Snapshot) { wants(s, "cpu", 0.2, 6, time.Hour) }, nil},
		"none while one has, but not for long": {func(s *plan.Snapshot) { wants(s, "cpu", 0.2, 6, time.Second) }, nil},
		"none while too many are unready": {func(s *plan.Snapshot) {
			s.Instances = workersIn("a", "b", "a", "b", "a", "b", "a", "b")
			for i := range 4 {
				s.Instances[i].Node.Ready = false
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := idle()
			test.change(&s)
			d := plan.Decide(s)
			assert.Equal(t, test.want, ids(d.Candidates), d.Message)
			check(t, s, d)
		})
	}
}

func TestCandidatesAreNotWithoutEnd(t *testing.T) {
	s := idle()
	s.Instances = workersIn(slices.Repeat([]string{"a", "b"}, 150)...)
	s.Pool.Max = 1000
	d := plan.Decide(s)
	assert.Len(t, d.Candidates, plan.MaxCandidates)
	check(t, s, d)
}

// checkCandidates asserts that candidates may be removed, and that there are no more than spare workers.
func checkCandidates(t *testing.T, s plan.Snapshot, d plan.Decision) {
	t.Helper()
	named := len(d.Candidates)
	if named == 0 {
		return
	}
	assert.LessOrEqual(t, named, plan.MaxCandidates)
	assert.NotEqual(t, plan.ScaleUp, d.Step)
	assert.NotEqual(t, state.ActionUp, s.Record.ActionKind())
	assert.Empty(t, s.WorkersErr)
	assert.Equal(t, plan.Pending{Known: true, Unhelped: s.Pending.Unhelped, OldestFor: s.Pending.OldestFor,
		Nodes: s.Pending.Nodes, Room: s.Pending.Room}, s.Pending)

	n := len(staying(s))
	left := n - named
	assert.GreaterOrEqual(t, left, s.Pool.Min)
	if left < s.Pool.Max {
		assert.GreaterOrEqual(t, left, d.Recommended, "fewer than a voice asks for")
	}
	ready, zones, byID := 0, map[string]int{}, map[string]plan.Instance{}
	for _, w := range staying(s) {
		byID[w.ID] = w
		zones[w.Zone] += 0
		if w.Ready() {
			ready++
			zones[w.Zone]++
		}
	}
	withReady := 0
	for _, n := range zones {
		if n > 0 {
			withReady++
		}
	}
	for _, c := range d.Candidates {
		w, ok := byID[c.InstanceID]
		require.True(t, ok, "a worker that there is not, or that is named twice: %v", c)
		delete(byID, c.InstanceID)
		assert.Equal(t, plan.Target{InstanceID: w.ID, Node: w.Node.Name, Zone: w.Zone}, c)
		assert.NotEmpty(t, w.Node.Name)
		assert.True(t, w.Node.Ready && w.Known && w.Blocked == "" && !s.Record.DrainBackoff[w.ID].After(s.Now), "%+v", w)
		if w.Ready() {
			ready--
			zones[w.Zone]--
		}
		if w.Ready() && zones[w.Zone] == 0 {
			assert.True(t, withReady == 1 || s.Pool.Min < withReady, "zone %s would be left without", w.Zone)
			withReady--
		}
	}
	for _, signal := range s.Signals {
		assert.True(t, signal.Known, "without knowing %s", signal.Name)
		if !signal.InformsOnly && left < s.Pool.Max {
			assert.GreaterOrEqual(t, ready, signal.Fits, "the rest would carry too much")
		}
	}
	if d.Step == plan.ScaleDown && d.Reason != plan.Outdated {
		require.GreaterOrEqual(t, named, len(d.Targets))
		assert.Equal(t, d.Targets, d.Candidates[:len(d.Targets)], "others go than were named")
	}
}

// namesSome returns random snapshots with candidates.
func namesSome(t *testing.T, check func(t *testing.T, seed uint64, s plan.Snapshot, names []plan.Target)) {
	t.Helper()
	found := 0
	for seed := range uint64(20000) {
		s := random(seed)
		s.Record.Action, s.Pending, s.WorkersErr, s.Record.Interruptions = nil, plan.Pending{Known: true}, "", nil
		s.Pool.Idle.CPU, s.Pool.Idle.Memory = 1, 1
		for i := range s.Signals {
			s.Signals[i].Known, s.Signals[i].Down = true, 0
		}
		if names := plan.Decide(s).Candidates; len(names) > 0 {
			found++
			check(t, seed, s, names)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	assert.Greater(t, found, 1000)
}

// Workers that are named and get emptier, while the others get fuller, stay named. Not so where
// zones are left, and where OnDemandBase keeps some: whom these keep changes with the order of the
// others.
func TestCandidatesThatEmptyStayNamed(t *testing.T) {
	namesSome(t, func(t *testing.T, seed uint64, s plan.Snapshot, _ []plan.Target) {
		s.Pool.OnDemandBase = 0
		names := plan.Decide(s).Candidates
		if s.Pool.Min < 3 { // there are three zones at most
			return
		}
		s.Instances = slices.Clone(s.Instances)
		for i := range s.Instances {
			w := &s.Instances[i]
			if slices.ContainsFunc(names, func(c plan.Target) bool { return c.InstanceID == w.ID }) {
				w.Utilisation, w.Pods = w.Utilisation*float64(seed%3)/3, w.Pods/2
			} else {
				w.Utilisation, w.Pods = w.Utilisation+0.1, w.Pods+3
			}
		}
		assert.ElementsMatch(t, ids(names), ids(plan.Decide(s).Candidates))
	})
}

// If fewer are spare, the first ones of the list stay.
func TestFewerCandidatesAreTheFirstOnes(t *testing.T) {
	namesSome(t, func(t *testing.T, _ uint64, s plan.Snapshot, names []plan.Target) {
		ready := 0
		for _, w := range staying(s) {
			if w.Ready() {
				ready++
			}
		}
		fewer := len(names) - 1
		s.Signals = append(slices.Clip(s.Signals),
			plan.Signal{Name: "more", Known: true, Threshold: 0.7, Fits: ready - fewer})
		s.Pool.Max = max(s.Pool.Max, len(staying(s))-fewer)
		assert.Equal(t, ids(names[:len(names)-1]), ids(plan.Decide(s).Candidates))
	})
}
