package report

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
)

// maxTrail bounds the different decisions in the status: some kilobytes.
const maxTrail = 50

// recordDecision adds a decision to a trail, the newest first. A decision that differs from the newest only in time
// and wording raises its count: hours without a change are one entry, and so are hours of a dry run that would launch
// a node. A decision that began an action is a new entry.
func recordDecision(trail []v1alpha1.PoolDecision, d plan.Decision, began bool) []v1alpha1.PoolDecision {
	next := decisionOf(d)
	if began || len(trail) == 0 || !sameDecision(trail[0], next) {
		trail = append([]v1alpha1.PoolDecision{next}, trail...)
		return trail[:min(len(trail), maxTrail)]
	}
	trail = append([]v1alpha1.PoolDecision(nil), trail...)
	last := next.Time
	next.Time, next.Last, next.Count = trail[0].Time, &last, max(trail[0].Count, 1)+1
	trail[0] = next
	return trail
}

// sameDecision reports whether two decisions differ only in time and wording.
func sameDecision(a, b v1alpha1.PoolDecision) bool {
	return a.Step == b.Step && a.Reason == b.Reason && a.Desired == b.Desired && a.Workers == b.Workers
}

// began reports whether the decision of a cycle began an action. It may not, as in a dry run or while another action is
// open.
func began(events []journal.Event) bool {
	return slices.ContainsFunc(events, func(e journal.Event) bool {
		switch e.Reason {
		case journal.EventScaleUpStarted, journal.EventScaleDownStarted, journal.EventReplacement:
			return true
		}
		return false
	})
}

func decisionOf(d plan.Decision) v1alpha1.PoolDecision {
	out := v1alpha1.PoolDecision{
		Time: metav1.NewTime(d.At.Truncate(time.Second)), Count: 1,
		Step: string(d.Step), Reason: string(d.Reason), Message: d.Message,
		Workers: int32(d.Workers), Desired: int32(d.Desired),
	}
	for _, v := range d.Recommendations {
		recommendation := v1alpha1.PoolRecommendation{Signal: v.Signal, Reason: v.Reason}
		if v.Known {
			nodes := int32(v.Nodes)
			recommendation.Workers = &nodes
		}
		out.Recommendations = append(out.Recommendations, recommendation)
	}
	return out
}
