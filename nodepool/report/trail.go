package report

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
)

// maxTrail is how many different decisions are kept: some kilobytes in the status of the pool.
const maxTrail = 50

// recorded returns the trail with a decision added, the newest first. A decision that differs from the newest only in its
// numbers raises that one's count: hours without anything to do are one line, and so are hours of a dry run that wants a node.
// A decision that began something has a line of its own.
func recorded(trail []v1alpha1.PoolDecision, d plan.Decision, began bool) []v1alpha1.PoolDecision {
	next := decision(d)
	if began || len(trail) == 0 || !same(trail[0], next) {
		trail = append([]v1alpha1.PoolDecision{next}, trail...)
		return trail[:min(len(trail), maxTrail)]
	}
	trail = append([]v1alpha1.PoolDecision(nil), trail...)
	last := next.Time
	next.Time, next.Last, next.Count = trail[0].Time, &last, max(trail[0].Count, 1)+1
	trail[0] = next
	return trail
}

// same returns whether two decisions differ only in their time and wording.
func same(a, b v1alpha1.PoolDecision) bool {
	return a.Step == b.Step && a.Reason == b.Reason && a.Desired == b.Desired && a.Workers == b.Workers
}

// began returns whether the decision of a cycle began something, by the events of the cycle. A decision to launch or remove may
// come to nothing, as in a dry run or beside an action that must end first.
func began(events []journal.Event) bool {
	return slices.ContainsFunc(events, func(e journal.Event) bool {
		switch e.Reason {
		case journal.EventScaleUpStarted, journal.EventScaleDownStarted, journal.EventReplacement:
			return true
		}
		return false
	})
}

func decision(d plan.Decision) v1alpha1.PoolDecision {
	out := v1alpha1.PoolDecision{
		Time: metav1.NewTime(d.At.Truncate(time.Second)), Count: 1,
		Step: string(d.Step), Reason: string(d.Reason), Message: d.Message,
		Workers: int32(d.Workers), Desired: int32(d.Want),
	}
	for _, v := range d.Recommendations {
		vote := v1alpha1.PoolRecommendation{Signal: v.Signal, Reason: v.Reason}
		if v.Known {
			nodes := int32(v.Nodes)
			vote.Workers = &nodes
		}
		out.Recommendations = append(out.Recommendations, vote)
	}
	return out
}
