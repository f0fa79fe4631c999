package threshold

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/internal/lab/report"
)

// Quantity is the threshold to use, as a PredictedMetric has it; "" without one.
func (a *Answer) Quantity() string {
	if math.IsNaN(a.Rounded()) {
		return ""
	}
	return resource.NewMilliQuantity(int64(math.Round(a.Rounded()*1000)), resource.DecimalSI).String()
}

// Verdict says what to do, in sentences.
func (a *Answer) Verdict(q *Question) string {
	limit := seconds(q.Limit)
	switch a.Outcome {
	case Found:
		return fmt.Sprintf("Up to a load of %s for each pod (90%% interval %s to %s) no more than %s of the measurements were above %s.\n"+
			"In %.0f of 100 pairs of a slow measurement and another the slow one had more load: the metric says well when pods are full.\n"+
			"With room for chance, the threshold is:\n\n  threshold: %s",
			number(a.Threshold), number(a.Low), number(a.High), percent(q.Share), limit, 100*a.ToldApart, a.Quantity())
	case NeverSlow:
		return fmt.Sprintf("The latency was above %s in %s, and the most load of a pod was %s: pods had too little to do to tell what is too much.\n"+
			"%s is safe as a threshold, and a higher one may be. Raise the load of one pod in steps until it is slow, and look again.",
			limit, cmp.Or(few[a.Slow], report.Count(a.Slow, "measurement")), number(a.Most), number(a.Most))
	case AlwaysSlow:
		return fmt.Sprintf("The latency is above %s in more than %s of the measurements at every load from %s on: more pods do not help against that.\n"+
			"Choose an --objective that pods with little to do meet, or find what makes them slow.", limit, percent(q.Share), number(a.Lowest))
	}
	return fmt.Sprintf("In only %.0f of 100 pairs of a measurement above %s and another the slow one had more load, and 50 would be chance: this metric does not say when pods are full.\n"+
		"Choose another metric (docs/metric.md says which), or find what else makes them slow.", 100*a.ToldApart, limit)
}

// few are counts in words.
var few = map[int]string{0: "no measurement", 1: "one measurement"}

// Report returns the measurements by load, and the verdict.
func (a *Answer) Report(q *Question) *report.Report {
	out := &report.Report{}
	out.Print(fmt.Sprintf("%d measurements, %d of them above %s", a.Measurements, a.Slow, seconds(q.Limit)), "")
	t := report.NewTable("LOAD", "MEASUREMENTS", "ABOVE", "MEDIAN", "P95")
	for _, r := range a.Rows {
		t.Add(number(r.From)+" to "+number(r.To), strconv.Itoa(r.Count), percent(float64(r.Slow)/float64(r.Count)),
			seconds(r.Median), seconds(r.P95))
	}
	out.PrintTable(t)
	out.Print("", a.Verdict(q))
	return out
}

// number has three digits.
func number(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 3, 64) + "%" }

// seconds has three digits.
func seconds(v float64) string {
	if v < 1 {
		return number(1000*v) + "ms"
	}
	return number(v) + "s"
}
