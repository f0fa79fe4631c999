package instances

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Instance is one readiness of one pod: from the moment the pod became Ready until it was deleted, began to terminate,
// ended, lost readiness or left the selector. A pod that becomes Ready again is a new instance.
//
// Start is the lastTransitionTime of the Ready condition. It has whole seconds, so that the pod became Ready up to a
// second after it. A replica that watched could tell more precisely, one that started later could not: the recorded
// time is the one that both agree on. The same goes for End, which is taken from the pod wherever the pod says it, and
// is the time of observation only where it does not.
type Instance struct {
	ID         string // the pod's UID; "<uid>/2", "<uid>/3", … for the later instances of one pod in a fleet
	Pod        types.NamespacedName
	IP         string            // empty until the pod has one
	Ports      map[string]int32  // named TCP ports of its containers; not to be changed
	Labels     map[string]string // not to be changed
	Start, End time.Time         // active if Start ≤ t < End; End is zero while it has not ended
}

// instanceID names the n-th instance of a pod, counted from 1.
func instanceID(uid types.UID, n int) string {
	if n == 1 {
		return string(uid)
	}
	return string(uid) + "/" + strconv.Itoa(n)
}
