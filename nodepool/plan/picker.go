package plan

import (
	"fmt"

	"github.com/foresail/foresail/nodepool/fleet"
)

// fewQuestions bounds the simulations of a [picker] that has already chosen some workers. The next
// decision simulates others.
const fewQuestions = 24

// picker chooses outdated workers that may be removed together, each with or without a replacement
// launched before. Each is simulated in the pool as it will be: with the launches, and without the
// workers chosen before.
type picker struct {
	simulator Simulator // nil: places of pods are not checked
	staying   *spread
	placer    *placer // of replacements; nil = none are launched

	chosen    []*Instance
	launched  []fleet.Placement // one for each of them
	asked     int
	unmovable []Refusal // workers whose pods would fit on no other node even if no other worker were removed
	refused   int       // for that reason, or because of others that are removed
	why       string    // the reason of one that was not chosen
	cooling   bool      // no replacement could be launched for one
}

func newPicker(f *facts, p *placer) *picker {
	return &picker{simulator: f.Simulator, staying: newSpread(f.Snapshot, f.staying), placer: p}
}

// pick chooses up to most workers. Usually all of them fit, which one simulation shows. Otherwise
// it tries smaller groups, and larger ones again as long as they fit.
func (p *picker) pick(list []*Instance, most int) {
	for size := most; len(list) > 0 && len(p.chosen) < most && !p.hasSimulatedEnough(); {
		n := min(size, len(list), most-len(p.chosen))
		switch why := p.try(list[:n]); {
		case why == "":
			list, size = list[n:], 4*n
		case n == 1:
			p.recordRefusal(list[0], why)
			list = list[1:]
		default:
			size = n / 4
		}
		size = max(1, size)
	}
}

// hasSimulatedEnough reports whether enough simulations have been made.
func (p *picker) hasSimulatedEnough() bool {
	return p.asked >= maxQuestions || p.refused >= maxUnmovable || len(p.chosen) > 0 && p.asked >= fewQuestions
}

func (p *picker) recordRefusal(w *Instance, why string) {
	p.refused++
	p.why = fmt.Sprintf("the pods of %s would fit on no other node: %s", w.Node.Name, why)
	if p.placer != nil {
		p.why = fmt.Sprintf("the pods of %s would not fit on a new node: %s", w.Node.Name, why)
	}
	if len(p.chosen) == 0 {
		p.unmovable = append(p.unmovable, Refusal{Worker: w.Node.Name, Reason: why, Unmovable: true})
	}
}

// try adds workers to the chosen ones, except those that the spread keeps. If their pods fit
// nowhere else it adds none and returns why.
func (p *picker) try(list []*Instance) string {
	start := p.save()
	for _, w := range list {
		p.add(w)
	}
	if len(p.chosen) == start.chosen || p.simulator == nil {
		return ""
	}
	nodes := make([]string, len(p.chosen))
	for i, w := range p.chosen {
		nodes[i] = w.Node.Name
	}
	p.asked++
	why := p.simulator.Without(nodes, MustGo(Outdated), p.launched...)
	if why == "" && start.chosen == 0 && len(nodes) > 1 {
		why = firstAlone(p.simulator, nodes, MustGo(Outdated), p.launched...)
	}
	if why != "" {
		p.restore(start)
	}
	return why
}

func (p *picker) add(w *Instance) {
	start := p.save()
	if p.placer != nil {
		at, ok := p.placer.inPlaceOf(w)
		if !ok {
			p.restore(start)
			p.cooling = true
			return
		}
		p.launched = append(p.launched, at)
		p.staying.join(placed(at))
	}
	if why := p.staying.mustStay(w); why != "" {
		p.restore(start)
		p.why = fmt.Sprintf("%s stays, as %s", w.name(), why)
		return
	}
	p.staying.leave(w)
	p.chosen = append(p.chosen, w)
}

// picked is a state to which a picker returns.
type picked struct {
	staying spread
	placer  *placer
	chosen  int
}

func (p *picker) save() picked {
	return picked{p.staying.clone(), p.placer.clone(), len(p.chosen)}
}

func (p *picker) restore(to picked) {
	*p.staying, p.placer, p.chosen = to.staying, to.placer, p.chosen[:to.chosen]
	if p.placer != nil {
		p.launched = p.launched[:to.chosen]
	}
}

// targets returns the chosen workers.
func (p *picker) targets() []Target {
	out := make([]Target, len(p.chosen))
	for i, w := range p.chosen {
		out[i] = targetOf(w)
	}
	return out
}

// placed returns the ready worker that a launch will become.
func placed(at fleet.Placement) *Instance {
	return &Instance{Instance: fleet.Instance{Placement: at}, Node: Node{Ready: true}}
}
