package main

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
)

// scene is all that is shown at one moment.
type scene struct {
	kubeconfig string // of the control plane
	profile    loadgen.Profile
	at         time.Duration // since the load began
	panels     []panel
}

// panel is one application.
type panel struct {
	app      stack.App
	moments  []stack.Moment // until now, in order of time
	forecast forecast
}

// forecast is what the adapter reports of an application; the zero value is unknown.
type forecast struct {
	known    bool
	load     float64 // of a pod at the horizon, with the replicas of now
	horizon  time.Duration
	decision *v1alpha1.LastDecision // the last one since the load began; nil: none
	age      time.Duration          // of the decision
}

// last returns how the application stands now.
func (p panel) last() stack.Moment {
	if len(p.moments) == 0 {
		return stack.Moment{}
	}
	return p.moments[len(p.moments)-1]
}

// desired is the count of replicas that the served value stands for; false while none is served.
func desired(a stack.App, m stack.Moment) (int, bool) {
	if m.Err != nil || m.At == 0 {
		return 0, false
	}
	const slack = 1e-6 // values are served in thousandths
	n := int(math.Ceil(m.Served/threshold(a) - slack))
	return min(max(n, a.Min), a.Max), true
}

func threshold(a stack.App) float64 { return a.Threshold.AsApproximateFloat64() }

// needed is how many pods carry a rate at the threshold.
func needed(a stack.App, rate float64) int {
	const slack = 1e-6
	return max(a.Min, int(math.Ceil(rate*a.ServiceTime.Seconds()/threshold(a)-slack)))
}

// most is the highest rate of a profile.
func most(p loadgen.Profile) float64 {
	return slices.MaxFunc(p, func(a, b loadgen.Point) int { return int(math.Copysign(1, a.RPS-b.RPS)) }).RPS
}

// phase names what the load does at a time.
func phase(p loadgen.Profile, at time.Duration) string {
	for i := len(p) - 2; i >= 0; i-- {
		from, to := p[i], p[i+1]
		switch {
		case at < from.At || at >= to.At:
		case to.RPS > from.RPS:
			return fmt.Sprintf("climbing to %.0f requests/s", to.RPS)
		case to.RPS < from.RPS:
			return fmt.Sprintf("falling to %.0f requests/s", to.RPS)
		default:
			return fmt.Sprintf("steady at %.0f requests/s", to.RPS)
		}
	}
	return "waiting for the last answers"
}

// board collects a scene from several goroutines.
type board struct {
	mu    sync.Mutex
	scene scene
}

func newBoard(kubeconfig string, profile loadgen.Profile, apps []stack.App) *board {
	b := &board{scene: scene{kubeconfig: kubeconfig, profile: profile}}
	for _, a := range apps {
		b.scene.panels = append(b.scene.panels, panel{app: a})
	}
	return b
}

// note adds a moment of the application with an index.
func (b *board) note(i int, m stack.Moment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scene.at = max(b.scene.at, m.At)
	b.scene.panels[i].moments = append(b.scene.panels[i].moments, m)
}

// foresee replaces the forecast of the application with an index.
func (b *board) foresee(i int, f forecast) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scene.panels[i].forecast = f
}

// look returns the scene as it is. Its moments are shared with the board, which only appends to them.
func (b *board) look() scene {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.scene
	s.panels = slices.Clone(s.panels)
	return s
}
