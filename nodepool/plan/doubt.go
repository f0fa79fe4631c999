package plan

import (
	"fmt"

	"github.com/foresail/foresail/nodepool/state"
)

// Doubt returns why observations of Nodes cannot be trusted, "" if they can. If the Nodes of many
// instances are missing, as in a cluster that was restored from a backup, the instances and their
// pods still run. Instances whose Nodes never joined do not count.
func Doubt(p Pool, instances []Instance, pending []state.PendingTermination) string {
	reasons := map[string]string{}
	for _, c := range pending {
		reasons[c.InstanceID] = c.Reason
	}
	unready, all := 0, 0
	for i := range instances {
		in := &instances[i]
		if !in.Listed || in.ends() || in.neverJoined(reasons[in.ID]) {
			continue
		}
		all++
		if in.Node.Name == "" || !in.Node.Ready {
			unready++
		}
	}
	if !p.defaulted().Distrusts(unready, all) {
		return ""
	}
	return fmt.Sprintf("%d of %d instances have no ready node: observations cannot be trusted", unready, all)
}
