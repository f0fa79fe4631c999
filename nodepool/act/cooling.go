package act

import (
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// cooler records what cannot be launched for some time.
type cooler struct {
	record     *state.Record
	quotas     map[string]fleet.Quota // by instance type
	launchSpec string                 // [config.Spec.LaunchSpec]
	now        time.Time
}

func (c *cycle) cooler() cooler {
	return cooler{c.record, c.snapshot.Quotas, c.seen.Spec.LaunchSpec, c.now()}
}

// cooling reports whether a placement was refused recently, and whether it is suspected to fail.
func (k cooler) cooling(p fleet.Placement) (cooling, suspected bool) {
	return fleet.Cools(k.record.Cooling, p, k.quotas[p.InstanceType], k.now)
}

// cools reports whether all instance types of a slot were refused recently.
func (k cooler) cools(s *state.Slot) bool {
	for _, kind := range append([]string{s.InstanceType}, s.Alternatives...) {
		p := s.Placement
		p.InstanceType = kind
		if cooling, _ := k.cooling(p); !cooling {
			return false
		}
	}
	return true
}

// refused records why the types of a launch could not be launched. If a refusal would also cover a
// type that was launched, it is applied to the refused type alone.
func (k cooler) refused(p fleet.Placement, refusals []provider.Refusal, launched ...string) {
	differ := slices.ContainsFunc(refusals, func(r provider.Refusal) bool { return r.Class != refusals[0].Class })
	for _, r := range refusals {
		p.InstanceType = r.InstanceType
		switch class := r.Class; class {
		case provider.Invalid:
			k.suspect(p, r.Reason)
		case provider.Unknown, provider.Throttled, provider.TokenMismatch, provider.NotOwned:
		default:
			anyQuota := class == provider.Quota && k.quotas[r.InstanceType].Group == ""
			if anyQuota && differ || k.covers(class, p, launched) {
				class = provider.Capacity
			}
			k.cool(class, p, r.Reason)
		}
	}
}

// covers reports whether a refusal, at the scope of its class, means that one of these types cannot
// be launched either.
func (k cooler) covers(class provider.Class, p fleet.Placement, kinds []string) bool {
	c := k.scope(class, p)
	return slices.ContainsFunc(kinds, func(kind string) bool {
		at := p
		at.InstanceType = kind
		return c.Covers(at, k.quotas[kind])
	})
}

// scope returns what a refusal applies to. Capacity: the type in its zone and market. A quota: all
// types of the market that count against it, in any zone, and need as much of it. Addresses: the
// subnet. Anything that every launch needs: the zone or the account.
func (k cooler) scope(class provider.Class, p fleet.Placement) fleet.Cooling {
	switch class {
	case provider.Quota:
		q := k.quotas[p.InstanceType]
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

// cool prevents launches that would be refused for the same reason for some time.
func (k cooler) cool(class provider.Class, p fleet.Placement, why string) {
	c := k.scope(class, p)
	c.Until, c.Reason = k.now.Add(state.CoolFor), why
	addCooling(k.record, c)
}

// addCooling replaces the cooling of the same placement. For a quota it replaces coolings of types
// that need as much or more, and adds nothing if one of types that need less lasts as long.
func addCooling(r *state.Record, c fleet.Cooling) {
	same := func(old fleet.Cooling) bool {
		old.Until, old.Reason, old.VCPUs = c.Until, c.Reason, c.VCPUs
		return old == c
	}
	if slices.ContainsFunc(r.Cooling, func(old fleet.Cooling) bool {
		return same(old) && old.VCPUs < c.VCPUs && !old.Until.Before(c.Until)
	}) {
		return
	}
	r.Cooling = slices.DeleteFunc(r.Cooling, func(old fleet.Cooling) bool {
		return same(old) && old.VCPUs >= c.VCPUs
	})
	r.Cooling = append(r.Cooling, c)
}

// suspect moves a zone and type to the end of the order for some time: an error there may repeat,
// in any market.
func (k cooler) suspect(p fleet.Placement, why string) {
	k.trust(p)
	k.record.LaunchSpec = k.launchSpec
	k.record.Cooling = append(k.record.Cooling, fleet.Cooling{
		Zone: p.Zone, InstanceType: p.InstanceType, Until: k.now.Add(state.SuspectFor), Reason: why, Suspected: true,
	})
}

// trust ends a suspicion.
func (k cooler) trust(p fleet.Placement) {
	k.record.Cooling = slices.DeleteFunc(k.record.Cooling, func(c fleet.Cooling) bool {
		return c.Suspected && c.Zone == p.Zone && c.InstanceType == p.InstanceType
	})
}
