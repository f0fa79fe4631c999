package config

import (
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/plan"
)

// Outdated returns why an instance should be replaced, "" if it should not or that is unknown.
func (d Disruption) Outdated(i fleet.Instance, now time.Time) string {
	switch {
	case i.Outdated != "":
		return i.Outdated
	case i.Launched.IsZero():
		return ""
	case !d.ReplaceBefore.After(now) && i.Launched.Before(d.ReplaceBefore):
		return fmt.Sprintf("it was launched before %s, the time of disruption.replaceBefore",
			d.ReplaceBefore.UTC().Format(time.RFC3339))
	case d.ExpireAfter > 0 && now.Sub(i.Launched) > d.ExpireAfter:
		return fmt.Sprintf("it is older than %s", d.ExpireAfter)
	}
	return ""
}

// Allowed returns what the budgets allow at a time. An invalid budget allows nothing.
func (d Disruption) Allowed(now time.Time, workers int) plan.Disruption {
	nodes, why := d.Budgets.Allowed(now, workers)
	return plan.Disruption{
		Nodes: nodes, Paused: d.Paused,
		Why: fmt.Sprintf("%d of %d workers may be disrupted at once (%s)", nodes, workers, why),
	}
}
