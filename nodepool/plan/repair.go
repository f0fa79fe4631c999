package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// UnhealthyShare is the share of the nodes, in percent, that may be unhealthy for any to be repaired: of more at once something
	// else is wrong, such as the network or the control plane, and new nodes would not help.
	UnhealthyShare = 20
	// RepairShare is the share of the nodes, in percent, that is repaired at once at most.
	RepairShare = 10
)

// Repair says which Nodes are unhealthy, and for how long until they are replaced. The zero value has none repaired.
type Repair struct {
	Disabled   bool
	Conditions []UnhealthyCondition
}

// UnhealthyCondition is a condition that a Node which works does not have.
type UnhealthyCondition struct {
	Type, Status string
	After        time.Duration // until a Node that has it is repaired
}

// NodeCondition is a condition of a Node.
type NodeCondition struct {
	Type, Status string
	Since        time.Time // it has had this status, for all that is known for certain
}

// BadCondition is the condition for which a worker is repaired; the zero value is that of one whose Node is healthy.
type BadCondition struct {
	Condition string // such as Ready=Unknown
	Since     time.Time
	After     time.Duration
}

// Holds tells whether the Node is unhealthy.
func (u BadCondition) Holds() bool { return u.Condition != "" }

// Due is when the worker is repaired.
func (u BadCondition) Due() time.Time { return u.Since.Add(u.After) }

// Unhealthy returns, of the conditions of a Node, the one that is due first.
func (r Repair) Unhealthy(conditions []NodeCondition) (first BadCondition) {
	for _, bad := range r.Conditions {
		for _, c := range conditions {
			if c.Type != bad.Type || c.Status != bad.Status {
				continue
			}
			u := BadCondition{Condition: c.Type + "=" + c.Status, Since: c.Since, After: bad.After}
			if !first.Holds() || u.Due().Before(first.Due()) {
				first = u
			}
		}
	}
	return first
}

// NodeRepair is a worker that is to be drained and terminated as its Node is unhealthy, to be written down before anything is done.
type NodeRepair struct {
	InstanceID, ProviderID string
	Zone, Node             string
	Replaced               bool // nothing is to be launched in its place for that: it did not count any more
	Message                string
}

// repair is what is decided about unhealthy workers.
type repair struct {
	begun []NodeRepair
	held  string // why none is repaired, "" if nothing speaks against it
}

// repair decides which unhealthy workers are replaced, and has the decision see them as if they were being removed already. It asks
// neither budgets of disruption nor what keeps a node from being removed: what runs there does not work, for all that is known.
func (v *view) repair() (r repair) {
	if v.WorkersErr != "" || v.Pool.Deleting {
		return r
	}
	nodes, unhealthy, underway := 0, 0, 0
	var due []Worker
	for _, w := range v.Workers {
		if w.Node == "" || w.Ended || w.Failed && !w.Broken {
			continue
		}
		nodes++
		if v.underRepair(w) {
			underway++
		}
		if !w.Unhealthy.Holds() {
			continue
		}
		unhealthy++
		if v.removals[w.InstanceID] == nil && v.repairable(w) {
			due = append(due, w)
		}
	}
	if len(due)+underway == 0 {
		return r
	}
	nodes -= v.replacements()
	if r.held = v.unrepaired(unhealthy, nodes); r.held != "" {
		return r
	}
	slices.SortFunc(due, func(a, b Worker) int {
		return cmp.Or(preferred(works(a))-preferred(works(b)), a.Unhealthy.Due().Compare(b.Unhealthy.Due()), cmp.Compare(a.InstanceID, b.InstanceID))
	})
	for _, w := range due[:min(len(due), max(0, percent(RepairShare, nodes)-underway))] {
		r.begun = append(r.begun, v.mend(w))
	}
	return r
}

func (v *view) underRepair(w Worker) bool {
	removal := v.removals[w.InstanceID]
	return removal != nil && removal.Repair
}

// replacements is how many nodes have been launched in place of unhealthy ones that are there still: these make the share of the
// unhealthy ones no smaller.
func (v *view) replacements() int {
	broken := 0
	var first time.Time
	for _, w := range v.Workers {
		if (w.Broken || v.underRepair(w)) && w.Unhealthy.Holds() {
			broken++
			if since := w.Unhealthy.Since; first.IsZero() || since.Before(first) {
				first = since
			}
		}
	}
	launched := 0
	for _, w := range v.Workers {
		if w.Node != "" && w.Counts() && w.Launched.After(first) {
			launched++
		}
	}
	return min(broken, launched)
}

