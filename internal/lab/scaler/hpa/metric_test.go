package hpa

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// The rules are those of "Algorithm details" in the HPA's documentation and of docs/hpa.md.
func TestExternalMetric(t *testing.T) {
	for _, c := range []struct {
		rule  string
		m     External
		state State
		want  int
	}{
		{"200m for a target of 100m doubles", External{Total: 200, Target: 100}, found(4, 4, 4), 8},
		{"50m for a target of 100m halves", External{Total: 50, Target: 100}, found(4, 4, 4), 2},
		{"a ratio of 1.1 is within the tolerance", External{Total: 110, Target: 100}, found(10, 10, 10), 10},
		{"one above it is not, and rounds up", External{Total: 111, Target: 100}, found(10, 10, 10), 12},
		{"a ratio of 0.9 is within the tolerance", External{Total: 900, Target: 1000}, found(10, 10, 10), 10},
		{"Value multiplies ready pods, not spec.replicas", External{Total: 1150, Target: 1000}, found(10, 10, 4), 5},
		{"Value within the tolerance leaves spec.replicas", External{Total: 1050, Target: 1000}, found(10, 7, 4), 10},
		{"Value with no pod ready asks for none", External{Total: 2000, Target: 1000}, found(10, 10, 0), 0},
		{"AverageValue is a total, whatever is ready", External{Total: 9_500, Target: 1000, Average: true},
			found(4, 4, 1), 10},
		{"AverageValue compares with status.replicas", External{Total: 10_900, Target: 1000, Average: true},
			found(8, 10, 1), 10},
		{"10 to 11 is never taken at 10%", External{Total: 11_000, Target: 1000, Average: true}, found(10, 10, 10), 10},
		{"more than the API has room for", External{Total: 1 << 60, Target: 1, Average: true}, found(10, 10, 10),
			1<<31 - 1},
	} {
		got, err := c.m.replicas(&c.state, tolerance{up: 0.1, down: 0.1}, flags())
		require.NoError(t, err, c.rule)
		assert.Equal(t, c.want, got, c.rule)
	}
}

func TestToleranceOfEachDirection(t *testing.T) {
	state := found(10, 10, 10)
	for _, c := range []struct {
		total int64
		t     tolerance
		want  int
	}{
		{10_001, tolerance{up: 0, down: 0.1}, 11},
		{9_001, tolerance{up: 0, down: 0.1}, 10},
		{9_000, tolerance{up: 0.1, down: 0.05}, 9},
		{10_000, tolerance{}, 10},
	} {
		got, err := External{Total: c.total, Target: 1000, Average: true}.replicas(&state, c.t, flags())
		require.NoError(t, err)
		assert.Equal(t, c.want, got, "%d with %+v", c.total, c.t)
	}
}

func TestUtilization(t *testing.T) {
	const now = 600_000
	ready := func(usage int64) Pod {
		return Pod{
			Phase: corev1.PodRunning, Started: 0, Ready: corev1.ConditionTrue, Changed: 20_000, Request: 1000,
			Usage: &Usage{Value: usage, T: now - 5000, Window: 10 * time.Second},
		}
	}
	missing := Pod{Phase: corev1.PodRunning, Started: 0, Ready: corev1.ConditionTrue, Changed: 20_000, Request: 1000}
	starting := ready(500) // has been ready for less than the window of its reading
	starting.Started, starting.Changed = now-30_000, now-10_000
	started := starting
	started.Changed = now - 15_000
	pending := Pod{Phase: corev1.PodPending, Started: Unset, Request: 1000}
	failed, terminating := ready(3000), ready(3000)
	failed.Phase, terminating.Terminating = corev1.PodFailed, true
	lost := ready(1400) // was ready once, is not now, and is past its initialisation
	lost.Ready, lost.Changed = corev1.ConditionFalse, now-1000

	for _, c := range []struct {
		rule string
		pods []Pod
		want int
	}{
		{"the mean over the pods, over the target", []Pod{ready(1400), ready(700)}, 3},
		{"per cent are whole, cut off: 77.9 is within the tolerance", []Pod{ready(779), ready(779)}, 2},
		{"78 is not", []Pod{ready(780), ready(780)}, 3},
		{"scale-down takes pods without a metric for busy", []Pod{ready(200), ready(200), ready(200), missing}, 3},
		{"enough of them stop it", []Pod{ready(500), ready(500), missing, missing}, 4},
		{"scale-up takes them for idle", []Pod{ready(1400), ready(1400), ready(1400), missing}, 6},
		{"and does not turn into scale-down", []Pod{ready(900), missing, missing}, 3},
		{"scale-up takes unready pods for idle", []Pod{ready(1400), ready(1400), pending}, 4},
		{"so that it does not grow while they start", []Pod{ready(1000), ready(1000), pending}, 3},
		{"scale-down does not look at them", []Pod{ready(200), ready(200), pending}, 1},
		{"what a pod used before it was ready does not count", []Pod{ready(1400), starting}, 2},
		{"once it has been ready for a window it does", []Pod{ready(1400), started}, 3},
		{"nor do pods that have failed or end", []Pod{ready(1400), failed, terminating}, 2},
		{"a pod that was ready once counts on", []Pod{lost, ready(1400)}, 4},
	} {
		state := State{Now: now, Spec: len(c.pods), Status: len(c.pods), Pods: c.pods}
		got, err := Utilization{Target: 70}.replicas(&state, tolerance{up: 0.1, down: 0.1}, flags())
		require.NoError(t, err, c.rule)
		assert.Equal(t, c.want, got, c.rule)
	}

	unset := ready(100)
	unset.Request = Unset
	idle := ready(0)
	idle.Request = 0
	for rule, pods := range map[string][]Pod{
		"no pods": nil, "none counts": {pending}, "none has a metric": {missing}, "no request": {ready(100), unset},
		"a request of nothing": {idle},
	} {
		_, err := Utilization{Target: 70}.replicas(&State{Now: now, Spec: 1, Status: 1, Pods: pods}, tolerance{},
			flags())
		assert.Error(t, err, rule)
	}
	_, err := Utilization{Target: 70, Err: errors.New("no answer")}.replicas(&State{Now: now, Spec: 1, Status: 1},
		tolerance{}, flags())
	assert.ErrorContains(t, err, "no answer")
}

func flags() *Flags {
	f := DefaultFlags()
	return &f
}

// found is a target of which so many pods are asked for, exist and are ready.
func found(spec, status, ready int) State {
	s := State{Spec: spec, Status: status}
	for i := range status {
		p := Pod{Phase: corev1.PodRunning, Ready: corev1.ConditionFalse}
		if i < ready {
			p.Ready = corev1.ConditionTrue
		}
		s.Pods = append(s.Pods, p)
	}
	return s
}
