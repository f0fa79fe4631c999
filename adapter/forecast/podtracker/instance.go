// Package podtracker turns pods into the instances that forecasts are made of: which carry load,
// since when and until when. A Watcher feeds the pods of a cluster to a Tracker. Each scale target
// has a TargetPods, which lists the instances, counts the pods that the HPA counts as ready, and
// measures how long pods take to start.
package podtracker

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Instance is one readiness of one pod: from the moment the pod became Ready until it was deleted, began to terminate,
// ended, lost readiness or left the selector. A pod that becomes Ready again is a new instance.
//
// Start is the lastTransitionTime of the Ready condition, in whole seconds: the pod became Ready up
// to a second later. If the selector of the target moved to the pod after that, Start is the time
// at which this was seen. A replica that watched knows the time more precisely, one that started
// later does not; both agree on the recorded time. End is the time that the pod records too, and
// the time of observation only where it records none.
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
