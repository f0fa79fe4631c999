package backtest

import (
	"time"

	"github.com/foresail/foresail/internal/lab"
)

const (
	// longestSection bounds the memory of a run, and is short enough for several to be played at once.
	longestSection = 6 * time.Hour
	// lead is longer than a scaler looks back, so that it does not matter where a section begins.
	lead = 10 * time.Minute
)

// section is a part of a trace, from and to in ms.
type section struct{ from, to int64 }

// sections cuts what is between two times into parts that are about as long as each other.
func sections(from, to int64) []section {
	n := max(1, (to-from+longestSection.Milliseconds()-1)/longestSection.Milliseconds())
	out := make([]section, 0, n)
	for i := range n {
		begin, end := from+(to-from)*i/n, from+(to-from)*(i+1)/n
		out = append(out, section{begin / 1000 * 1000, end / 1000 * 1000})
	}
	return out
}

// spread takes sections evenly out of all, so many that they last about as long as the budget.
func spread(all []section, budget time.Duration) []section {
	total := length(all)
	n := max(1, int(float64(len(all))*min(1, float64(budget)/float64(total))))
	if n >= len(all) {
		return all
	}
	out := make([]section, 0, n)
	for i := range n {
		out = append(out, all[(2*i+1)*len(all)/(2*n)])
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

type shifted struct {
	lab.Load
	by int64
}

// Rate implements lab.Load.
func (l shifted) Rate(t int64) float64 { return l.Load.Rate(t + l.by) }
