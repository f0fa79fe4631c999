package plan

import (
	"fmt"
	"strings"
	"time"
)

// idleness is what is known of a pool that may have too many workers.
type idleness struct {
	unknown string // what is not known that would have to be; "" = nothing
	busy    string // why it is not idle; "" = it is, if nothing is unknown
}

func (i idleness) holds() bool { return i.unknown == "" && i.busy == "" }

// idleness looks at the pool at this moment. It is idle if every signal is known, no pod is unschedulable, the mean use of
// CPU and memory is below what the pool says (seeds 000, 001 and 002), and every signal is below its own Down.
func (v *view) idleness() idleness {
	if u := append(v.unknown(), v.untold()...); len(u) > 0 {
		return idleness{unknown: strings.Join(u, ", ")}
	}
	if v.Pending.any() {
		return idleness{busy: count(v.Pending.Pods, "pod") + " unschedulable"}
	}
	for _, s := range v.Signals {
		// Written so that what is not a number is busy.
		switch {
		case s.CPU && v.Pool.Idle.CPU < 1 && !(s.Now < v.Pool.Idle.CPU):
			return idleness{busy: fmt.Sprintf("%.4g%% of the CPU is in use, which is not below %.4g%%", 100*s.Now, 100*v.Pool.Idle.CPU)}
		case s.Memory && v.Pool.Idle.Memory < 1 && !(s.Now < v.Pool.Idle.Memory):
			return idleness{busy: fmt.Sprintf("%.4g%% of the memory is in use, which is not below %.4g%%", 100*s.Now, 100*v.Pool.Idle.Memory)}
		case s.Down > 0 && !(s.Now < s.Down):
			return idleness{busy: fmt.Sprintf("%s is %.4g, which is not below %.4g", s.Name, s.Now, s.Down)}
		}
	}
	return idleness{}
}

// unknown tells what every removal needs to know and is not known: pods and all signals.
func (v *view) unknown() []string {
	var out []string
	if !v.Pending.Known {
		out = append(out, "unschedulable pods")
	}
	for _, s := range v.Signals {
		switch {
		case !s.Known:
			out = append(out, fmt.Sprintf("%s (%s)", s.Name, s.Err))
		case s.Silent != "":
			out = append(out, fmt.Sprintf("%s of all workers (%s)", s.Name, s.Silent))
		}
	}
	return out
}

// untold tells what idleness is asked of and no signal tells.
func (v *view) untold() []string {
	cpu, memory := v.Pool.Idle.CPU >= 1, v.Pool.Idle.Memory >= 1
	for _, s := range v.Signals {
		cpu, memory = cpu || s.CPU, memory || s.Memory
	}
	var out []string
	if !cpu {
		out = append(out, "the use of CPU, which no signal tells")
	}
	if !memory {
		out = append(out, "the use of memory, which no signal tells")
	}
	return out
}

// idleSince is since when the pool has been idle without a gap, zero if it is not. While something is not known it is not
// idle, and begins anew.
func (v *view) idleSince() time.Time { return v.lasting(v.State.IdleSince, v.idle.holds()) }
