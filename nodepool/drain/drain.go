// Package drain empties nodes by the rules of Kubernetes: through the eviction API, with PodDisruptionBudgets, and
// without evicting pods that no controller would create again.
//
// A drain is a sequence of small steps, each of which can be repeated after a crash: [Drainer.Taint] keeps new pods
// away, [Drainer.Blockers] returns what blocks the drain, [Drainer.Cordon] shows users that the node is drained,
// [Drainer.Evict] evicts pods until none remains, and [Drainer.Restore] undoes everything if the drain is given up.
// All state is kept on the Node itself.
//
// Whether a pod has left is read from the API server and not from a cache, as the instance is terminated afterwards.
// While a watch shows that all evicted pods still exist, nothing is read. A pod has left when its object is deleted,
// which the kubelet does once the containers have ended. Without a kubelet this never happens, so a pod is not awaited
// for more than a minute past its grace period, by the clock of this process since it first saw the deletion: the pod
// had the time that it requested, and terminating the instance ends its containers. Pods without an object are never
// awaited.
//
// It needs these permissions: get, list, patch and delete nodes; list pods and volumeattachments; create
// pods/eviction; and delete pods for [Limits.Force].
package drain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/nodepool/cluster"
)

// Progress is the progress of a drain.
type Progress struct {
	// Remaining counts the pods at the beginning of the pass that have not left, including those that it evicted. It is 0
	// only if the pass found none.
	Remaining int
	Refused   []string // evictions that a PodDisruptionBudget refused just now, as namespace/name: reason
	Blocked   []string // pods of Remaining that are not evicted as they block a drain, as of [Drainer.Blockers]
}

// Drainer drains nodes of one cluster. Its methods may be called from any goroutine. It must not be copied after its
// first use.
type Drainer struct {
	Client kubernetes.Interface
	Now    func() time.Time
	// Leaving returns the pods of a node that a drain awaits, and whether all of them are being deleted according to a
	// watch. nil: there is no watch.
	Leaving func(node string) (pods []types.NamespacedName, all bool)

	leaving  leavingPods
	requests requestLimit
}

// Evict makes one pass over the pods of a node: it evicts those that are not being deleted yet, several at a time, and
// does not wait for their end. It may be called for several nodes concurrently. Pods of DaemonSets, mirror pods,
// finished pods and pods that tolerate the taint of a drain are neither evicted nor counted.
//
// Without force, a pod that blocks a drain is not evicted, so the node does not become empty. With force, every pod is
// deleted regardless of PodDisruptionBudgets, and a pod that is being deleted gets the shorter grace period of the
// limits.
//
// A pod is evicted by its UID, and so never another pod with the same name. An error means that some pods could not be
// evicted; the others were, and the Progress covers all.
func (d *Drainer) Evict(ctx context.Context, node string, l Limits) (Progress, error) {
	if n := d.awaited(node, l); n > 0 {
		return Progress{Remaining: n}, nil
	}
	pods, err := podsOf(ctx, d.Client, node, d.Now())
	if err != nil {
		return Progress{}, err
	}
	pods = d.leaving.update(node, pods, d.Now())
	progress, answers := d.pass(ctx, pods, l)
	var errs []error
	for i, a := range answers {
		if a.refused != "" {
			progress.Refused = append(progress.Refused, name(pods[i])+": "+a.refused)
		}
		errs = append(errs, a.err)
	}
	return progress, errors.Join(errs...)
}

// pass evicts or deletes pods, and returns an answer for each.
func (d *Drainer) pass(ctx context.Context, pods []*corev1.Pod, l Limits) (Progress, []answer) {
	var progress Progress
	answers := make([]answer, len(pods))
	var requests sync.WaitGroup
	for i, pod := range pods {
		class, why := cluster.Classify(pod, d.Now())
		if l.skips(pod, class, d.Now()) {
			continue
		}
		progress.Remaining++
		grace := l.grace(d.Now())
		switch {
		case l.deletes(pod, class, d.Now()):
			d.requests.start(&requests, func() { answers[i] = remove(ctx, d.Client, pod, grace) })
		case pod.DeletionTimestamp != nil:
		case class == cluster.Blocking:
			progress.Blocked = append(progress.Blocked, name(pod)+" "+why)
		default:
			d.requests.start(&requests, func() { answers[i] = evict(ctx, d.Client, pod, grace) })
		}
	}
	requests.Wait()
	return progress, answers
}

