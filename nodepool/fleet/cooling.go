package fleet

import "time"

// longestCooling is how far ahead the end of a placement's cooling can lie. One further ahead was
// written by a clock that has been set back since, and is not heard: trying the placement costs one
// call.
const longestCooling = time.Hour

// RefusedFor is how long an offer counts as refused after its placements have cooled: longer than
// the next try takes.
const RefusedFor = 5 * time.Minute

// Cooling is a placement that is not tried for a while; one that is suspected is, where nothing
// else is left. A field that is empty stands for all its values.
type Cooling struct {
	Zone         string    `json:"zone"`
	Subnet       string    `json:"subnet,omitempty"`
	InstanceType string    `json:"instanceType,omitempty"`
	Market       Market    `json:"market"`
	Quota        string    `json:"quota,omitempty"` // group of the types
	VCPUs        int64     `json:"vcpus,omitempty"` // types of the group that take less may be tried
	Until        time.Time `json:"until"`
	Reason       string    `json:"reason"`
	Suspected    bool      `json:"suspected,omitempty"` // what went wrong may have had another cause
}

// Cools reports whether a placement, whose instance type counts against a quota, must not be tried,
// and whether it is suspected.
func Cools(list []Cooling, p Placement, q Quota, now time.Time) (cooling, suspected bool) {
	for _, c := range list {
		if c.holds(now) && c.Covers(p, q) {
			cooling, suspected = cooling || !c.Suspected, suspected || c.Suspected
		}
	}
	return cooling, suspected
}

// holds reports whether a cooling has begun and not ended.
func (c Cooling) holds(now time.Time) bool {
	return c.Until.After(now) && c.Until.Sub(now) <= longestCooling
}

// Covers reports whether a placement, whose instance type counts against a quota, is one of those
// that cool.
func (c Cooling) Covers(p Placement, q Quota) bool {
	return (c.Zone == "" || c.Zone == p.Zone) && (c.Subnet == "" || c.Subnet == p.Subnet) &&
		(c.InstanceType == "" || c.InstanceType == p.InstanceType) && (c.Market == "" || c.Market == p.Market) &&
		(c.Quota == "" || c.Quota == q.Group && q.VCPUs >= c.VCPUs)
}
