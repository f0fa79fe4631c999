package act

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// A refusal is recorded at its scope: capacity for a type in a zone and market, a quota for the types that count
// against it and take as much, addresses for a subnet, and what every launch needs for all. A type that was launched
// by the same call is never covered. A type whose launch is invalid is not named again for some time.
func TestRefusalsCoolWhatTheyConcern(t *testing.T) {
	at := fleet.Placement{Zone: "a", Subnet: "subnet-a", InstanceType: "t3.medium", Market: fleet.Spot}
	of := func(kinds ...string) (out []fleet.Cooling) {
		for _, kind := range kinds {
			out = append(out, fleet.Cooling{Zone: "a", InstanceType: kind, Market: fleet.Spot})
		}
		return out
	}
	known := map[string]fleet.Quota{"t3.medium": {Group: "Standard", VCPUs: 2}, "m5.large": {Group: "Standard", VCPUs: 4},
		"p3.2xlarge": {Group: "P", VCPUs: 8}}
	larger := []fleet.Cooling{{Market: fleet.Spot, Quota: "Standard", VCPUs: 4}}
	both := []fleet.Cooling{{Market: fleet.Spot, Quota: "Standard", VCPUs: 2}}
	for name, c := range map[string]struct {
		first, second provider.Class
		launched      []string
		quotas        map[string]fleet.Quota
		want          []fleet.Cooling
	}{
		"a quota of all types": {provider.Quota, provider.Quota, nil, nil,
			[]fleet.Cooling{{Market: fleet.Spot}}},
		"a quota of the types before another": {provider.Quota, provider.Quota, []string{"c5.large"}, nil,
			of("t3.medium", "m5.large")},
		"a quota of one, and another has none":  {provider.Quota, provider.Capacity, nil, nil, of("t3.medium", "m5.large")},
		"a quota of a group":                    {provider.Quota, provider.Quota, nil, known, both},
		"a quota of a group, which is not full": {provider.Unknown, provider.Quota, []string{"t3.medium"}, known, larger},
		"a quota of another group":              {provider.Unknown, provider.Quota, []string{"p3.2xlarge"}, known, larger},
		"a quota in doubt": {provider.Unknown, provider.Quota,
			[]string{"m5.large"}, known, of("m5.large")},
		"a quota of one in a group": {provider.Quota, provider.Capacity, nil, known,
			append(both, of("m5.large")...)},
		"addresses": {provider.Address, provider.Address, nil, nil,
			[]fleet.Cooling{{Zone: "a", Subnet: "subnet-a"}}},
		"volumes of the zone": {provider.ZoneCapacity, provider.ZoneCapacity, nil, known,
			[]fleet.Cooling{{Zone: "a"}}},
		"volumes of the account": {provider.AccountQuota, provider.AccountQuota,
			nil, known, []fleet.Cooling{{}}},
		"an invalid type is suspected": {provider.Capacity, provider.Invalid, []string{"c5.large"}, nil,
			append(of("t3.medium"), fleet.Cooling{Zone: "a", InstanceType: "m5.large", Suspected: true})},
		"what is not known says nothing": {provider.Unknown, provider.Throttled, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &state.Record{}
			k := cooler{record: r, quotas: c.quotas, now: time.Unix(0, 0)}
			k.refused(at, []provider.Refusal{
				{InstanceType: "t3.medium", Class: c.first, Reason: "no"},
				{InstanceType: "m5.large", Class: c.second, Reason: "no"},
			}, c.launched...)
			for i := range r.Cooling {
				require.Equal(t, "no", r.Cooling[i].Reason)
				r.Cooling[i].Until, r.Cooling[i].Reason = time.Time{}, ""
			}
			require.Equal(t, c.want, r.Cooling)
		})
	}
}
