package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"
)

// maxQuestions bounds how often a choice of workers asks where their pods would run: each time costs a packing of all nodes.
const maxQuestions = 64

// fewQuestions bounds it once some are chosen: the next decision asks about the others.
const fewQuestions = 24

// picker chooses outdated workers that may go together, each in place of what is launched for it or for nothing. Whether one may go
// is asked of the fleet as it will be: with what is launched, and without those chosen before.
type picker struct {
	*view
	staying *spread
	placer  *placer // of what is launched in their place; nil = nothing is

	chosen   []Worker
	launched []fleet.Placement // for each of them
	asked    int
	homeless []Refusal // their pods would have no other node, even if they went alone
	refused  int       // for that or as others have gone
	why      string    // of one that was not chosen
	cooling  bool      // nothing could be launched for one
}

// picked is what a picker goes back to.
type picked struct {
	staying spread
	placer  *placer
	chosen  int
}

// pick chooses up to most workers. As a rule all may go, which one question tells. If not, it asks about fewer, and about more again
// as long as they may.
func (p *picker) pick(list []Worker, most int) {
	for size := most; len(list) > 0 && len(p.chosen) < most && !p.hasAsked(); {
		n := min(size, len(list), most-len(p.chosen))
		switch why := p.try(list[:n]); {
		case why == "":
			list, size = list[n:], 4*n
		case n == 1:
			p.refuse(list[0], why)
			list = list[1:]
		default:
			size = n / 4
		}
		size = max(1, size)
	}
}

// hasAsked tells whether enough has been asked.
func (p *picker) hasAsked() bool {
	return p.asked >= maxQuestions || p.refused >= maxHomeless || len(p.chosen) > 0 && p.asked >= fewQuestions
}

func (p *picker) refuse(w Worker, why string) {
	p.refused++
	p.why = fmt.Sprintf("the pods of %s would have no home: %s", w.Node, why)
	if p.placer != nil {
		p.why = fmt.Sprintf("a new node would be no home for the pods of %s: %s", w.Node, why)
	}
	if len(p.chosen) == 0 {
		p.homeless = append(p.homeless, Refusal{Worker: w.Node, Reason: why, Homeless: true})
	}
}

// try adds workers to the chosen ones, but for those that the fleet keeps. If their pods have no home it adds none and tells why.
func (p *picker) try(list []Worker) string {
	before := p.save()
	for _, w := range list {
		p.add(w)
	}
	if len(p.chosen) == before.chosen || p.Homes == nil {
		return ""
	}
	names := make([]string, len(p.chosen))
	for i, w := range p.chosen {
		names[i] = w.Node
	}
	p.asked++
	why := p.Homes.Without(names, Outdated.MustGo(), p.launched...)
	if why == "" && before.chosen == 0 && len(names) > 1 {
		why = firstAlone(p.Homes, names, Outdated.MustGo(), p.launched...)
	}
	if why != "" {
		p.restore(before)
	}
	return why
}

func (p *picker) add(w Worker) {
	before := p.save()
	if p.placer != nil {
		l, ok := p.placer.inPlaceOf(w)
		if !ok {
			p.restore(before)
			p.cooling = true
			return
		}
		p.launched = append(p.launched, l)
		p.staying.join(Worker{Placement: l, Ready: true})
	}
	if why := p.staying.keeps(w); why != "" {
		p.restore(before)
		p.why = fmt.Sprintf("%s stays, as %s", cmp.Or(w.Node, w.InstanceID), why)
		return
	}
	p.staying.leave(w)
	p.chosen = append(p.chosen, w)
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

func (f *spread) clone() spread {
	c := *f
	c.workers, c.ready = maps.Clone(f.workers), maps.Clone(f.ready)
	return c
}

func (p *placer) clone() *placer {
	if p == nil {
		return nil
	}
	c := *p
	c.zones = maps.Clone(p.zones)
	return &c
}

// inPlaceOf takes a worker out and places what replaces it: in its zone, or elsewhere if nothing can be launched there.
func (p *placer) inPlaceOf(w Worker) (fleet.Placement, bool) {
	p.workers--
	p.zones[w.Zone]--
	if w.Market == fleet.Spot {
		p.spot--
	}
	if l, ok := p.next(func(l fleet.Placement) bool { return l.Zone == w.Zone }); ok {
		return l, true
	}
	return p.next(anything)
}

// targetsOf are workers to be removed.
func targetsOf(list []Worker) []Target {
	out := make([]Target, len(list))
	for i, w := range list {
		out[i] = Target{InstanceID: w.InstanceID, Node: w.Node, Zone: w.Zone}
	}
	return out
}

// refuse adds to the refusals of a decision those of a roll-out, unless they are among them.
func (d Decision) refuse(more []Refusal) Decision {
	for _, r := range more {
		if !slices.ContainsFunc(d.Refused, func(other Refusal) bool { return other.Worker == r.Worker }) {
			d.Refused = append(d.Refused, r)
		}
	}
	return d
}