// repairable tells whether a worker has been unhealthy for long enough, and can be removed.
func (v *view) repairable(w Worker) bool {
	i := v.seen[w.InstanceID]
	return !w.Leaving && i != nil && i.Listed && !i.Leaving && !i.Node.ControlPlane && v.pending(w.InstanceID) == nil && !v.noticed[w.InstanceID] &&
		!v.Now.Before(w.Unhealthy.Due()) && !v.backsOff(w)
}

// backsOff tells whether a drain of a worker, or its termination, has failed lately.
func (v *view) backsOff(w Worker) bool { return v.State.DrainBackoff[w.InstanceID].After(v.Now) }

// unrepaired tells why no worker is repaired.
func (v *view) unrepaired(unhealthy, nodes int) string {
	most := percent(UnhealthyShare, nodes)
	switch doubt := Doubt(v.Pool, v.Instances, v.State.PendingTerminations); {
	case v.Pool.Repair.Disabled:
		return "disruption.repair.disabled is true"
	case doubt != "":
		return doubt
	case v.Pool.Distrusts(v.unready(), len(v.staying)):
		return fmt.Sprintf("%d of %s are unready: what is seen is not to be trusted", v.unready(), count(len(v.staying), "worker"))
	case unhealthy > most:
		return fmt.Sprintf("%d of %s are unhealthy, and while more than %d are (%d%%) the cause is taken to be another",
			unhealthy, count(nodes, "node"), most, UnhealthyShare)
	}
	return ""
}

// percent is a share of some things, rounded down, but at least one.
func percent(share, of int) int { return max(1, share*of/100) }

// mend has a worker repaired. One that counts is replaced as if the cloud took it back.
func (v *view) mend(w Worker) NodeRepair {
	if !w.Failed {
		v.Notices = append(slices.Clip(v.Notices), Notice{InstanceID: w.InstanceID, Deadline: v.Now.Add(NoticeTime), Unhealthy: true})
	}
	return NodeRepair{
		InstanceID: w.InstanceID, ProviderID: v.seen[w.InstanceID].ProviderID, Zone: w.Zone, Node: w.Node, Replaced: w.Failed,
		Message: fmt.Sprintf("Node %s has been %s for %s: it is drained, and %s terminated",
			w.Node, w.Unhealthy.Condition, v.Now.Sub(w.Unhealthy.Since).Round(time.Second), w.InstanceID),
	}
}

// takenFor is the reason to replace what does not stay.
func (v *view) takenFor() Reason {
	if n := v.unhealthy(); n > 0 && n == v.taken {
		return Unhealthy
	}
	return Interrupted
}

// taking says why workers must be replaced.
func (v *view) taking() string {
	n := v.unhealthy()
	switch {
	case n == v.taken:
		return count(n, "unhealthy worker") + " repaired"
	case n > 0:
		return fmt.Sprintf("the cloud reclaims %s and %s repaired", count(v.taken-n, "worker"), count(n, "unhealthy worker"))
	}
	return "the cloud reclaims " + count(v.taken, "worker")
}

// unhealthy is how many of the workers that are taken are unhealthy.
func (v *view) unhealthy() (n int) {
	for _, notice := range v.Notices {
		if notice.Unhealthy && slices.ContainsFunc(v.Workers, func(w Worker) bool { return w.InstanceID == notice.InstanceID && !w.Failed }) {
			n++
		}
	}
	return n
}

// isRepaired tells whether the repair of a worker begins now.
func (v *view) isRepaired(w Worker) bool {
	return slices.ContainsFunc(v.repaired.begun, func(r NodeRepair) bool { return r.InstanceID == w.InstanceID })
}

// prognosis tells what becomes of an unhealthy worker that is not being repaired yet.
func (v *view) prognosis(w Worker) string {
	due := w.Unhealthy.Due()
	switch {
	case !w.Unhealthy.Holds(), v.Pool.Repair.Disabled:
		return fmt.Sprintf("delete the Node or terminate %s if it is lost", w.InstanceID)
	case v.repaired.held != "":
		return "it is not repaired: " + v.repaired.held
	case v.Now.Before(due):
		return "it is repaired at " + due.UTC().Format(time.RFC3339) + " unless it recovers"
	case v.backsOff(w):
		return "its drain or its termination has failed, and is tried again at " + v.State.DrainBackoff[w.InstanceID].UTC().Format(time.RFC3339)
	}
	return "it is repaired once others have been"
}
