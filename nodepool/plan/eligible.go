package plan

import (
	"cmp"
	"strings"
	"time"
)

// forbidden returns why a worker must not be removed whatever the reason, "" if it may. must is set
// if the worker has to go.
func forbidden(c *census, w *Instance, must bool) string {
	forced := must && c.Pool.Force && w.BlockedByPods
	switch {
	case w.ID == "":
		return "its instance is unknown"
	case w.Node.Name == "":
		return "its node has not joined"
	case w.Blocked != "" && !forced:
		return w.Blocked
	case c.backsOff(w):
		until := c.Record.DrainBackoff[w.ID]
		return "its drain failed, and is retried after " + until.UTC().Format(time.RFC3339)
	}
	return ""
}

// refusal returns why a worker cannot be removed, whatever the other workers are. must is set if
// the worker has to go.
//
// Only a ready worker whose use is known can be removed: a starting one is about to take load, one
// that is not ready cannot be drained, and unknown use is not idleness.
func refusal(c *census, w *Instance, must bool) string {
	why := forbidden(c, w, must)
	switch {
	case w.ID != "" && w.Node.Name != "" && !w.works():
		return "its node is not ready"
	case why != "":
		return why
	case w.FutileRemoval != "" && !must:
		return w.FutileRemoval
	case !w.Known:
		return "its use is unknown"
	}
	return ""
}

// removalOrder compares two workers of a pool: below zero, a is removed first. Workers that only
// force can empty come last.
func removalOrder(p Pool, f *spread) func(a, b *Instance) int {
	return func(a, b *Instance) int {
		first := cmp.Or(compareBool(a.Blocked == "", b.Blocked == ""), compareBool(a.cordoned(), b.cordoned()),
			compareBool(a.Outdated != "", b.Outdated != ""))
		if first != 0 {
			return first
		}
		for _, s := range p.RemovalOrder {
			if c := compare(s, a, b, f); c != 0 {
				return c
			}
		}
		// The order must not depend on the order in which the cloud lists its instances.
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Node.Name, b.Node.Name))
	}
}

func compare(s Scorer, a, b *Instance, f *spread) int {
	switch s {
	case FullestZone:
		return cmp.Compare(f.workers[b.Zone], f.workers[a.Zone])
	case Idlest:
		return cmp.Compare(a.Utilisation, b.Utilisation)
	case FewestPods:
		return cmp.Compare(a.Pods, b.Pods)
	case Oldest:
		if a.Launched.IsZero() || b.Launched.IsZero() { // unknown: not the oldest
			return cmp.Compare(b.Launched.Unix(), a.Launched.Unix())
		}
		return a.Launched.Compare(b.Launched)
	}
	return 0
}
