package act

import (
	"time"

	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/state"
)

const (
	// ForceBefore is the time before the cloud reclaims an instance at which its last pods are
	// deleted: a little more than the usual grace period of pods.
	ForceBefore = 45 * time.Second
	// unreachableGrace is the grace period of pods that are deleted on a node without a kubelet, where
	// nothing reports when they have ended.
	unreachableGrace = 30 * time.Second
	// OverdueAfter is how long after the time of a drain pods are waited for on a node without a
	// kubelet. Then their instance is terminated and the Node deleted, which is how Kubernetes learns
	// that they no longer run.
	OverdueAfter = 3 * time.Minute
)

// purpose is the reason for the removal of a node, as far as it decides how persistent the removal
// is. The zero value yields to anything that blocks it.
type purpose struct {
	urgent bool // the cloud reclaims the instance in any case
	repair bool // its Node is unhealthy: nothing blocks the removal for longer than the time of a drain
	forced bool // the node has to go, and the pool has drain.force: no pod blocks for longer than the time of a drain
}

// insists reports whether nothing on the node can block its removal.
func (p purpose) insists() bool { return p.urgent || p.repair || p.forced }

// limits returns how pods are evicted or deleted. In the last moments before the cloud reclaims the
// instance they are deleted. With drain.force they are deleted so that they end by the timeout.
// Pods that block a drain are deleted only if the node has to go.
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

// repairLimits returns limits that delete pods after they have had the time of a drain to be
// evicted. Pods that may still run keep their own grace period.
func repairLimits(r *state.Removal, d config.Drain, unreachable bool, now time.Time) drain.Limits {
	l := drain.Limits{Force: !r.Began.IsZero() && now.Sub(r.Began) > d.Timeout}
	if l.Force && unreachable {
		l.Grace = unreachableGrace
	}
	return l
}

// overdue reports whether the remaining pods on the node of a repair are no longer waited for.
func (p purpose) overdue(r *state.Removal, timeout time.Duration, unreachable bool, now time.Time) bool {
	return p.repair && !r.Began.IsZero() && unreachable && now.Sub(r.Began) > timeout+OverdueAfter
}
