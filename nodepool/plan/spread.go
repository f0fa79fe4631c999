package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"
)

// spread counts workers by zone and market. It decides which of them must stay when others are
// removed.
type spread struct {
	min, onDemandBase int
	workers, ready    map[string]int // by zone
	zones             int            // with ready workers
	spareOnDemand     int            // On-Demand workers that may be removed, negative if there are too few; MaxInt = all
	offers            []fleet.Offer
}

func newSpread(s Snapshot, list []*Instance) *spread {
	f := &spread{
		min: s.Pool.Min, onDemandBase: s.Pool.OnDemandBase, offers: s.Offers,
		workers: map[string]int{}, ready: map[string]int{}, spareOnDemand: math.MaxInt,
	}
	onDemand := 0
	for _, w := range list {
		f.join(w)
		if w.Market != fleet.Spot {
			onDemand++
		}
	}
	if onDemand < len(list) {
		f.spareOnDemand = onDemand - s.Pool.OnDemandBase
	}
	return f
}

func (f *spread) clone() spread {
	c := *f
	c.workers, c.ready = maps.Clone(f.workers), maps.Clone(f.ready)
	return c
}

// leave takes a worker out.
func (f *spread) leave(w *Instance) {
	f.workers[w.Zone]--
	if w.Market != fleet.Spot && f.spareOnDemand < math.MaxInt {
		f.spareOnDemand--
	}
	if w.Ready() {
		f.ready[w.Zone]--
		if f.ready[w.Zone] == 0 {
			f.zones--
		}
	}
}

// join adds a worker.
func (f *spread) join(w *Instance) {
	f.workers[w.Zone]++
	if w.Market != fleet.Spot && f.spareOnDemand < math.MaxInt {
		f.spareOnDemand++
	}
	if w.Ready() {
		if f.ready[w.Zone] == 0 {
			f.zones++
		}
		f.ready[w.Zone]++
	}
}

// leftBehind reports whether a worker is outdated and nothing can be launched in its zone any more,
// so no other worker can replace it there.
func (f *spread) leftBehind(w *Instance) bool {
	return w.Outdated != "" && len(f.offers) > 0 &&
		!slices.ContainsFunc(f.offers, func(o fleet.Offer) bool { return o.Zone == w.Zone })
}

// last reports whether a worker is the last ready one of its zone while other zones have some.
func (f *spread) last(w *Instance) bool { return w.Ready() && f.ready[w.Zone] == 1 && f.zones > 1 }

// mustStay returns why a worker must stay, "" if it need not. Each zone keeps its last ready worker if
// the minimum is enough for one in each zone, except an outdated one where nothing can be launched
// any more. OnDemandBase workers stay On-Demand if others are Spot. A worker that is kept stays
// kept when others are removed.
func (f *spread) mustStay(w *Instance) string {
	switch {
	case f.last(w) && f.min >= f.zones && !f.leftBehind(w):
		return fmt.Sprintf("it is the last ready one of zone %s", w.Zone)
	case w.Market != fleet.Spot && f.spareOnDemand <= 0:
		return fmt.Sprintf("market.onDemandBase keeps %s", count(f.onDemandBase, "On-Demand worker"))
	}
	return ""
}
