package threshold

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/api/resource"
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
			limit, times(a.Slow), number(a.Most), number(a.Most))
	case AlwaysSlow:
		return fmt.Sprintf("The latency is above %s in more than %s of the measurements at every load from %s on: more pods do not help against that.\n"+
			"Choose an --objective that pods with little to do meet, or find what makes them slow.", limit, percent(q.Share), number(a.Lowest))
	}
	return fmt.Sprintf("In only %.0f of 100 pairs of a measurement above %s and another the slow one had more load, and 50 would be chance: this metric does not say when pods are full.\n"+
		"Choose another metric (docs/metric.md says which), or find what else makes them slow.", 100*a.ToldApart, limit)
}

// WriteText writes the measurements by load, and the verdict.
func (a *Answer) WriteText(w io.Writer, q *Question) error {
	if _, err := fmt.Fprintf(w, "%d measurements, %d of them above %s\n\n", a.Measurements, a.Slow, seconds(q.Limit)); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(t, "LOAD\tMEASUREMENTS\tABOVE\tMEDIAN\tP95"); err != nil {
		return err
	}
	for _, r := range a.Rows {
		if _, err := fmt.Fprintf(t, "%s to %s\t%d\t%s\t%s\t%s\n", number(r.From), number(r.To), r.Count,
			percent(float64(r.Slow)/float64(r.Count)), seconds(r.Median), seconds(r.P95)); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", a.Verdict(q))
	return err
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

func times(n int) string {
	switch n {
	case 0:
		return "no measurement"
	case 1:
		return "one measurement"
	}
	return fmt.Sprintf("%d measurements", n)
}
