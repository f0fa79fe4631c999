package fleet

import "time"

// longestCooling bounds the remaining time of a cooling. A later end was written by a clock that
// has been set back since, and is ignored: trying the placement costs one call.
const longestCooling = time.Hour

// RefusedFor is how long an offer counts as refused after its placements have cooled: longer than
// the next try takes.
const RefusedFor = 5 * time.Minute

// Cooling is a placement that is not tried for some time. A suspected one is tried if nothing else
// is left. An empty field matches all values.
type Cooling struct {
	Zone         string    `json:"zone"`
	Subnet       string    `json:"subnet,omitempty"`
	InstanceType string    `json:"instanceType,omitempty"`
	Market       Market    `json:"market"`
	Quota        string    `json:"quota,omitempty"` // group of the types
	VCPUs        int64     `json:"vcpus,omitempty"` // types of the group that need less may be tried
	Until        time.Time `json:"until"`
	Reason       string    `json:"reason"`
	Suspected    bool      `json:"suspected,omitempty"` // the failure may have had another cause
}

// Cools reports whether a placement must not be tried, and whether it is suspected to fail. q is
// the quota of its instance type.
func Cools(list []Cooling, p Placement, q Quota, now time.Time) (cooling, suspected bool) {
	for _, c := range list {
		if c.holds(now) && c.Covers(p, q) {
			cooling, suspected = cooling || !c.Suspected, suspected || c.Suspected
		}
	}
	return cooling, suspected
}

// holds reports whether a cooling has not ended.
func (c Cooling) holds(now time.Time) bool {
	return c.Until.After(now) && c.Until.Sub(now) <= longestCooling
}

// Covers reports whether a placement cools. q is the quota of its instance type.
func (c Cooling) Covers(p Placement, q Quota) bool {
	return (c.Zone == "" || c.Zone == p.Zone) && (c.Subnet == "" || c.Subnet == p.Subnet) &&
		(c.InstanceType == "" || c.InstanceType == p.InstanceType) && (c.Market == "" || c.Market == p.Market) &&
		(c.Quota == "" || c.Quota == q.Group && q.VCPUs >= c.VCPUs)
}
