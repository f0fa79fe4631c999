package plan

import (
	"fmt"
	"slices"
	"strings"
)

// idleness is the result of the check whether a pool may have too many workers.
type idleness struct {
	unknown string // inputs that are needed and unknown; "" = none
	busy    string // why the pool is not idle; "" = it is, if nothing is unknown
}

func (i idleness) holds() bool { return i.unknown == "" && i.busy == "" }

// idlenessOf evaluates the pool as it is now. It is idle if every signal is known, no pod is
// unschedulable, the mean use of CPU and memory is below the limits of the pool, and every signal
// is below its own Down.
func idlenessOf(c *census) idleness {
	if u := append(slices.Clip(c.unknown), unmeasured(c)...); len(u) > 0 {
		return idleness{unknown: strings.Join(u, ", ")}
	}
	if c.Pending.any() {
		return idleness{busy: count(c.Pending.Pods, "pod") + " unschedulable"}
	}
	for _, s := range c.Signals {
		// Negated comparisons, so that NaN counts as busy.
		switch {
		case s.CPU && c.Pool.Idle.CPU < 1 && !(s.Now < c.Pool.Idle.CPU):
			return busy("%.4g%% of the CPU is in use, which is not below %.4g%%", 100*s.Now, 100*c.Pool.Idle.CPU)
		case s.Memory && c.Pool.Idle.Memory < 1 && !(s.Now < c.Pool.Idle.Memory):
			return busy("%.4g%% of the memory is in use, which is not below %.4g%%", 100*s.Now, 100*c.Pool.Idle.Memory)
		case s.Down > 0 && !(s.Now < s.Down):
			return busy("%s is %.4g, which is not below %.4g", s.Name, s.Now, s.Down)
		}
	}
	return idleness{}
}

func busy(format string, args ...any) idleness { return idleness{busy: fmt.Sprintf(format, args...)} }

// unmeasured returns the resources whose use idleness depends on and that no signal measures.
func unmeasured(c *census) []string {
	cpu, memory := c.Pool.Idle.CPU >= 1, c.Pool.Idle.Memory >= 1
	for _, s := range c.Signals {
		cpu, memory = cpu || s.CPU, memory || s.Memory
	}
	var out []string
	if !cpu {
		out = append(out, "the use of CPU, which no signal measures")
	}
	if !memory {
		out = append(out, "the use of memory, which no signal measures")
	}
	return out
}
