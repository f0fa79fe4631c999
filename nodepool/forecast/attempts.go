package forecast

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/observe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

const (
	// settleFor is the time that a new node has, once it is Ready, until it has to take the pods that
	// it was launched for.
	settleFor = time.Minute
	// attemptBackoffMin is the first wait before a node is launched again for pods that did not use
	// the last one. It doubles with each failure.
	attemptBackoffMin = 10 * time.Minute
	// launchedBefore is the tolerance between the clock of the cloud, which dates launches, and this
	// one.
	launchedBefore = time.Minute
)

// attempts judges launches by whether they helped. If a node was launched for a pod that cannot use
// it, no further node follows: what is known about new nodes or the pod is wrong, and another node
// would be no different. A launch has helped if a pod of the same controller runs on a node that
// has joined since. It proves nothing if other pods have taken the room on the new nodes.
type attempts struct {
	o       *observe.Observation
	in      scheduling.Input // of a packing; its pods are replaced
	list    []state.Attempt  // for the journal
	changed bool             // the list differs from that of the journal

	kinds  map[string]string         // of pods by namespace/name, if an attempt has their owner
	held   map[string]bool           // kinds of pods whose node has just joined
	failed map[string]*state.Attempt // by kind, those that back off
	waits  map[string]bool           // pods by namespace/name that wait for the trial with another pod of their kind
}

// loadAttempts returns the attempts of the journal that still matter.
func loadAttempts(o *observe.Observation, in scheduling.Input) *attempts {
	a := &attempts{o: o, in: in, kinds: map[string]string{}, held: map[string]bool{}, failed: map[string]*state.Attempt{}}
	if len(o.Record.Attempts) == 0 {
		return a
	}
	world := worldOf(o)
	for _, one := range o.Record.Attempts {
		if a.helped(one) || one.Failed > 0 && one.World != world {
			a.changed = true
			continue
		}
		since := slices.MaxFunc([]time.Time{one.Began, one.Seen}, time.Time.Compare)
		if one.Joined.IsZero() && len(a.joinedSince(since)) > 0 {
			one.Joined, a.changed = o.At, true
		}
		a.list = append(a.list, one)
	}
	return a
}

// joinedSince returns the nodes of the pool that were launched since a time and are Ready.
func (a *attempts) joinedSince(began time.Time) []*cluster.Node {
	return a.joined(began, func(*plan.Instance) bool { return true })
}

// joinedFor returns those of joinedSince whose kind could run a pod, as far as new nodes are known.
// Others were launched for other pods and prove nothing about this one.
func (a *attempts) joinedFor(pod cluster.Pending, began time.Time) []*cluster.Node {
	takes := map[fleet.Kind]bool{}
	return a.joined(began, func(w *plan.Instance) bool {
		kind := fleet.Kind{Zone: w.Zone, InstanceType: w.InstanceType}
		if _, known := takes[kind]; !known {
			takes[kind] = a.takes(kind, pod)
		}
		return takes[kind]
	})
}

// takes reports whether a new node of a kind could run a pod.
func (a *attempts) takes(kind fleet.Kind, pod cluster.Pending) bool {
	in := a.in
	in.Offers = slices.DeleteFunc(slices.Clone(in.Offers), func(o provider.Offer) bool {
		return o.InstanceType != kind.InstanceType || o.Zone != kind.Zone
	})
	return scheduling.Takes(in, pod)
}

func (a *attempts) joined(began time.Time, which func(*plan.Instance) bool) []*cluster.Node {
	var out []*cluster.Node
	for w := range a.o.Workers() {
		n := a.o.NodeNamed(w.Node.Name)
		if n != nil && n.Ready && !w.Launched.Before(began.Add(-launchedBefore)) && which(w) {
			out = append(out, n)
		}
	}
	return out
}

// helped reports whether a node that was launched since then has taken a pod of the controller.
func (a *attempts) helped(one state.Attempt) bool {
	return slices.ContainsFunc(a.joinedSince(one.Began), func(n *cluster.Node) bool {
		return slices.ContainsFunc(n.Pods, func(p *cluster.Pod) bool {
			return cmp.Or(string(p.Owner), p.Namespace+"/"+p.Name) == one.Owner
		})
	})
}

