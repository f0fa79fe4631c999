package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"
)

// Place chooses where, what and how n nodes are launched that may be anything, fewer if no placement is left. Placements
// that are cooling after errors and the ones already tried are left out.
//
// Each node in its turn is Spot if fewer than round(SpotRatio · m) workers are, where m is the number of workers with it
// above OnDemandBase. Where no Spot is left it is On-Demand. It is never the other way round: what is to be On-Demand must
// not be taken back. Placements that are suspected come after all others, whatever the market. Of the zones where its
// market is left it comes to the one with fewest workers, those placed before it included (seeds 001 and 003), and there
// to the first offer, or to the cheapest in that market where prices are given.
func Place(s Snapshot, n int, tried ...fleet.Placement) []fleet.Placement {
	return newPlacer(s, tried).place(nil, n, anything)
}

// MaxAlternatives is how many further instance types one launch may name. Each makes the journal longer until it is launched.
const MaxAlternatives = 9

// maxPriceOfAlternatives is how many times the price of the cheapest instance type an alternative may cost. Most types of the
// same size are within it, and those of twice the size are not.
const maxPriceOfAlternatives = 1.5

// MaxSubstitutes is how many slots may follow each other where no placement is used up by that.
const MaxSubstitutes = 3

// Lost is a slot of the open scale-up whose launch has failed for good.
type Lost struct {
	Slot int
	fleet.Placement
	Pinned   bool // pods need it to be what it is
	Outdated bool // it is launched in place of an outdated worker
	Again    bool // the placement was not refused, so that it is launched again
	Attempt  int  // launches of the slot that have failed before
}

// Substitute is a node in the place of a slot that was lost.
type Substitute struct {
	Slot int // that it takes the place of
	fleet.Placement
	Alternatives []string // see [Decision]
}

// Replacement is a node in the place of an instance that the cloud takes back.
type Replacement struct {
	InstanceID string
	fleet.Placement
	Alternatives []string // see [Decision]
}

// substitutes places nodes in the place of lost slots, and of instances that the cloud takes back as far as the decision wants
// them. Where no placement is left there are fewer.
func (v *view) substitutes(d Decision) (subs []Substitute, replacements []Replacement) {
	if v.State.Action != ActionUp || v.Pool.Deleting || v.WorkersErr != "" {
		return nil, nil
	}
	p := newPlacer(v.Snapshot, nil)
	for _, l := range v.State.Lost {
		if at, alternatives, ok := v.instead(p, l); ok {
			subs = append(subs, Substitute{l.Slot, at, alternatives})
		}
	}
	soonest := slices.SortedFunc(slices.Values(v.Notices), func(a, b Notice) int {
		return cmp.Or(a.Deadline.Compare(b.Deadline), cmp.Compare(a.InstanceID, b.InstanceID))
	})
	for _, n := range soonest {
		if len(v.staying)+len(v.State.PlannedAt)+len(subs)+len(replacements) >= d.Want {
			break
		}
		willDo := v.ahead(len(replacements))
		at, ok := p.next(willDo)
		if !ok {
			willDo = anything
			at, ok = p.next(willDo)
		}
		if ok {
			replacements = append(replacements, Replacement{n.InstanceID, at, p.alternatives(at, willDo)})
		}
	}
	return subs, replacements
}

// ahead reports which placements will do for the k-th node that is launched before its pods are pending.
func (v *view) ahead(k int) func(fleet.Placement) bool {
	for _, s := range v.Pending.Later {
		if k < s.Nodes {
			return s.Takes
		}
		k -= s.Nodes
	}
	return anything
}

// instead places a node in the place of one that was lost. If pods need it to be what it was, it is something else that they
// can run on. The same is launched again as just that: nobody knows what has become of the launch before.
func (v *view) instead(p *placer, l Lost) (at fleet.Placement, alternatives []string, ok bool) {
	willDo := anything
	if l.Again {
		return l.Placement, nil, l.Attempt < MaxSubstitutes
	}
	if l.Outdated { // or the worker might not go: whether it may for something else is decided anew
		willDo = func(at fleet.Placement) bool {
			return at.Zone == l.Zone && (at.Market == l.Market || at.Market == fleet.OnDemand)
		}
	}
	if l.Pinned {
		shapes := slices.Concat(v.Pending.Shapes, v.Pending.Later)
		at := slices.IndexFunc(shapes, func(s fleet.Shape) bool { return s.Takes(l.Placement) })
		if at < 0 {
			return fleet.Placement{}, nil, false // the pods have found another node
		}
		willDo = shapes[at].Takes
	}
	untried := func(at fleet.Placement) bool { return at != l.Placement && willDo(at) }
	out := p.place(nil, 1, untried)
	if len(out) == 0 {
		return fleet.Placement{}, nil, false
	}
	if l.Outdated {
		return out[0], nil, true
	}
	return out[0], p.alternatives(out[0], untried), true
}

