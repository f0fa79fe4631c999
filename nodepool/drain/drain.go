// Package drain empties nodes by the rules of Kubernetes: through the eviction API, with PodDisruptionBudgets, and never
// a pod that nobody would bring back.
//
// A drain is a sequence of small steps, each of which may be repeated after a crash of whoever does them: [Drainer.Taint]
// keeps new pods away, [Drainer.Blockers] says whether the node may be drained at all, [Drainer.Cordon] shows people that
// it is left, [Drainer.Evict] asks its pods to leave until none remains, and [Drainer.Restore] takes everything back if
// that comes to nothing. All that is remembered is on the Node itself.
//
// Whether a pod has left is read from the API server itself, never from a cache: an instance is terminated on the
// strength of it. While a watch shows that pods which were asked to leave are still there, nothing is read. A pod
// leaves when its object is gone, which a kubelet brings about once its containers have ended. Where no kubelet
// answers any more that never happens, so a pod that has overstayed its grace period by a minute, by the clock of this
// process since it first saw the pod leave, is not waited for: the pod has had all the time that it asked for, and
// terminating the instance ends whatever still runs there. A pod without an object on the node is never waited for.
//
// It needs these permissions: get, list, patch and delete nodes; list pods and volumeattachments; create pods/eviction; and delete
// pods for [Limits.Force].
package drain

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Progress is how far a drain is.
type Progress struct {
	// Remaining counts the pods that are still to leave: those that were there when the pass began, the ones that it
	// evicted included. Only a pass that finds none says 0.
	Remaining int
	Refused   []string // evictions that a PodDisruptionBudget refused just now, as namespace/name: why
	Blocked   []string // pods of Remaining that are left alone as they block a drain, as of [Drainer.Blockers]
}

// leavingPod is a pod that was seen to be leaving.
type leavingPod struct {
	name  types.NamespacedName
	since time.Time // it was seen first
	until time.Time // it is waited for
}

// Drainer drains nodes of one cluster. Its methods may be called from any goroutine. It must not be copied after its
// first use.
type Drainer struct {
	Client kubernetes.Interface
	Now    func() time.Time
	// Leaving returns the pods of a node that a drain waits for, if all of them are being deleted as a watch shows it.
	// nil: none is watched.
	Leaving func(node string) (pods []types.NamespacedName, all bool)

	mu       sync.Mutex
	leaving  map[string]map[types.UID]leavingPod // by node
	requests chan struct{}                       // one for each request that is under way
}
