package act

import (
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// cooling reports whether a placement has been refused lately, and whether it is suspected.
func (e *executor) cooling(p fleet.Placement) (cooling, suspected bool) {
	return fleet.Cools(e.Record.Cooling, p, e.snapshot.Quotas[p.InstanceType], e.Now())
}

// cools reports whether all instance types of a slot have been refused lately.
func (e *executor) cools(s *state.Slot) bool {
	for _, kind := range append([]string{s.InstanceType}, s.Alternatives...) {
		p := s.Placement
		p.InstanceType = kind
		if cooling, _ := e.cooling(p); !cooling {
			return false
		}
	}
	return true
}

// refused notes for each type of a launch why it could not be launched. What would cool a type that was launched all
// the same is about the refused type alone.
func (e *executor) refused(p fleet.Placement, refusals []provider.Refusal, launched ...string) {
	differ := slices.ContainsFunc(refusals, func(r provider.Refusal) bool { return r.Class != refusals[0].Class })
	for _, r := range refusals {
		p.InstanceType = r.InstanceType
		switch class := r.Class; class {
		case provider.Invalid:
			e.suspect(p, r.Reason)
		case provider.Unknown, provider.Throttled, provider.TokenMismatch, provider.NotOwned:
		default:
			anyQuota := class == provider.Quota && e.snapshot.Quotas[r.InstanceType].Group == ""
			if anyQuota && differ || e.covers(class, p, launched) {
				class = provider.Capacity
			}
			e.cool(class, p, r.Reason)
		}
	}
}

// covers reports whether a refusal, at the scope of its class, says that one of these types cannot be launched either.
func (e *executor) covers(class provider.Class, p fleet.Placement, kinds []string) bool {
	c := e.scope(class, p)
	return slices.ContainsFunc(kinds, func(kind string) bool {
		at := p
		at.InstanceType = kind
		return c.Covers(at, e.snapshot.Quotas[kind])
	})
}

// scope returns what a refusal of a placement is about: capacity the type in its zone and market; a quota all types
// that count against it in the market, in any zone, and take as much of it; addresses the subnet; and what every
// launch needs the whole zone or account.
func (e *executor) scope(class provider.Class, p fleet.Placement) fleet.Cooling {
	switch class {
	case provider.Quota:
		q := e.snapshot.Quotas[p.InstanceType]
		return fleet.Cooling{Market: p.Market, Quota: q.Group, VCPUs: q.VCPUs}
	case provider.Address:
		return fleet.Cooling{Zone: p.Zone, Subnet: p.Subnet}
	case provider.ZoneCapacity:
		return fleet.Cooling{Zone: p.Zone}
	case provider.AccountQuota:
		return fleet.Cooling{}
	}
	return fleet.Cooling{Zone: p.Zone, InstanceType: p.InstanceType, Market: p.Market}
}

// cool keeps what would be refused for the same reason from being tried for a while.
func (e *executor) cool(class provider.Class, p fleet.Placement, why string) {
	c := e.scope(class, p)
	c.Until, c.Reason = e.Now().Add(state.CoolFor), why
	e.addCooling(c)
}

// addCooling replaces what is known of the same placement. Of a quota it replaces what is known of types that take as
// much, and adds nothing to what is known of those that take less.
func (e *executor) addCooling(c fleet.Cooling) {
	same := func(old fleet.Cooling) bool {
		old.Until, old.Reason, old.VCPUs = c.Until, c.Reason, c.VCPUs
		return old == c
	}
	if slices.ContainsFunc(e.Record.Cooling, func(old fleet.Cooling) bool {
		return same(old) && old.VCPUs < c.VCPUs && !old.Until.Before(c.Until)
	}) {
		return
	}
	e.Record.Cooling = slices.DeleteFunc(e.Record.Cooling, func(old fleet.Cooling) bool {
		return same(old) && old.VCPUs >= c.VCPUs
	})
	e.Record.Cooling = append(e.Record.Cooling, c)
}

// suspect has a zone and type tried last for a while: what went wrong there may go wrong again, whatever the market.
func (e *executor) suspect(p fleet.Placement, why string) {
	e.trust(p)
	e.Record.LaunchSpec = e.seen.Spec.LaunchSpec
	e.Record.Cooling = append(e.Record.Cooling, fleet.Cooling{
		Zone: p.Zone, InstanceType: p.InstanceType, Until: e.Now().Add(state.SuspectFor), Reason: why, Suspected: true,
	})
}

// trust ends that.
func (e *executor) trust(p fleet.Placement) {
	e.Record.Cooling = slices.DeleteFunc(e.Record.Cooling, func(c fleet.Cooling) bool {
		return c.Suspected && c.Zone == p.Zone && c.InstanceType == p.InstanceType
	})
}
