package fluid

import (
	"fmt"

	"github.com/foresail/foresail/internal/lab"
)

// SetTarget implements lab.World.
func (w *World) SetTarget(n int) {
	switch {
	case n > w.target:
		w.rose = w.now
	case n < w.target:
		w.fell = w.now
	}
	w.target = n
	for w.alive < n {
		w.create()
	}
	for i := len(w.pods) - 1; i >= 0 && w.alive > n; i-- {
		if p := w.pods[i]; p.Ended == lab.Never && p.Ready > w.now {
			p.Ready = lab.Never
			w.end(p)
		}
	}
	for i := len(w.pods) - 1; i >= 0 && w.alive > n; i-- {
		if p := w.pods[i]; p.Ended == lab.Never {
			w.end(p)
		}
	}
}

// create orders a pod, which becomes ready on a whole second.
func (w *World) create() *lab.Pod {
	startup := float64(w.config.Startup.Milliseconds()) * (1 + startupSpread*(2*w.startups.Float64()-1))
	ready := (w.now + int64(startup) + second/2) / second * second
	p := &lab.Pod{ID: fmt.Sprintf("pod-%06d", w.created), Created: w.now, Ready: max(ready, w.dealt), Ended: lab.Never}
	w.pods = append(w.pods, p)
	w.created++
	w.alive++
	return p
}

func (w *World) end(p *lab.Pod) {
	p.Ended = w.now
	w.alive--
}
