package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
)

func busy() scene {
	workers := int32(3)
	s := scene{
		at: 20 * time.Second, phase: "demand climbs", asked: 19, running: 16, waiting: 3, began: began,
		longest: 110 * time.Second,
		figures: figures{known: true, load: 0.74, predicted: 1.9, desired: 4},
		status: v1alpha1.WorkerPoolStatus{Workers: &workers,
			Action: &v1alpha1.PoolAction{Kind: "ScaleUp", Progress: "1 Launched"}},
		spec: v1alpha1.WorkerPoolSpec{Min: 2, Max: 8},
		nodes: []node{
			{name: "workers-1", zone: "a", market: fleet.Spot, state: serving, pods: 8},
			{name: "i-2", zone: "b", market: fleet.OnDemand, state: launching, age: 3 * time.Second},
		},
		health: "it has reported nothing yet",
	}
	for i := range 30 {
		d := decided(time.Duration(i)*time.Second, "Hold", "NothingToDo", 2)
		d.Message = strings.Repeat("a long reason ", 20)
		s.decisions = append(s.decisions, d)
	}
	return s
}

func TestViewFitsTheTerminal(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 12}, {200, 60}, {10, 3}} {
		drawn := view(busy(), size[0], size[1])
		assert.LessOrEqual(t, len(drawn), size[1])
		for _, line := range drawn {
			assert.LessOrEqual(t, line.Width(), size[0], line.Render(false))
		}
	}
}

func TestViewShowsEverything(t *testing.T) {
	var rendered []string
	for _, line := range view(busy(), 120, 40) {
		rendered = append(rendered, line.Render(false))
	}
	text := strings.Join(rendered, "\n")
	for _, want := range []string{
		"0:20 of at most 1:50", "demand climbs", "checkout has 19 replicas", strings.Repeat("●",
			16) + "○○○", "16 run, 3 wait for a node",
		"load 0.74 of 0.70, 1.90 in a while", "3 of 2 to 8, 4 desired   ScaleUp: 1 Launched", "■■■■■■■■",
		"launching  since 3 s",
		"it has reported nothing yet", "0:29 Hold 0 → 0 NothingToDo ×2: a long reason",
	} {
		assert.Contains(t, text, want)
	}
}

func TestLinesShowDecisionsOnceAndNewReasons(t *testing.T) {
	var out bytes.Buffer
	l := newLines(&out)
	s := scene{began: began, decisions: []v1alpha1.PoolDecision{decided(-time.Minute, "Hold", "Before", 1)}}
	s.decisions = append(s.decisions, decided(0, "ScaleUp", "PodsPending", 1), decided(1, "Hold", "ActionOpen", 1),
		decided(2, "Hold", "ActionOpen", 1), decided(3, "ScaleUp", "PodsPending", 1))
	l.show(s)
	l.show(s)
	assert.Equal(t, 2, strings.Count(out.String(), "PodsPending"))
	assert.Equal(t, 1, strings.Count(out.String(), "ActionOpen"))
	assert.NotContains(t, out.String(), "Before")
	assert.Equal(t, 1, strings.Count(out.String(), "asked"), "a line every five seconds")
}

func TestHealth(t *testing.T) {
	l := newLedger()
	assert.Equal(t, "it has reported nothing yet", l.health())
	l.pool.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionTrue},
		{Type: v1alpha1.ConditionForecasting, Status: metav1.ConditionFalse, Message: "too little has been seen"},
	}
	assert.Equal(t, "Forecasting is False: too little has been seen", l.health())
}