// awaited returns the number of pods of a node that are being deleted if a watch shows that a pass would find no
// others; otherwise 0.
func (d *Drainer) awaited(node string, l Limits) int {
	if d.Leaving == nil || l.Force || !l.Ends.IsZero() {
		return 0
	}
	pods, all := d.Leaving(node)
	if !all || !d.leaving.cover(node, pods, d.Now()) {
		return 0
	}
	return len(pods)
}

// Blockers returns why a node must not be drained: a text for each pod that blocks it, such as "default/a has critical
// priority". Pods that are being deleted do not block.
func (d *Drainer) Blockers(ctx context.Context, node string) ([]string, error) {
	pods, err := podsOf(ctx, d.Client, node, d.Now())
	if err != nil {
		return nil, err
	}
	var blockers []string
	for _, pod := range pods {
		if class, why := cluster.Classify(pod, d.Now()); class == cluster.Blocking {
			blockers = append(blockers, name(pod)+" "+why)
		}
	}
	return blockers, nil
}

// Arriving reports whether a pod may still be bound to a tainted node: a scheduler may have chosen the node for a pod
// before it saw the taint, as it binds later, after seconds if many pods are queued.
func (d *Drainer) Arriving(ctx context.Context) (bool, error) { return arriving(ctx, d.Client) }

// Attached returns the attached volumes by node, as the names of their PersistentVolumes, including those that are
// being detached. If a node ends with volumes attached, these cannot be used elsewhere for minutes. The list may be
// stale: for a node without pods this only delays its end.
func (d *Drainer) Attached(ctx context.Context) (map[string][]string, error) {
	return attached(ctx, d.Client)
}

// Taint keeps new pods away from a node for an action. The mark of another action is replaced.
func (d *Drainer) Taint(ctx context.Context, node, action string) error {
	return wrap(nodes{d.Client}.taint(ctx, node, action), "taint node %s", node)
}

// Cordon makes a node unschedulable and records, the first time, whether it already was.
func (d *Drainer) Cordon(ctx context.Context, node string) error {
	return wrap(nodes{d.Client}.cordon(ctx, node), "cordon node %s", node)
}

// Restore undoes Taint and Cordon. A cordon by others stays. It succeeds for a Node that no longer exists.
func (d *Drainer) Restore(ctx context.Context, node string) error {
	d.leaving.forget(node)
	return wrap(nodes{d.Client}.restore(ctx, node), "restore node %s", node)
}

// Marked returns the nodes that are being removed, with the ids of the actions.
func (d *Drainer) Marked(ctx context.Context) (map[string]string, error) {
	return nodes{d.Client}.marked(ctx)
}

// NodeOf returns the name of the Node of an instance, by its provider id or by one that ends in the id of the
// instance; "" if there is none. It reads from the API server itself. Several such Nodes are an error.
func (d *Drainer) NodeOf(ctx context.Context, providerID, instanceID string) (string, error) {
	if instanceID == "" {
		return "", fmt.Errorf("find the node of an instance: no id: must be given with the provider id %q", providerID)
	}
	return nodes{d.Client}.of(ctx, providerID, instanceID)
}

// DeleteNode deletes a Node if it still has the provider id: a node with the same name may be another instance. It
// succeeds for a Node that no longer exists or is another instance.
func (d *Drainer) DeleteNode(ctx context.Context, node, providerID string) error {
	if providerID == "" {
		return fmt.Errorf("delete node %s: no provider id: must be that of its instance", node)
	}
	d.leaving.forget(node)
	return wrap(nodes{d.Client}.delete(ctx, node, providerID), "delete node %s", node)
}

// wrap adds the operation to an error, if there is one.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
