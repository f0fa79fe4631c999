package act

import (
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// cooler notes in a record what cannot be launched for a while.
type cooler struct {
	record     *state.Record
	quotas     map[string]fleet.Quota // by instance type
	launchSpec string                 // [config.Spec.LaunchSpec]
	now        time.Time
}

func (c *cycle) cooler() cooler {
	return cooler{c.record, c.snapshot.Quotas, c.seen.Spec.LaunchSpec, c.now()}
}

// cooling reports whether a placement has been refused lately, and whether it is suspected.
func (k cooler) cooling(p fleet.Placement) (cooling, suspected bool) {
	return fleet.Cools(k.record.Cooling, p, k.quotas[p.InstanceType], k.now)
}

// cools reports whether all instance types of a slot have been refused lately.
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

// refused notes for each type of a launch why it could not be launched. What would cool a type that was launched all
// the same is about the refused type alone.
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

// covers reports whether a refusal, at the scope of its class, says that one of these types cannot be launched either.
func (k cooler) covers(class provider.Class, p fleet.Placement, kinds []string) bool {
	c := k.scope(class, p)
	return slices.ContainsFunc(kinds, func(kind string) bool {
		at := p
		at.InstanceType = kind
		return c.Covers(at, k.quotas[kind])
	})
}

// scope returns what a refusal of a placement is about: capacity the type in its zone and market; a quota all types
// that count against it in the market, in any zone, and take as much of it; addresses the subnet; and what every
// launch needs the whole zone or account.
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

// cool keeps what would be refused for the same reason from being tried for a while.
func (k cooler) cool(class provider.Class, p fleet.Placement, why string) {
	c := k.scope(class, p)
	c.Until, c.Reason = k.now.Add(state.CoolFor), why
	addCooling(k.record, c)
}

// addCooling replaces what is known of the same placement. Of a quota it replaces what is known of types that take as
// much, and adds nothing to what is known of those that take less.
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

// suspect has a zone and type tried last for a while: what went wrong there may go wrong again, whatever the market.
func (k cooler) suspect(p fleet.Placement, why string) {
	k.trust(p)
	k.record.LaunchSpec = k.launchSpec
	k.record.Cooling = append(k.record.Cooling, fleet.Cooling{
		Zone: p.Zone, InstanceType: p.InstanceType, Until: k.now.Add(state.SuspectFor), Reason: why, Suspected: true,
	})
}

// trust ends that.
func (k cooler) trust(p fleet.Placement) {
	k.record.Cooling = slices.DeleteFunc(k.record.Cooling, func(c fleet.Cooling) bool {
		return c.Suspected && c.Zone == p.Zone && c.InstanceType == p.InstanceType
	})
}
