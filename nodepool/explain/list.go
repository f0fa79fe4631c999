package explain

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
)

// Line is a pool in a list of pools. Unknown values are absent.
type Line struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Healthy  bool   `json:"healthy"`
	Cause    string `json:"cause,omitempty"` // message of the condition Healthy, unless it is True
	State    string `json:"state"`           // reason of the condition Healthy, or Deleting
	Workers  *int32 `json:"workers"`
	Ready    *int32 `json:"ready"`
	Desired  *int32 `json:"desired"`
	Min      int32  `json:"min"`
	Max      int32  `json:"max"`
	Pending  *int32 `json:"pendingPods"`
	Action   string `json:"action,omitempty"`
	Decision string `json:"decision,omitempty"` // the newest
}

// LineOf returns the line of a pool.
func LineOf(pool *v1alpha1.WorkerPool, now time.Time) Line {
	s := &pool.Status
	line := Line{
		Name: pool.Name, Provider: providerOf(pool.Spec.Provider), State: "no status yet",
		Min: pool.Spec.Min, Max: pool.Spec.Max,
		Workers: s.Workers, Ready: s.ReadyWorkers, Desired: s.Desired, Pending: s.PendingPods,
	}
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionHealthy); c != nil {
		line.Healthy, line.State = c.Status == metav1.ConditionTrue, c.Reason
		if !line.Healthy {
			line.Cause = c.Message
		}
	}
	if meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionDeleting) {
		line.State = v1alpha1.ConditionDeleting
	}
	if pool.Spec.DryRun {
		line.State += ", dry run"
	}
	if a := s.Action; a != nil {
		line.Action = fmt.Sprintf("%s for %s", a.Kind, age(now.Sub(a.Started.Time)))
	}
	if len(s.Decisions) > 0 {
		line.Decision = s.Decisions[0].Step + " " + s.Decisions[0].Reason
	}
	return line
}
