package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"
)

// spread counts workers by zone and market, for whom a pool keeps when others go.
type spread struct {
	pool           Pool
	workers, ready map[string]int // by zone
	zones          int            // with ready workers
	spareOnDemand  int            // how many On-Demand workers may go, below zero if there are too few; math.MaxInt = all
	offers         []fleet.Offer
}

func newSpread(s Snapshot, list []Worker) *spread {
	f := &spread{pool: s.Pool, workers: map[string]int{}, ready: map[string]int{}, spareOnDemand: math.MaxInt, offers: s.Offers}
	onDemand := 0
	for _, w := range list {
		f.workers[w.Zone]++
		if w.Ready {
			f.ready[w.Zone]++
		}
		if w.Market != fleet.Spot {
			onDemand++
		}
	}
	for _, n := range f.ready {
		if n > 0 {
			f.zones++
		}
	}
	if onDemand < len(list) {
		f.spareOnDemand = onDemand - s.Pool.OnDemandBase
	}
	return f
}

// leave takes a worker out.
func (f *spread) leave(w Worker) {
	f.workers[w.Zone]--
	if w.Market != fleet.Spot && f.spareOnDemand < math.MaxInt {
		f.spareOnDemand--
	}
	if w.Ready {
		f.ready[w.Zone]--
		if f.ready[w.Zone] == 0 {
			f.zones--
		}
	}
}

// join adds a worker.
func (f *spread) join(w Worker) {
	f.workers[w.Zone]++
	if w.Market != fleet.Spot && f.spareOnDemand < math.MaxInt {
		f.spareOnDemand++
	}
	if w.Ready {
		if f.ready[w.Zone] == 0 {
			f.zones++
		}
		f.ready[w.Zone]++
	}
}

// leftBehind tells whether a worker is outdated, and nothing is launched in its zone any more: no other can take its place there.
func (f *spread) leftBehind(w Worker) bool {
	return w.Outdated != "" && len(f.offers) > 0 && !slices.ContainsFunc(f.offers, func(o fleet.Offer) bool { return o.Zone == w.Zone })
}

// last tells whether a worker is the last ready one of its zone, and there are others in other zones.
func (f *spread) last(w Worker) bool { return w.Ready && f.ready[w.Zone] == 1 && f.zones > 1 }

// keeps tells why a worker must stay, "" if it may go. Each zone keeps its last ready worker where the minimum is enough for
// one in each zone, but an outdated one where nothing is launched any more. As many workers stay On-Demand as OnDemandBase says, if others are not. Whoever is kept is kept as well
// when others have gone.
func (f *spread) keeps(w Worker) string {
	switch {
	case f.last(w) && f.pool.Min >= f.zones && !f.leftBehind(w):
		return fmt.Sprintf("it is the last ready one of zone %s", w.Zone)
	case w.Market != fleet.Spot && f.spareOnDemand <= 0:
		return fmt.Sprintf("market.onDemandBase keeps %s", count(f.pool.OnDemandBase, "On-Demand worker"))
	}
	return ""
}
