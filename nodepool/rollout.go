package nodepool

import (
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
)

// outdated tells why an instance is to be replaced by a new one, "" if it is not or that is not known.
func (t *tick) outdated(i provider.Instance) string {
	d := t.spec.Disruption
	switch {
	case i.Outdated != "":
		return i.Outdated
	case i.Launched.IsZero():
		return ""
	case !d.ReplaceBefore.After(t.now) && i.Launched.Before(d.ReplaceBefore):
		return fmt.Sprintf("it was launched before %s, as of when all are replaced", d.ReplaceBefore.UTC().Format(time.RFC3339))
	case d.ExpireAfter > 0 && t.now.Sub(i.Launched) > d.ExpireAfter:
		return fmt.Sprintf("it is older than %s", d.ExpireAfter)
	}
	return ""
}

// disruption is what the budgets allow now. One that cannot be understood allows nothing, and is told.
func (t *tick) disruption(workers int) plan.Disruption {
	b := t.spec.Disruption.Budgets
	if err := b.Err(); err != nil {
		t.errs = append(t.errs, err)
	}
	nodes, why := b.Allowed(t.now, workers)
	return plan.Disruption{
		Nodes: nodes, Paused: t.spec.Disruption.Paused,
		Why: fmt.Sprintf("%d of %d workers may be disrupted at once (%s)", nodes, workers, why),
	}
}
