package snapshot

import (
	"cmp"
	"slices"

	"github.com/foresail/foresail/pipeline"
)

// Joint is what the PredictedMetrics of one target come to together: the largest count that any of them asks for. While
// one has no decision the target is not scaled down, for nobody knows what that one would ask for.
type Joint struct {
	Wanted   int
	DrivenBy string   // the name of the PredictedMetric that asks for it; of several the first by name
	Unknown  []string // the names of those without a decision, sorted
	Metrics  int      // how many there are
}

// Join joins the decisions of the PredictedMetrics of one target, in any order (paper, section 1.4). Without any
// decision Wanted is 0 and means nothing.
func Join(all []Snapshot) Joint {
	if len(all) > 1 {
		slices.SortFunc(all, func(a, b Snapshot) int { return cmp.Compare(a.Metric.Name, b.Metric.Name) })
	}
	j := Joint{Metrics: len(all)}
	known := make([]pipeline.Decision, 0, len(all))
	names := make([]string, 0, len(all))
	planned := 0
	for i := range all {
		if all[i].Undecided() {
			j.Unknown = append(j.Unknown, all[i].Metric.Name)
			continue
		}
		known, names = append(known, all[i].Decision), append(names, all[i].Metric.Name)
		planned = max(planned, all[i].Forecast.Target)
	}
	best := pipeline.Largest(known)
	if best < 0 {
		return j
	}
	j.Wanted, j.DrivenBy = known[best].Wanted, names[best]
	if len(j.Unknown) > 0 && j.Wanted < planned {
		j.Wanted, j.DrivenBy = planned, j.Unknown[0]
	}
	return j
}
