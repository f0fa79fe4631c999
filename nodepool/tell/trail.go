package tell

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/plan"
)

// maxTrail is how many different decisions are kept: some kilobytes in the status of the pool.
const maxTrail = 50

// recorded returns the trail, the newest first, with a decision put to it. One that says the same as the newest, numbers in
// its sentence aside, counts it up: hours without anything to do are one line.
func recorded(trail []v1alpha1.PoolDecision, d plan.Decision) []v1alpha1.PoolDecision {
	next := decision(d)
	if len(trail) == 0 || !same(trail[0], next) {
		trail = append([]v1alpha1.PoolDecision{next}, trail...)
		return trail[:min(len(trail), maxTrail)]
	}
	trail = append([]v1alpha1.PoolDecision(nil), trail...)
	last := next.Time
	next.Time, next.Last, next.Count = trail[0].Time, &last, max(trail[0].Count, 1)+1
	trail[0] = next
	return trail
}

// same tells whether two decisions differ in nothing but when they were made and how they are put.
func same(a, b v1alpha1.PoolDecision) bool {
	return a.Step == b.Step && a.Reason == b.Reason && a.Wanted == b.Wanted && a.Workers == b.Workers && a.Step == string(plan.Hold)
}

func decision(d plan.Decision) v1alpha1.PoolDecision {
	out := v1alpha1.PoolDecision{
		Time: metav1.NewTime(d.At.Truncate(time.Second)), Count: 1,
		Step: string(d.Step), Reason: string(d.Reason), Message: d.Message,
		Workers: int32(d.Workers), Wanted: int32(d.Want),
	}
	for _, v := range d.Votes {
		vote := v1alpha1.PoolVote{Voice: v.Voice, Why: v.Why}
		if v.Known {
			nodes := int32(v.Nodes)
			vote.Workers = &nodes
		}
		out.Votes = append(out.Votes, vote)
	}
	return out
}