// left returns the pods for which nodes may be launched.
func (a *attempts) left(pods []cluster.Pending) []cluster.Pending {
	if len(a.list) == 0 {
		return pods
	}
	for i := range a.list {
		one := &a.list[i]
		if one.Until.After(a.o.At) && a.failed[one.Kind] == nil && !a.recovered(one, pods) {
			a.failed[one.Kind] = one
		}
	}
	tried := map[string]bool{}
	a.waits = map[string]bool{}
	return slices.DeleteFunc(slices.Clone(pods), func(p cluster.Pending) bool {
		kind := a.kindOf(p.Pod)
		if a.held[kind] || a.failed[kind] != nil {
			return true
		}
		if one := a.of(kind); one != nil && one.Failed > 0 { // one node shows whether they help now
			a.waits[nameOf(p).String()] = tried[kind]
			tried[kind] = true
		}
		return a.waits[nameOf(p).String()]
	})
}

// recovered reports whether a node has joined since then that could run the pods, which ends the
// backoff. Each node is checked once.
func (a *attempts) recovered(one *state.Attempt, pods []cluster.Pending) bool {
	at := slices.IndexFunc(pods, func(p cluster.Pending) bool { return a.kindOf(p.Pod) == one.Kind })
	if at < 0 || one.Joined.IsZero() || a.o.At.Sub(one.Joined) < settleFor {
		return false
	}
	fits := a.fits(pods[at], one.Seen)
	one.Seen, one.Joined, a.changed = a.o.At, time.Time{}, true
	if fits {
		one.Failed, one.Until = 0, time.Time{}
	}
	return fits
}

// fits reports whether a pod would need no new node if the nodes launched since a time were empty.
func (a *attempts) fits(pod cluster.Pending, since time.Time) bool {
	in := a.in
	in.Pods, in.Nodes = []cluster.Pending{pod}, slices.Clone(in.Nodes)
	for _, joined := range a.joinedSince(since) {
		at := slices.IndexFunc(in.Nodes, func(n cluster.Node) bool { return n.Object == joined.Object })
		in.Nodes[at] = joined.Emptied()
	}
	r := scheduling.Pack(in)
	return r.Known && r.Helped > 0 && r.Nodes == 0
}

// judge evaluates the attempts for pods, by name, that would get a new node now. It reports whether
// some of them must not.
func (a *attempts) judge(names []string, pods []cluster.Pending) (again bool) {
	if len(a.list) == 0 || len(names) == 0 {
		return false
	}
	eligible := setOf(names)
	judged := map[string]bool{}
	for _, p := range pods {
		one := a.of(a.kindOf(p.Pod))
		if one == nil || judged[one.Kind] || !eligible[nameOf(p).String()] || p.Since.After(one.Began) {
			continue
		}
		judged[one.Kind] = true
		again = a.judgeOne(one, p) || again
	}
	return again
}

// judgeOne reports whether no further node may be launched for a pod that has waited since before
// the last launch for its kind.
func (a *attempts) judgeOne(one *state.Attempt, pod cluster.Pending) bool {
	switch {
	case one.Joined.IsZero(), len(a.joinedFor(pod, one.Began)) == 0, a.fits(pod, one.Began):
		return false
	case a.o.At.Sub(one.Joined) < settleFor:
		a.held[one.Kind] = true
		return true
	}
	wait := a.backoff(one)
	one.Failed++
	one.Began, one.Joined, one.Seen, one.Until, one.World = a.o.At, time.Time{}, a.o.At, a.o.At.Add(wait), worldOf(a.o)
	a.failed[one.Kind], a.changed = one, true
	return true
}

// backoff returns how long nothing is launched after a failed attempt. Nodes that are not
// initialized or were cordoned may not be representative, so the first failure with only such nodes
// costs no wait.
func (a *attempts) backoff(one *state.Attempt) time.Duration {
	failed := one.Failed
	works := func(n *cluster.Node) bool {
		return !n.Object.Spec.Unschedulable && scheduling.Initialized(n.Object, a.in.Template)
	}
	if !slices.ContainsFunc(a.joinedSince(one.Began), works) {
		failed--
	}
	if failed < 0 {
		return 0
	}
	wait := attemptBackoffMin
	for range failed {
		wait = min(2*wait, state.AttemptBackoffMax)
	}
	return wait
}

