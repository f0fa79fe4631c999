package backtest

import (
	"time"

	"github.com/foresail/foresail/internal/lab"
)

const (
	// longestSection bounds the memory of a run, and is short enough for several to be played at once.
	longestSection = 6 * time.Hour
	// sampled is how long sections are of which some stand for all.
	sampled = time.Hour
	// lead is longer than a scaler looks back, so that it does not matter where a section begins.
	lead = 10 * time.Minute
)

// section is a part of a trace, from and to in ms.
type section struct{ from, to int64 }

// sections cuts a part of a trace into sections that are about as long as each other, and no longer than a limit but for a
// second.
func (s section) sections(longest time.Duration) []section {
	n := max(1, (s.to-s.from+longest.Milliseconds()-1)/longest.Milliseconds())
	out := make([]section, 0, n)
	for i := range n {
		begin, end := s.from+(s.to-s.from)*i/n, s.from+(s.to-s.from)*(i+1)/n
		out = append(out, section{begin / second * second, end / second * second})
	}
	return out
}

// sample takes short sections out of a part, about as many as the budget has time for: one of each stretch of the same
// length, which one is left to chance, lest it be the same hour of each day. All of a part is taken that is no longer.
func (s section) sample(budget time.Duration, seed uint64) []section {
	if time.Duration(s.to-s.from)*time.Millisecond <= budget {
		return s.sections(longestSection)
	}
	all := s.sections(sampled)
	n := max(1, int(budget/sampled))
	r := lab.Random(seed, "sections to play")
	out := make([]section, 0, n)
	for i := range n {
		begin, end := len(all)*i/n, len(all)*(i+1)/n
		out = append(out, all[begin+r.IntN(end-begin)])
	}
	return out
}

// length is how long sections last together.
func length(all []section) time.Duration {
	var total int64
	for _, s := range all {
		total += s.to - s.from
	}
	return time.Duration(total) * time.Millisecond
}

func (s section) span() lab.Span {
	return lab.Span{Lead: lead, Length: time.Duration(s.to-s.from) * time.Millisecond}
}

// load is the trace as it is in the section, which begins after the lead-in.
func (s section) load(trace lab.Load) lab.Load { return shifted{trace, s.from - lead.Milliseconds()} }

// counted is a load that was recorded as counts of seconds: what the trace has at the beginning of a second holds for all of it.
type counted struct{ lab.Load }

// Rate implements lab.Load.
func (c counted) Rate(t int64) float64 { return c.Load.Rate(t - (t%second+second)%second) }

type shifted struct {
	lab.Load
	by int64
}

// Rate implements lab.Load.
func (l shifted) Rate(t int64) float64 { return l.Load.Rate(t + l.by) }
