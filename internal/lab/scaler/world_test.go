package scaler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/pipeline"
)

// loadOf is a load by its formula.
type loadOf func(t int64) float64

func (f loadOf) Rate(t int64) float64 { return f(t) }

// ramp rises from one rate to another between two times.
func ramp(from, to float64, begin, end int64) loadOf {
	return func(t int64) float64 {
		share := float64(min(max(t, begin), end)-begin) / float64(end-begin)
		return from + (to-from)*share
	}
}

// world is pods that share a load equally, without chance: a request costs 8 ms, a pod takes 20 s to start.
type world struct {
	load    lab.Load
	now     int64
	view    lab.View
	created int
	played  lab.Second
}

const (
	testCost    = 0.008
	testStartup = 20 * time.Second
)

func newWorld(load lab.Load, pods int) *world {
	w := &world{load: load, view: lab.View{Rose: -1, Fell: -1, Min: 2, Max: 30}}
	w.SetTarget(pods)
	for _, p := range w.view.Pods {
		p.Created, p.Ready = -40_000, -20_000
	}
	w.view.Rose = -1
	return w
}

func (w *world) Advance(to int64) {
	for w.now < to {
		end := min(to, (w.now/1000+1)*1000)
		var ready []*lab.Pod
		for _, p := range w.view.Pods {
			if p.IsReady(w.now) {
				ready = append(ready, p)
			}
		}
		rate := w.load.Rate(w.now)
		for _, p := range ready {
			busy := min(1, rate*testCost/float64(len(ready)))
			p.Busy.Add(w.now, busy*float64(end-w.now)/1000)
		}
		w.played = lab.Second{Rate: rate, Offered: rate * testCost, Ready: len(ready), Pods: len(running(w.View())),
			Target: w.view.Target}
		w.now = end
	}
}

func (w *world) View() *lab.View {
	w.view.Now = w.now
	w.view.Pods = slices.DeleteFunc(w.view.Pods, func(p *lab.Pod) bool { return p.Ended < w.now-600_000 })
	return &w.view
}

func (w *world) SetTarget(n int) {
	all := running(w.View())
	for range n - len(all) {
		w.created++
		id := fmt.Sprintf("pod-%d", w.created)
		w.view.Pods = append(w.view.Pods, &lab.Pod{ID: id, Created: w.now, Ready: w.now + testStartup.Milliseconds(),
			Ended: lab.Never})
	}
	slices.SortStableFunc(all, func(a, b *lab.Pod) int { return cmp.Compare(b.Ready, a.Ready) })
	for _, p := range all[:max(0, len(all)-n)] {
		p.Ended = w.now
		if p.Ready > w.now {
			p.Ready = lab.Never
		}
	}
	if n > w.view.Target {
		w.view.Rose = w.now
	} else if n < w.view.Target {
		w.view.Fell = w.now
	}
	w.view.Target = n
}

func (w *world) Second() lab.Second { return w.played }

func testSetup(load lab.Load) Setup {
	p := pipeline.HoltParams()
	return Setup{
		Threshold: 0.7, Min: 2, Max: 30, Params: p, Paper: p, Startup: testStartup, Seed: 1, Load: load, Cost: testCost,
	}
}

func play(t *testing.T, name string, s Setup, pods int, length time.Duration) *lab.Record {
	t.Helper()
	made, err := New(name, s)
	require.NoError(t, err)
	return lab.Run(newWorld(s.Load, pods), made, lab.Span{Lead: time.Minute, Length: length}, nil)
}

func need(rate float64) int { return int(math.Ceil(rate*testCost/0.7 - 1e-9)) }
