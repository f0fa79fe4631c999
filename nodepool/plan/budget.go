package plan

import (
	"fmt"
	"slices"
)

// paused is the reason given when the user has paused disruption.
const paused = "disruption is paused"

// disrupted returns the number of workers that are not ready, leave or are reclaimed, without those
// in apart. An instance that never joined is not one of them.
func disrupted(c *census, apart []string) int {
	gone := c.unready
	for _, w := range c.workers {
		switch {
		case w.Ended || w.Failed && !w.Broken || slices.Contains(apart, w.ID):
		case w.Leaving || w.Broken || c.hasNotice(w):
			gone++
		}
	}
	return gone
}

// overBudget returns why the budgets do not allow the disruptions that are under way, without the
// workers in apart. It returns "" if they do.
func overBudget(c *census, apart []string) string {
	if gone := disrupted(c, apart); gone > c.Disruption.Nodes {
		return fmt.Sprintf("%s, and with it %s would be out of service", c.Disruption.Why, count(gone, "worker"))
	}
	return ""
}

// disruptable returns the number of workers that may be disrupted now, and what limits it.
func disruptable(c *census) (int, string) {
	gone := disrupted(c, nil)
	switch {
	case c.Disruption.Paused:
		return 0, paused
	case len(c.unknown) > 0:
		return 0, "nothing is disrupted while this is unknown: " + c.unknown[0]
	case c.Pending.any():
		return 0, "nothing is disrupted while pods are unschedulable"
	case c.distrusted():
		return 0, "too many workers are unready"
	case gone > 0:
		return c.Disruption.Nodes - gone, fmt.Sprintf("%s, and %d are not ready or already leaving", c.Disruption.Why, gone)
	}
	return c.Disruption.Nodes, c.Disruption.Why
}
