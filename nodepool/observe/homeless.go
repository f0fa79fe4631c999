package observe

import (
	"maps"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
)

// homelessFor is for how long a worker is not looked at again whose pods would have no other node.
const homelessFor = 10 * time.Minute

// homelessNodes are the nodes whose pods would have no other node, as was found lately, so that in
// a large pool the next decision asks about others.
type homelessNodes map[string]homelessness

type homelessness struct {
	why   string
	until time.Time
}

// remember notes whom a decision refused to remove for that.
func (h homelessNodes) remember(refused []plan.Refusal, now time.Time) {
	maps.DeleteFunc(h, func(_ string, one homelessness) bool { return !now.Before(one.until) })
	for _, r := range refused {
		if r.Homeless {
			h[r.Worker] = homelessness{r.Reason, now.Add(homelessFor)}
		}
	}
}

// why returns why a node must stay, "" if nothing was found lately.
func (h homelessNodes) why(node string, now time.Time) string {
	if one, ok := h[node]; ok && now.Before(one.until) {
		return one.why
	}
	return ""
}
