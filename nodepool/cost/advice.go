package cost

import (
	"fmt"
	"math"
	"slices"
)

// The thresholds of advice.
const (
	minHours     = 24   // of time that must be known for any advice
	minShare     = 0.05 // of the time, or of workers
	maxIdle      = 0.25 // share of the worker hours
	maxImbalance = 2.0  // ratio between the use of CPU and memory
	percentile   = 0.95 // share of the time that a new limit must suffice for
	minKnown     = 0.5  // share of the time at which a figure must be known
)

// Advice is a setting that could be improved, with its reason and numbers.
type Advice struct {
	Rule string `json:"rule"` // for programs
	Text string `json:"text"`
}

// adviceOf applies every rule. Without enough data it returns why there is no advice.
func adviceOf(r *Report, h *History) (list []Advice, missing string) {
	if r.KnownHours < minHours {
		return []Advice{}, fmt.Sprintf("%.1f h are known, and advice needs %d", r.KnownHours, minHours)
	}
	list = []Advice{}
	for _, rule := range []struct {
		name string
		text func(*Report, *History) string
	}{
		{"RaiseMaximum", raiseMaximum},
		{"LowerMinimum", lowerMinimum},
		{"GrowFaster", growFaster},
		{"ShrinkSooner", shrinkSooner},
		{"ChangeInstanceType", changeInstanceType},
		{"MoreSpot", moreSpot},
	} {
		if text := rule.text(r, h); text != "" {
			list = append(list, Advice{Rule: rule.name, Text: text})
		}
	}
	return list, ""
}

func raiseMaximum(r *Report, h *History) string {
	share := r.AtMaximumHours / r.KnownHours
	if share <= minShare {
		return ""
	}
	var recommended []int
	for i := range h.Moments {
		recommended = append(recommended, h.Moments[i].Recommended)
	}
	enough := quantile(recommended)
	if enough <= r.Max {
		return ""
	}
	return fmt.Sprintf("raise spec.max, which is %d: %s of the time (%.0f h) more were recommended; "+
		"%d would have been enough for %s of it", r.Max, percent(share), r.AtMaximumHours, enough, percent(percentile))
}

func lowerMinimum(r *Report, h *History) string {
	var needed []int
	atMinimum := 0.0
	for i := range h.Moments {
		m := &h.Moments[i]
		if m.BySignals == nil {
			continue
		}
		// Pending pods need one more node than exist: at least the existing ones are needed.
		need := *m.BySignals
		if m.Pending == nil || *m.Pending > 0 {
			need = max(need, m.Workers())
		}
		needed = append(needed, need)
		if m.Workers() <= r.Min {
			atMinimum += h.Step.Hours()
		}
	}
	if float64(len(needed)) < minKnown*float64(len(h.Moments)) {
		return ""
	}
	enough := quantile(needed)
	if enough >= r.Min || atMinimum <= minShare*r.KnownHours {
		return ""
	}
	return fmt.Sprintf("lower spec.min, which is %d, unless it has other reasons than load: "+
		"for %s of the time signals and pending pods needed no more than %d; "+
		"it would save up to %.0f worker hours in the same period",
		r.Min, percent(percentile), enough, atMinimum*float64(r.Min-enough))
}

// slow are the causes of late launches, with their remedies.
var slow = []cause{
	{"CoolingDown", "shorten cooldown.up"},
	{"ActionOpen", "raise maxBatchUp: launches wait for earlier ones"},
	{"InsufficientCapacity", "add instance types or subnets: placements were cooling after errors"},
	{"OffersUnknown", "see the condition Healthy in foresail explain workerpool: the offers of the cloud were unknown"},
	{"BackingOff", "find out why launches fail: see foresail explain workerpool"},
}

func growFaster(r *Report, h *History) string {
	late, missing := 0, 0
	for i := range h.Moments {
		if lack := h.Moments[i].Needed() - h.Moments[i].Workers(); lack > 0 {
			late++
			missing = max(missing, lack)
		}
	}
	hours := float64(late) * h.Step.Hours()
	if hours <= minShare*r.KnownHours {
		return ""
	}
	return fmt.Sprintf("%s: %s of the time (%.0f h) there were fewer workers than desired, up to %d fewer%s",
		remedy(h, slow, "raise maxBatchUp or shorten cooldown.up"),
		percent(hours/r.KnownHours), hours, missing, shareOf(h, slow))
}

