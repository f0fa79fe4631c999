package main

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/api/v1alpha1"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return began.Add(d) }

func TestWaitsCountPodsOfTheLoadOnly(t *testing.T) {
	l := newLedger()
	l.begin(began)
	maps.Copy(l.pods, map[types.UID]*pod{
		"before": {seen: after(-time.Second), bound: after(time.Minute)},
		"first":  {seen: after(time.Second), bound: after(4 * time.Second)},
		"second": {seen: after(time.Second), bound: after(2 * time.Second), gone: true},
		"never":  {seen: after(time.Second)},
		"left":   {seen: after(time.Second), gone: true},
	})
	waits, never := l.waits()
	assert.Equal(t, []time.Duration{time.Second, 3 * time.Second}, waits)
	assert.Equal(t, 1, never)
}

func TestQuantile(t *testing.T) {
	assert.Zero(t, quantile(nil, 0.5))
	values := []time.Duration{1, 2, 3, 4}
	assert.Equal(t, time.Duration(1), quantile(values, 0))
	assert.Equal(t, time.Duration(2), quantile(values, 0.5))
	assert.Equal(t, time.Duration(4), quantile(values, 0.99))
	assert.Equal(t, time.Duration(4), quantile(values, 1))
}

func TestNodeTimeCountsTheLoadOnly(t *testing.T) {
	l := newLedger()
	l.begin(began)
	l.instances["before"] = &instance{seen: after(-time.Minute), ended: after(time.Minute)}
	l.instances["stays"] = &instance{seen: after(30 * time.Second)}
	l.instances["ended"] = &instance{seen: after(-time.Minute), ended: after(-time.Second)}
	assert.Equal(t, time.Minute+90*time.Second, l.nodeTime(after(2*time.Minute)))
}

func TestLaunchesAheadOfPods(t *testing.T) {
	l := newLedger()
	l.begin(began)
	l.instances["minimum"] = &instance{seen: after(-time.Minute), ahead: true}
	l.instances["ahead"] = &instance{seen: after(time.Second), ahead: true}
	l.instances["late"] = &instance{seen: after(time.Second)}
	all, ahead := l.launches()
	assert.Equal(t, 2, all)
	assert.Equal(t, 1, ahead)
}

func decided(at time.Duration, step, reason string, count int32) v1alpha1.PoolDecision {
	return v1alpha1.PoolDecision{Time: metav1.NewTime(after(at)), Step: step, Reason: reason, Count: count}
}

// TestFollowsTheDecisionTrail has the trail grow, count up, and be cut off.
func TestFollowsTheDecisionTrail(t *testing.T) {
	l := newLedger()
	l.begin(began)
	a, b, c, d := decided(0, "Hold", "NothingToDo", 1), decided(time.Second, "ScaleUp", "PodsPending",
		1), decided(time.Second, "Hold", "ActionOpen", 1), decided(2*time.Second, "Hold", "NothingToDo", 1)
	l.seeDecisions([]v1alpha1.PoolDecision{a})
	l.seeDecisions([]v1alpha1.PoolDecision{c, b, a})
	l.seeDecisions([]v1alpha1.PoolDecision{c, b, a})
	c.Count = 5
	l.seeDecisions([]v1alpha1.PoolDecision{c, b, a})
	l.seeDecisions([]v1alpha1.PoolDecision{d, c})
	require.Equal(t, []v1alpha1.PoolDecision{a, b, c, d}, l.decisions)
	assert.Equal(t, "Hold ActionOpen ×5, Hold NothingToDo ×2, ScaleUp PodsPending ×1", l.reasons())
}

func TestLoadClimbsAndLeaves(t *testing.T) {
	l := defaultLoad()
	assert.Equal(t, l.low, l.replicas(0))
	assert.Equal(t, (l.low+l.high)/2, l.replicas((l.climbAt+l.topAt)/2))
	assert.Equal(t, l.high, l.replicas(l.topAt))
	assert.Equal(t, l.low, l.replicas(l.leavesAt))
	assert.Less(t, l.leavesAt, l.longestPlay)
}
