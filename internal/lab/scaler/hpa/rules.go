package hpa

import (
	"math"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// rules are how fast, how late and from what difference on one direction is followed.
type rules struct {
	window    time.Duration // stabilisation
	policies  []autoscalingv2.HPAScalingPolicy
	choice    autoscalingv2.ScalingPolicySelect
	tolerance float64
}

// defaultRules are what a behaviour that says nothing of a direction gets: up, 4 pods or as many as
// there are, whichever is more, each 15 s; down, any number after the stabilisation window.
func defaultRules(f *Flags) (up, down rules) {
	const period = 15
	up = rules{
		policies: []autoscalingv2.HPAScalingPolicy{
			{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: period},
			{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: period},
		},
		choice: autoscalingv2.MaxChangePolicySelect, tolerance: f.Tolerance,
	}
	down = rules{
		window: f.DownscaleStabilization,
		policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PercentScalingPolicy, Value: 100,
			PeriodSeconds: period}},
		choice: autoscalingv2.MaxChangePolicySelect, tolerance: f.Tolerance,
	}
	return up, down
}

// with returns the rules with what is given in place of the defaults.
func (r rules) with(given *autoscalingv2.HPAScalingRules) rules {
	if given == nil {
		return r
	}
	if given.StabilizationWindowSeconds != nil {
		r.window = time.Duration(*given.StabilizationWindowSeconds) * time.Second
	}
	if given.Policies != nil {
		r.policies = given.Policies
	}
	if given.SelectPolicy != nil {
		r.choice = *given.SelectPolicy
	}
	if given.Tolerance != nil {
		r.tolerance = given.Tolerance.AsApproximateFloat64()
	}
	return r
}

// highest is the most replicas that the policies allow now, replicas if that is fewer.
func (r *rules) highest(now int64, replicas int, h *history) int {
	allowed := r.allowed(now, replicas, h, func(p autoscalingv2.HPAScalingPolicy, before int) int {
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return before + int(p.Value)
		}
		return int(math.Ceil(float64(before) * (1 + float64(p.Value)/100)))
	})
	if r.choice == autoscalingv2.MinChangePolicySelect {
		return max(replicas, slices.Min(allowed))
	}
	return max(replicas, slices.Max(allowed))
}

// lowest is the fewest replicas that the policies allow now, replicas if that is more.
func (r *rules) lowest(now int64, replicas int, h *history) int {
	allowed := r.allowed(now, replicas, h, func(p autoscalingv2.HPAScalingPolicy, before int) int {
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return before - int(p.Value)
		}
		return int(float64(before) * (1 - float64(p.Value)/100))
	})
	if r.choice == autoscalingv2.MinChangePolicySelect {
		return min(replicas, slices.Max(allowed))
	}
	return min(replicas, slices.Min(allowed))
}

// allowed returns what each policy allows, counted from the replicas at the beginning of its period.
func (r *rules) allowed(now int64, replicas int, h *history,
	of func(p autoscalingv2.HPAScalingPolicy, before int) int) []int {
	if r.choice == autoscalingv2.DisabledPolicySelect || len(r.policies) == 0 {
		return []int{replicas}
	}
	out := make([]int, 0, len(r.policies))
	for _, p := range r.policies {
		out = append(out, of(p, replicas-h.change(now, p.PeriodSeconds)))
	}
	return out
}

// lookBack is how far back any of the policies looks (ms).
func (r *rules) lookBack() int64 {
	longest := int32(0)
	for _, p := range r.policies {
		longest = max(longest, p.PeriodSeconds)
	}
	return int64(longest) * 1000
}
