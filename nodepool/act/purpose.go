package act

import (
	"time"

	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/state"
)

const (
	// ForceBefore is how long before the cloud takes an instance its last pods are deleted: the grace that most pods
	// have, and a little.
	ForceBefore = 45 * time.Second
	// unreachableGrace is the grace of pods that are deleted on a node without a kubelet, as nothing reports when they
	// have ended.
	unreachableGrace = 30 * time.Second
	// OverdueAfter is how long past the time of a drain the pods of a node without a kubelet are waited for. Their
	// instance is terminated then, and the Node deleted, which is how Kubernetes learns that they do not run any more.
	OverdueAfter = 3 * time.Minute
)

// purpose is why a node is removed, as far as it decides how hard that is tried. The zero purpose gives way to whatever
// keeps the node.
type purpose struct {
	urgent bool // the cloud takes the instance whatever is done here
	repair bool // its Node is unhealthy: nothing keeps it for longer than the time of a drain
	forced bool // its node must go, and the pool has drain.force: no pod keeps it for longer than the time of a drain
}

// insists reports whether nothing on the node keeps it.
func (p purpose) insists() bool { return p.urgent || p.repair || p.forced }

// limits has pods deleted in the last moments before the cloud takes the instance, and by option so
// that they end by the timeout. Pods that block a drain are deleted only if the node must go.
func (p purpose) limits(r *state.Removal, d config.Drain, unreachable bool, now time.Time) drain.Limits {
	if p.urgent {
		left := r.Deadline.Sub(now)
		return drain.Limits{Force: left <= ForceBefore, Grace: max(time.Second, left)}
	}
	if p.repair {
		return repairLimits(r, d, unreachable, now)
	}
	if !d.Force {
		return drain.Limits{}
	}
	ends := r.Began.Add(d.Timeout)
	return drain.Limits{Force: p.forced && now.After(ends), Ends: ends, EndsAll: p.forced}
}

// repairLimits has pods deleted once they have had the time of a drain to be evicted. Those that
// may run have the time to end that they ask for.
func repairLimits(r *state.Removal, d config.Drain, unreachable bool, now time.Time) drain.Limits {
	l := drain.Limits{Force: !r.Began.IsZero() && now.Sub(r.Began) > d.Timeout}
	if l.Force && unreachable {
		l.Grace = unreachableGrace
	}
	return l
}

// overdue reports whether pods that are left on the node of a repair are not waited for any longer.
func (p purpose) overdue(r *state.Removal, timeout time.Duration, unreachable bool, now time.Time) bool {
	return p.repair && !r.Began.IsZero() && unreachable && now.Sub(r.Began) > timeout+OverdueAfter
}
