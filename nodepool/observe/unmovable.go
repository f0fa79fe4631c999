package observe

import (
	"maps"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
)

// unmovableFor is the time for which a worker is not simulated again after its pods were found to
// fit on no other node.
const unmovableFor = 10 * time.Minute

// unmovableNodes are nodes whose pods were recently found to fit on no other node, so that in a
// large pool the next decision simulates other nodes.
type unmovableNodes map[string]unmovableNode

type unmovableNode struct {
	why   string
	until time.Time
}

// record records the workers that a decision refused to remove for that reason.
func (h unmovableNodes) record(refused []plan.Refusal, now time.Time) {
	maps.DeleteFunc(h, func(_ string, one unmovableNode) bool { return !now.Before(one.until) })
	for _, r := range refused {
		if r.Unmovable {
			h[r.Worker] = unmovableNode{r.Reason, now.Add(unmovableFor)}
		}
	}
}

// why returns why a node must stay, "" if nothing was found recently.
func (h unmovableNodes) why(node string, now time.Time) string {
	if one, ok := h[node]; ok && now.Before(one.until) {
		return one.why
	}
	return ""
}