// place places up to n of the nodes that a recommendation asks for: first those that must have a shape for pods to run on
// them, then what may be anything. A node of a shape that cannot be launched is no node that helps: if the recommendation
// counts it, nothing else is launched in its place.
func (v *view) place(n, asked int, r recommendation) (out []fleet.Placement, alternatives [][]string, pinned int) {
	shapes := v.Pending.Shapes
	if r.cause != PodsPending {
		shapes = slices.Concat(shapes, v.Pending.Later)
	}
	p := newPlacer(v.Snapshot, nil)
	for _, s := range shapes {
		before := len(out)
		out = p.place(out, min(n, before+s.Nodes), s.Takes)
		alternatives = p.alternativesOf(alternatives, out, s.Takes)
		if r.pods {
			asked -= s.Nodes
		} else {
			asked -= len(out) - before
		}
	}
	pinned = len(out)
	out = p.place(out, min(n, pinned+max(0, asked)), anything)
	return out, p.alternativesOf(alternatives, out, anything), pinned
}

func anything(fleet.Placement) bool { return true }

type placer struct {
	ratio              float64
	base, workers      int
	spot               int
	zones              map[string]int
	spots, onDemanders []fleet.Placement // that are left, in order of preference
	// Those that are suspected.
	lateSpots, lateOnDemanders []fleet.Placement
	usd                        func(fleet.Placement) float64 // +Inf where it is not known; nil: prices do not decide
}

func newPlacer(s Snapshot, tried []fleet.Placement) *placer {
	staying, _ := stay(s)
	p := &placer{ratio: share(s.Pool.SpotRatio), base: s.Pool.OnDemandBase, workers: len(staying), zones: map[string]int{}}
	for _, w := range staying {
		p.zones[w.Zone]++
		if w.Market == fleet.Spot {
			p.spot++
		}
	}
	for _, at := range s.State.PlannedAt {
		p.workers++
		p.zones[at.Zone]++
		if at.Market == fleet.Spot {
			p.spot++
		}
	}
	for _, o := range s.Offers {
		for _, market := range []fleet.Market{fleet.Spot, fleet.OnDemand} {
			l := fleet.Placement{Zone: o.Zone, Subnet: o.Subnet, InstanceType: o.InstanceType, Market: market}
			cooling, suspected := s.cools(l)
			switch {
			case slices.Contains(tried, l) || cooling:
			case suspected && market == fleet.Spot:
				p.lateSpots = append(p.lateSpots, l)
			case suspected:
				p.lateOnDemanders = append(p.lateOnDemanders, l)
			case market == fleet.Spot:
				p.spots = append(p.spots, l)
			default:
				p.onDemanders = append(p.onDemanders, l)
			}
		}
	}
	if s.Prices == nil {
		return p
	}
	p.usd = s.usd
	for _, list := range [][]fleet.Placement{p.spots, p.lateSpots, p.onDemanders, p.lateOnDemanders} {
		// The cheapest comes first and those without a price last; the others stay as they are.
		slices.SortStableFunc(list, func(a, b fleet.Placement) int { return cmp.Compare(s.usd(a), s.usd(b)) })
	}
	return p
}