// sticky are the causes of idle workers, with their remedies.
var sticky = []cause{
	{"NotIdle", "shorten idle.for, or raise idle.cpu and idle.memory"},
	{"CoolingDown", "shorten cooldown.down"},
	{"NoRemovableNode", "find out what blocks nodes: see foresail explain workerpool"},
	{"BlockedByPendingPods", "find out why pods stay pending"},
	{"MetricsUnknown", "find out why signals are unknown"},
	{"TooManyUnready", "find out why workers are not Ready"},
	{"LoadAfterRemoval", "use smaller instance types"},
}

func shrinkSooner(r *Report, h *History) string {
	if r.WorkerHours == 0 || r.IdleHours <= maxIdle*r.WorkerHours {
		return ""
	}
	return fmt.Sprintf("%s: %s of the worker hours (%.0f of %.0f) were beyond the desired count%s",
		remedy(h, sticky, "shorten idle.for and cooldown.down, or use smaller instance types"),
		percent(r.IdleHours/r.WorkerHours), r.IdleHours, r.WorkerHours, shareOf(h, sticky))
}

// cause is a reason of decisions with its remedy.
type cause struct{ reason, remedy string }

// commonest returns the most frequent cause, nil if none occurred.
func commonest(h *History, of []cause) *cause {
	var out *cause
	for i := range of {
		n := h.Decisions[of[i].reason]
		if n > 0 && (out == nil || n > h.Decisions[out.reason]) {
			out = &of[i]
		}
	}
	return out
}

func remedy(h *History, of []cause, otherwise string) string {
	if m := commonest(h, of); m != nil {
		return m.remedy
	}
	return otherwise
}

// shareOf returns the most frequent cause with its share of all decisions.
func shareOf(h *History, of []cause) string {
	m := commonest(h, of)
	if m == nil {
		return ""
	}
	all := 0.0
	for _, n := range h.Decisions {
		all += n
	}
	return fmt.Sprintf(
		"; the most frequent cause was %s, %s of all decisions", m.reason, percent(h.Decisions[m.reason]/all),
	)
}

// changeInstanceType compares the shares of CPU and memory in use, or requested if usage is unknown.
func changeInstanceType(_ *Report, h *History) string {
	for _, names := range [][2]string{{"cpu", "memory"}, {"requests/cpu", "requests/memory"}} {
		cpu, n := mean(h, names[0])
		memory, m := mean(h, names[1])
		if known := minKnown * float64(len(h.Moments)); float64(n) < known || float64(m) < known {
			continue
		}
		switch {
		case cpu > 0 && cpu >= maxImbalance*memory:
			return fmt.Sprintf("use instance types with less memory for each CPU: on average %s is %s and %s is %s",
				names[0], percent(cpu), names[1], percent(memory))
		case memory > 0 && memory >= maxImbalance*cpu:
			return fmt.Sprintf("use instance types with more memory for each CPU: on average %s is %s and %s is %s",
				names[1], percent(memory), names[0], percent(cpu))
		}
		return ""
	}
	return ""
}

// mean returns the mean load by a signal, and how many moments have it.
func mean(h *History, signal string) (float64, int) {
	total, n := 0.0, 0
	for i := range h.Moments {
		if v, ok := h.Moments[i].Load[signal]; ok {
			total, n = total+v, n+1
		}
	}
	return total / float64(max(1, n)), n
}

func moreSpot(r *Report, h *History) string {
	if r.SpotShare == nil || r.SpotTarget == nil || *r.SpotTarget-*r.SpotShare <= minShare {
		return ""
	}
	why := "no launch failed: On-Demand workers stay until they are removed"
	if failed := h.Events["LaunchFailed"]; failed > 0 {
		why = fmt.Sprintf("%.0f launches failed: add instance types and subnets, or raise market.maxPrice", failed)
	}
	if taken := h.Events["Interrupted"]; taken > 0 {
		why += fmt.Sprintf("; %.0f instances were reclaimed", taken)
	}
	return fmt.Sprintf("%s of the worker hours were Spot, and the market policy aims at %s; %s",
		percent(*r.SpotShare), percent(*r.SpotTarget), why)
}

// quantile returns the 95th percentile of at least one number. It sorts them.
func quantile(x []int) int {
	slices.Sort(x)
	return x[max(0, int(math.Ceil(percentile*float64(len(x))))-1)]
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }
