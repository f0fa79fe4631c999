package cost

import (
	"fmt"
	"math"
	"slices"
)

// The limits from which on there is advice.
const (
	leastHours  = 24   // of time that must be known for any advice
	often       = 0.05 // share of the time, or of workers
	muchIdle    = 0.25 // share of the worker hours
	lopsided    = 2.0  // times that one of CPU and memory is in use more than the other
	percentile  = 0.95 // of the time, that a new limit would do for
	informative = 0.5  // share of the time at which a figure must be known to conclude from it
)

// Advice is what could be set better, and why, with its numbers.
type Advice struct {
	Rule string `json:"rule"` // a word for programs
	Text string `json:"text"`
}

// advise asks every rule.
func (r *Report) advise(h *History) {
	if r.KnownHours < leastHours {
		r.AdviceMissing = fmt.Sprintf("%.1f h are known, and advice takes %d", r.KnownHours, leastHours)
		return
	}
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
			r.Advice = append(r.Advice, Advice{Rule: rule.name, Text: text})
		}
	}
}

func raiseMaximum(r *Report, h *History) string {
	share := r.AtMaximumHours / r.KnownHours
	if share <= often {
		return ""
	}
	var asked []int
	for i := range h.Moments {
		asked = append(asked, h.Moments[i].Recommended)
	}
	most := quantile(asked)
	if most <= r.Max {
		return ""
	}
	return fmt.Sprintf("raise spec.max, which is %d: %s of the time (%.0f h) more were recommended; %d would have been enough for %s of it",
		r.Max, percent(share), r.AtMaximumHours, most, percent(percentile))
}

func lowerMinimum(r *Report, h *History) string {
	var voted []int
	atMinimum := 0.0
	for i := range h.Moments {
		m := &h.Moments[i]
		if m.BySignals == nil {
			continue
		}
		// Pods that are pending ask too, for a node more than there are: as many as there are is the least they need.
		need := *m.BySignals
		if m.Pending == nil || *m.Pending > 0 {
			need = max(need, m.Workers())
		}
		voted = append(voted, need)
		if m.Workers() <= r.Min {
			atMinimum += h.Step.Hours()
		}
	}
	if float64(len(voted)) < informative*float64(len(h.Moments)) {
		return ""
	}
	enough := quantile(voted)
	if enough >= r.Min || atMinimum <= often*r.KnownHours {
		return ""
	}
	return fmt.Sprintf("lower spec.min, which is %d, unless it is there for other reasons than load: for %s of the time signals and pending pods needed no more than %d; "+
		"it would save up to %.0f worker hours in as much time", r.Min, percent(percentile), enough, atMinimum*float64(r.Min-enough))
}

// slow are what holds launches back that are asked for, and what to do about it.
var slow = []hindrance{
	{"CoolingDown", "shorten cooldown.up"},
	{"ActionOpen", "raise maxBatchUp: launches wait for those before them"},
	{"InsufficientCapacity", "give more instance types or subnets: placements were cooling after errors"},
	{"OffersUnknown", "look at Healthy in foresail explain workerpool: what can be launched was not known"},
	{"BackingOff", "look at why launches fail: see foresail explain workerpool"},
}

func growFaster(r *Report, h *History) string {
	late, most := 0, 0
	for i := range h.Moments {
		if lack := h.Moments[i].Needed() - h.Moments[i].Workers(); lack > 0 {
			late++
			most = max(most, lack)
		}
	}
	hours := float64(late) * h.Step.Hours()
	if hours <= often*r.KnownHours {
		return ""
	}
	return fmt.Sprintf("%s: %s of the time (%.0f h) there were fewer workers than desired, up to %d fewer%s",
		remedy(h, slow, "raise maxBatchUp or shorten cooldown.up"), percent(hours/r.KnownHours), hours, most, told(h, slow))
}

// sticky are what keeps workers that nobody asks for.
var sticky = []hindrance{
	{"NotIdle", "shorten idle.for, or raise idle.cpu and idle.memory"},
	{"CoolingDown", "shorten cooldown.down or raise maxBatchDown"},
	{"NoRemovableNode", "look at what blocks nodes: see foresail explain workerpool"},
	{"BlockedByPendingPods", "look at pods that stay pending"},
	{"MetricsUnknown", "look at signals that are not known"},
	{"TooManyUnready", "look at workers that are not Ready"},
	{"LoadAfterRemoval", "lower forecast.scaleDownMargin, or use smaller instance types"},
}

func shrinkSooner(r *Report, h *History) string {
	if r.WorkerHours == 0 || r.IdleHours <= muchIdle*r.WorkerHours {
		return ""
	}
	return fmt.Sprintf("%s: %s of the worker hours (%.0f of %.0f) were beyond the desired count%s",
		remedy(h, sticky, "shorten idle.for and cooldown.down, or use smaller instance types"),
		percent(r.IdleHours/r.WorkerHours), r.IdleHours, r.WorkerHours, told(h, sticky))
}

// hindrance is a reason of decisions with what helps against it.
type hindrance struct{ reason, remedy string }

// commonest returns the hindrance that decided most often, nil if none ever did.
func commonest(h *History, of []hindrance) *hindrance {
	var out *hindrance
	for i := range of {
		n := h.Decisions[of[i].reason]
		if n > 0 && (out == nil || n > h.Decisions[out.reason]) {
			out = &of[i]
		}
	}
	return out
}

func remedy(h *History, of []hindrance, otherwise string) string {
	if m := commonest(h, of); m != nil {
		return m.remedy
	}
	return otherwise
}

// told names the hindrance with its share of all decisions.
func told(h *History, of []hindrance) string {
	m := commonest(h, of)
	if m == nil {
		return ""
	}
	all := 0.0
	for _, n := range h.Decisions {
		all += n
	}
	return fmt.Sprintf("; the most frequent cause was %s, %s of all decisions", m.reason, percent(h.Decisions[m.reason]/all))
}

// changeInstanceType compares the shares of CPU and memory in use, or requested where that is all that is known.
func changeInstanceType(_ *Report, h *History) string {
	for _, names := range [][2]string{{"cpu", "memory"}, {"requests/cpu", "requests/memory"}} {
		cpu, n := mean(h, names[0])
		memory, m := mean(h, names[1])
		if least := informative * float64(len(h.Moments)); float64(n) < least || float64(m) < least {
			continue
		}
		switch {
		case cpu > 0 && cpu >= lopsided*memory:
			return fmt.Sprintf("use instance types with less memory for each CPU: on average %s is %s and %s is %s", names[0], percent(cpu), names[1], percent(memory))
		case memory > 0 && memory >= lopsided*cpu:
			return fmt.Sprintf("use instance types with more memory for each CPU: on average %s is %s and %s is %s", names[1], percent(memory), names[0], percent(cpu))
		}
		return ""
	}
	return ""
}

// mean is that of the load by a signal, and how many moments have it.
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
	if r.SpotShare == nil || r.SpotTarget == nil || *r.SpotTarget-*r.SpotShare <= often {
		return ""
	}
	why := "no launch failed: workers that are On-Demand stay so until they are removed"
	if failed := h.Events["LaunchFailed"]; failed > 0 {
		why = fmt.Sprintf("%.0f launches failed: give more instance types and subnets, or raise market.maxPrice", failed)
	}
	if taken := h.Events["Interrupted"]; taken > 0 {
		why += fmt.Sprintf("; %.0f instances were reclaimed", taken)
	}
	return fmt.Sprintf("%s of the worker hours were Spot, and the market policy aims at %s; %s", percent(*r.SpotShare), percent(*r.SpotTarget), why)
}

// quantile is what is enough for 95% of the numbers, of which there must be one. It changes their order.
func quantile(x []int) int {
	slices.Sort(x)
	return x[max(0, int(math.Ceil(percentile*float64(len(x))))-1)]
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }
