package podview

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/kubernetes"
)

const (
	// maxUnbound bounds the list.
	maxUnbound = 100
	// unboundAge is how old the list may be. A cluster that takes long to list them is listing for a
	// twentieth of the time.
	unboundAge  = 10 * time.Second
	listingRest = 20
)

// Unbound lists the pods that are not bound to a node, with the rights of the user. It is safe for concurrent use.
type Unbound struct {
	Cluster kubernetes.Interface
	Failure error // why there is no cluster to read
	Now     func() time.Time

	mu   sync.Mutex // guards the fields below; held while pods are listed, so that concurrent readers list once
	last *UnboundList
	took time.Duration
}

// UnboundList is the answer. Problem says why there is none.
type UnboundList struct {
	Time    time.Time    `json:"time"` // when it was read
	Problem string       `json:"problem,omitempty"`
	Pods    []UnboundPod `json:"pods"` // the oldest first
	More    bool         `json:"more"` // there are others
}

// UnboundPod is a pod that is not bound.
type UnboundPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Age       string `json:"age"`
	Message   string `json:"message"` // of the scheduler
}

// List returns the pods.
func (u *Unbound) List(ctx context.Context) UnboundList {
	u.mu.Lock()
	defer u.mu.Unlock()
	began := u.Now()
	if u.last != nil {
		if age := began.Sub(u.last.Time); age >= 0 && age <= max(unboundAge, listingRest*u.took) {
			return *u.last
		}
	}
	list, err := u.read(ctx)
	list.Time = u.Now()
	if err != nil {
		list.Problem = unboundProblem(err)
	}
	if !errors.Is(ctx.Err(), context.Canceled) { // else the page shows something else by now
		u.last, u.took = &list, list.Time.Sub(began)
	}
	return list
}

func (u *Unbound) read(ctx context.Context) (UnboundList, error) {
	out := UnboundList{Pods: []UnboundPod{}}
	if u.Failure != nil {
		return out, u.Failure
	}
	waiting := fields.AndSelectors(fields.OneTermEqualSelector("spec.nodeName", ""),
		fields.OneTermEqualSelector("status.phase", string(corev1.PodPending)))
	pods, err := u.Cluster.CoreV1().Pods("").List(ctx,
		metav1.ListOptions{FieldSelector: waiting.String(), Limit: maxUnbound})
	if err != nil {
		return out, err
	}
	slices.SortStableFunc(pods.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	now := u.Now()
	for i := range pods.Items {
		pod, message := &pods.Items[i], ""
		if c := scheduledCondition(pod); c != nil {
			message = c.Message
		}
		out.Pods = append(out.Pods, UnboundPod{
			Namespace: pod.Namespace, Name: pod.Name, Age: duration.HumanDuration(now.Sub(pod.CreationTimestamp.Time)),
			Message: whyUnbound(message),
		})
	}
	out.More = pods.Continue != ""
	return out, nil
}

// unboundProblem says why the list is not shown.
func unboundProblem(err error) string {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return "You may not list the pods of all namespaces, so those without a node are not shown; one pod can be asked about by its name: " + err.Error()
	}
	return "Pods cannot be listed: " + err.Error()
}