// of returns the attempt for a kind of pods, nil if there is none.
func (a *attempts) of(kind string) *state.Attempt {
	at := slices.IndexFunc(a.list, func(one state.Attempt) bool { return one.Kind == kind })
	if at < 0 {
		return nil
	}
	return &a.list[at]
}

// report adds the pods for which nothing is launched to the pending ones.
func (a *attempts) report(p *plan.Pending, pods []cluster.Pending, pendingFor time.Duration) {
	if len(a.held)+len(a.failed)+len(a.waits) == 0 {
		return
	}
	for _, pod := range pods {
		kind := a.kindOf(pod.Pod)
		if one := a.failed[kind]; one != nil {
			p.BackingOff++
			p.Unhelped = append(p.Unhelped, fleet.Unhelped{Pod: nameOf(pod).String(), Reason: fmt.Sprintf(
				"it did not use the node that was launched for it, and the next launch is tried at %s",
				one.Until.UTC().Format(time.RFC3339))})
		} else if a.held[kind] || a.waits[nameOf(pod).String()] {
			p.Pods++
			if a.o.At.Sub(pod.Since) >= pendingFor {
				p.Due++
			}
		}
	}
	slices.SortFunc(p.Unhelped, func(x, y fleet.Unhelped) int { return cmp.Compare(x.Pod, y.Pod) })
}

// begun returns the attempts, including a launch that begins now for pods, by name.
func (a *attempts) begun(names []string, pods []cluster.Pending, now time.Time) []state.Attempt {
	eligible, noted := setOf(names), map[string]bool{}
	list := slices.Clone(a.list)
	for _, p := range pods {
		if !eligible[nameOf(p).String()] {
			continue
		}
		kind := kindOf(p.Pod)
		if noted[kind] {
			continue
		}
		noted[kind] = true
		at := slices.IndexFunc(list, func(one state.Attempt) bool { return one.Kind == kind })
		if at < 0 {
			at = len(list)
			list = append(list, state.Attempt{Kind: kind, Owner: ownerOf(p.Pod), Pod: state.Shorten(nameOf(p).String(), 100)})
		}
		list[at].Began, list[at].Joined = now, time.Time{}
	}
	return boundedAttempts(list)
}

// boundedAttempts drops attempts that exceed the limit of the journal: those without failures
// before others, and the oldest first.
func boundedAttempts(list []state.Attempt) []state.Attempt {
	if len(list) <= state.MaxAttempts {
		return list
	}
	slices.SortStableFunc(list, func(x, y state.Attempt) int {
		return cmp.Or(cmp.Compare(min(y.Failed, 1), min(x.Failed, 1)), y.Began.Compare(x.Began))
	})
	return list[:state.MaxAttempts]
}

func setOf(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, name := range names {
		out[name] = true
	}
	return out
}

// kindOf returns the kind of a pod if there is an attempt for its controller, "" otherwise.
func (a *attempts) kindOf(pod *corev1.Pod) string {
	name, owner := pod.Namespace+"/"+pod.Name, ownerOf(pod)
	if kind, ok := a.kinds[name]; ok {
		return kind
	}
	if slices.ContainsFunc(a.list, func(one state.Attempt) bool { return one.Owner == owner }) {
		a.kinds[name] = kindOf(pod)
	} else {
		a.kinds[name] = ""
	}
	return a.kinds[name]
}

// ownerOf returns the controller of a pod, or its own name if it has none.
func ownerOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return string(owner.UID)
	}
	return pod.Namespace + "/" + pod.Name
}

// kindOf identifies the controller of a pod together with the requirements of the pod.
func kindOf(pod *corev1.Pod) string { return digest(ownerOf(pod), pod.Spec) }

// worldOf identifies the configuration of new nodes. After a change a node may take pods that the
// last one did not.
func worldOf(o *observe.Observation) string {
	specs := make([]corev1.PodSpec, len(o.Cluster.DaemonSets))
	for i, d := range o.Cluster.DaemonSets {
		specs[i] = d.Spec.Template.Spec
	}
	return digest(o.Spec.LaunchSpec, o.Spec.Template, specs)
}

// digest returns equal text for values with equal JSON.
func digest(of ...any) string {
	data, err := json.Marshal(of)
	if err != nil {
		panic(fmt.Sprintf("encode a part of a pod: %v", err)) // it came from JSON
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
