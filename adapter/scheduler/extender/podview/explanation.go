// Package podview explains the placement of a pod for `foresail explain pod` and the page of
// `foresail dashboard`: the state of the pod, and the newest decisions of the extender's replicas on
// it, in the same words.
package podview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/pipeline"
)

// Explanation holds the known facts about the placement of a pod; it is also printed as JSON.
type Explanation struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	At        time.Time `json:"at"` // when it was asked
	Pod       *State    `json:"pod,omitempty"`
	PodError  string    `json:"podError,omitempty"` // why there is no Pod
	Absent    bool      `json:"-"`                  // the cluster has no such pod
	// FilteredBy and ScoredBy are the replicas that answered the scheduler.
	FilteredBy string                   `json:"filteredBy,omitempty"`
	Filter     *extender.FilterDecision `json:"filter,omitempty"`
	ScoredBy   string                   `json:"scoredBy,omitempty"`
	Prioritize *extender.ScoreDecision  `json:"prioritize,omitempty"` // nil also if one node was left
	// Answered are the replicas that did, by name.
	Answered []string `json:"answered"`
	// Unreachable says of each replica that could not be asked why, by its name. Theirs may have
	// been the newest answer.
	Unreachable map[string]string `json:"unreachable,omitempty"`
}

// State is the state of the pod in the cluster.
type State struct {
	UID       types.UID    `json:"uid"`
	Scheduler string       `json:"schedulerName"`
	Created   metav1.Time  `json:"creationTimestamp"`
	Node      string       `json:"node,omitempty"`        // "" as long as it is not bound
	Scheduled *metav1.Time `json:"scheduledAt,omitempty"` // when it was bound, or found no node
	Message   string       `json:"message,omitempty"`     // why it is not bound
}

// New returns an explanation that knows nothing yet. Its error is of a name that no pod can have.
func New(pod types.NamespacedName, now time.Time) (*Explanation, error) {
	var errs []error
	if len(validation.IsDNS1123Label(pod.Namespace)) > 0 {
		errs = append(errs, &pipeline.FieldError{Field: "namespace", Value: fmt.Sprintf("%q", pod.Namespace),
			Accept: "a DNS label, such as shop"})
	}
	if len(validation.IsDNS1123Subdomain(pod.Name)) > 0 {
		errs = append(errs, &pipeline.FieldError{Field: "name", Value: fmt.Sprintf("%q", pod.Name),
			Accept: "a DNS subdomain, such as checkout-7d9c5"})
	}
	return &Explanation{Namespace: pod.Namespace, Name: pod.Name, At: now}, errors.Join(errs...)
}

// Read reads the pod. An error goes to PodError: there may be an answer all the same.
func (e *Explanation) Read(ctx context.Context, client kubernetes.Interface) {
	pod, err := client.CoreV1().Pods(e.Namespace).Get(ctx, e.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		e.PodError, e.Absent = "there is no such pod now", true
		return
	case err != nil:
		e.PodError = fmt.Sprintf("the pod cannot be read: %v", err)
		return
	}
	e.Pod = &State{UID: pod.UID, Scheduler: pod.Spec.SchedulerName,
		Created: pod.CreationTimestamp, Node: pod.Spec.NodeName}
	if c := scheduledCondition(pod); c != nil {
		e.Pod.Scheduled, e.Pod.Message = &c.LastTransitionTime, c.Message
	}
}

func scheduledCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c
		}
	}
	return nil
}

// Take notes what a replica answered, and keeps what is newer than what there is.
func (e *Explanation) Take(from string, answer extender.Explanation) {
	e.Answered = append(e.Answered, from)
	slices.Sort(e.Answered)
	if f := answer.Filter; f != nil && (e.Filter == nil || f.At.After(e.Filter.At)) {
		e.Filter, e.FilteredBy = f, from
	}
	if p := answer.Prioritize; p != nil && (e.Prioritize == nil || p.At.After(e.Prioritize.At)) {
		e.Prioritize, e.ScoredBy = p, from
	}
}

// Miss notes a replica that could not be asked.
func (e *Explanation) Miss(replica string, why error) {
	if e.Unreachable == nil {
		e.Unreachable = map[string]string{}
	}
	e.Unreachable[replica] = why.Error()
}

// Unanswered returns nil if there is an answer, else what may be the reason that there is none.
func (e *Explanation) Unanswered() error {
	if e.Filter != nil || e.Prioritize != nil {
		return nil
	}
	why := []string{"is the extender in the configuration of the scheduler (docs/extender.md)?"}
	switch {
	case e.Pod == nil:
		why = append(why, "and is the name right?")
	case e.Pod.Node != "":
		why = append(why, "or was that too long ago to be remembered, or before this replica started?")
	case e.Pod.Message != "":
		why = append(why, "The scheduler asks about nodes that fit by its own rules: there may be none.")
	}
	scheduler := ""
	if e.Pod != nil {
		scheduler = fmt.Sprintf(" by the scheduler %q, which its schedulerName says", e.Pod.Scheduler)
	}
	because := ""
	if e.PodError != "" {
		because = ", and " + e.PodError
	}
	return fmt.Errorf("no replica of Foresail (%s) was asked about the pod %s/%s lately%s%s: %s",
		strings.Join(e.Answered, ", "), e.Namespace, e.Name, scheduler, because, strings.Join(why, " "))
}