// alternatives returns the instance types that may be launched in the place of one, cheapest first, where prices decide: what
// will do as well, in the same market and subnet, for not much more. The zone stays, as zones are to be balanced, and so does
// the subnet, as a fleet of EC2 takes one of each zone. What is suspected is none of them.
func (p *placer) alternatives(at fleet.Placement, willDo func(fleet.Placement) bool) []string {
	if p.usd == nil || math.IsInf(p.usd(at), 1) {
		return nil
	}
	list, most := p.onDemanders, maxPriceOfAlternatives*p.usd(at)
	if at.Market == fleet.Spot {
		list = p.spots
	}
	var out []string
	for _, l := range list {
		if len(out) == MaxAlternatives || p.usd(l) > most {
			break
		}
		if l.Zone == at.Zone && l.Subnet == at.Subnet && l != at && willDo(l) {
			out = append(out, l.InstanceType)
		}
	}
	return out
}

// alternativesOf adds those of the placements that have none yet.
func (p *placer) alternativesOf(out [][]string, placements []fleet.Placement, willDo func(fleet.Placement) bool) [][]string {
	for _, at := range placements[len(out):] {
		out = append(out, p.alternatives(at, willDo))
	}
	return out
}

// cools tells whether a placement must not be tried, and whether it is suspected.
func (s Snapshot) cools(p fleet.Placement) (cooling, suspected bool) {
	return fleet.Cools(s.State.Cooling, p, s.Quotas[p.InstanceType], s.Now)
}

// usd is what an hour of a placement costs, +Inf if that is not known.
func (s Snapshot) usd(p fleet.Placement) float64 {
	price := s.Prices[fleet.Offer{Zone: p.Zone, Subnet: p.Subnet, InstanceType: p.InstanceType}].Of(p.Market)
	if price == nil {
		return math.Inf(1)
	}
	return *price
}

// Costs returns what an hour of each offer is expected to cost, as the pool mixes Spot and On-Demand, where that is known. A
// Spot instance without a price is taken to cost as much as one On-Demand, which is the most that it does.
func (s Snapshot) Costs() map[fleet.Offer]float64 {
	ratio := share(s.Pool.SpotRatio)
	out := map[fleet.Offer]float64{}
	for offer, price := range s.Prices {
		onDemand, spot := price.OnDemand, price.Spot
		if spot == nil {
			spot = onDemand
		}
		switch {
		case onDemand != nil:
			out[offer] = ratio**spot + (1-ratio)**onDemand
		case spot != nil && ratio == 1:
			out[offer] = *spot
		}
	}
	return out
}

// Unlaunchable returns the offers that cannot be launched now, in whichever market the pool would have them.
func (s Snapshot) Unlaunchable() map[fleet.Offer]bool {
	out := map[fleet.Offer]bool{}
	for _, o := range s.Offers {
		l := fleet.Placement{Zone: o.Zone, Subnet: o.Subnet, InstanceType: o.InstanceType, Market: fleet.OnDemand}
		onDemand, _ := s.cools(l)
		l.Market = fleet.Spot
		spot, _ := s.cools(l)
		if onDemand && (spot || s.Pool.SpotRatio <= 0) {
			out[o] = true
		}
	}
	return out
}

// share is a number in [0, 1]; what is not a number is 0.
func share(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

// place adds placements until there are n, or none that will do is left.
func (p *placer) place(out []fleet.Placement, n int, willDo func(fleet.Placement) bool) []fleet.Placement {
	for len(out) < n {
		next, ok := p.next(willDo)
		if !ok {
			break
		}
		out = append(out, next)
	}
	return out
}

func (p *placer) next(willDo func(fleet.Placement) bool) (fleet.Placement, bool) {
	above := max(0, p.workers+1-p.base)
	lists := [][]fleet.Placement{p.onDemanders, p.lateOnDemanders}
	if p.spot < int(math.Round(p.ratio*float64(above))) {
		lists = [][]fleet.Placement{p.spots, p.onDemanders, p.lateSpots, p.lateOnDemanders}
	}
	for _, list := range lists {
		if l, ok := p.take(list, willDo); ok {
			return l, true
		}
	}
	return fleet.Placement{}, false
}

func (p *placer) take(list []fleet.Placement, willDo func(fleet.Placement) bool) (fleet.Placement, bool) {
	best := -1
	for i, l := range list {
		if (best < 0 || p.zones[l.Zone] < p.zones[list[best].Zone]) && willDo(l) {
			best = i
		}
	}
	if best < 0 {
		return fleet.Placement{}, false
	}
	l := list[best]
	p.workers++
	p.zones[l.Zone]++
	if l.Market == fleet.Spot {
		p.spot++
	}
	return l, true
}
