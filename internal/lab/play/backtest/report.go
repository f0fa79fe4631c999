package backtest

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/foresail/foresail/internal/lab/report/chart"
	"github.com/foresail/foresail/internal/lab/report/page"
	"github.com/foresail/foresail/internal/lab/scaler"
)

//go:embed report.html
var reportText string

var reportPage = page.New(reportText, template.FuncMap{
	"percent": func(share float64) string { return decimals(100*share, 2) + "%" },
	"title":   scaler.Title,
})

// WriteReport writes one page of HTML that needs nothing else.
func (r *Result) WriteReport(w io.Writer) error {
	data := struct {
		*Result
		Assumptions                       []string
		Keys                              []page.Key
		Scalers, Trades, Forecasts        *page.Table
		FrontierChart, TimelineChart      *chart.Page
		AboveMaximum                      bool
		Bounds                            []string
		FrontierHours, TunedPercent, Work string
	}{
		Result: r, Assumptions: r.assumptions(), Keys: r.keys(), Scalers: r.scalers(), Forecasts: r.forecasts(),
		AboveMaximum:  slices.ContainsFunc(r.Summary, func(row Row) bool { return row.AtMaximumMinutes > 0 }),
		Bounds:        r.bounds(),
		FrontierHours: decimals(r.FrontierHours, 1), TunedPercent: decimals(100*tunedShare, 0), Work: strings.TrimSuffix(decimals(r.Options.Capacity, 2), ".00"),
	}
	if len(r.Frontier) > 0 {
		frontier, timeline := r.frontierChart(), r.timelineChart()
		data.FrontierChart, data.TimelineChart = &frontier, &timeline
	}
	if r.Advice != nil {
		data.Trades = tableOf(r.Advice.trades())
	}
	return page.Write(w, reportPage, data)
}

// tableOf returns a table of rows, the first of which is its head; nil without rows.
func tableOf(rows [][]string) *page.Table {
	if rows == nil {
		return nil
	}
	t := &page.Table{Head: rows[0]}
	for _, row := range rows[1:] {
		t.Rows = append(t.Rows, page.Row{Cells: cells(row...)})
	}
	return t
}

func cells(texts ...string) (out []page.Cell) {
	for _, text := range texts {
		out = append(out, page.Cell{Text: text})
	}
	return out
}

// keys returns the figures that the page begins with.
func (r *Result) keys() (out []page.Key) {
	a, hasOurs := r.row(ours)
	b, hasRival := r.row(rival)
	if !hasOurs || !hasRival {
		return nil
	}
	add := func(name string, text func(Row) string) {
		out = append(out, page.Key{Name: name + " with " + scaler.Title(ours), Value: text(a), Against: "an HPA: " + text(b)})
	}
	add("Above the threshold", func(row Row) string { return decimals(row.AboveThresholdMinutes, 1) + " min" })
	add("Pod-hours", func(row Row) string { return decimals(row.PodHours, 1) })
	if p := r.Options.Prices; p != nil {
		add("Cost", func(row Row) string { return p.Text(row.Bill(p)) })
	}
	return out
}

// bounds returns a sentence for each scaler that knows more than a real one can.
func (r *Result) bounds() (out []string) {
	for _, row := range r.Summary {
		switch row.Scaler {
		case "clairvoyant":
			out = append(out, "The best possible is a bound: it knows the future, and no autoscaler reaches it.")
		case "instant", "instant/hpa-defaults":
			out = append(out, fmt.Sprintf("What %s is a bound as well: it reads that without error or delay.", scaler.Title(row.Scaler)))
		}
	}
	return out
}

// scalers returns the table of what each scaler would have done.
func (r *Result) scalers() *page.Table {
	t, columns := &page.Table{Head: []string{""}}, r.columns()
	for _, c := range columns {
		t.Head = append(t.Head, c.name)
	}
	for _, row := range r.Summary {
		texts := []string{scaler.Title(row.Scaler)}
		for _, c := range columns {
			texts = append(texts, c.of(row))
		}
		t.Rows = append(t.Rows, page.Row{Cells: cells(texts...), Marked: isOurs(row.Scaler)})
	}
	return t
}

// forecasts returns the table of ways to forecast, nil if nothing was forecast.
func (r *Result) forecasts() *page.Table {
	all := r.Forecasts()
	if len(all) == 0 {
		return nil
	}
	t := &page.Table{Head: []string{
		"way to forecast", "seconds ahead", "error, pods", "against assuming that the load stays", "the same, without chance", "Foresail's error against this one's",
		"too few pods ordered, of the time", "the same, after six hours",
	}}
	share := func(v float64) string { return decimals(100*v, 2) + strings.Repeat("%", min(1, len(decimals(v, 2)))) }
	for _, f := range all {
		name := f.Name
		if title := scaler.Title(name); title != "" {
			name = title
		}
		t.Rows = append(t.Rows, page.Row{Marked: isOurs(f.Name), Cells: cells(name, decimals(f.Horizon.Seconds(), 0), decimals(f.Error.Second, 3),
			orUnknown(decimals(f.Scaled.Second, 2)), orUnknown(decimals(f.Scaled.Rate, 2)), orUnknown(decimals(f.Ours.Rate, 2)),
			orUnknown(share(f.Late)), orUnknown(share(f.LateLearned)))})
	}
	return t
}

// WriteSummary writes a line for each scaler, as summary.csv has it.
func (r *Result) WriteSummary(w io.Writer) error {
	rows := [][]string{{
		"trace", "scaler", "above_threshold_minutes", "saturated_minutes", "pod_hours", "under_s", "over_s", "actions", "reversals", "mase",
		"momentary_minutes", "sudden_minutes",
	}}
	for _, row := range r.Summary {
		rows = append(rows, []string{
			r.Options.Trace.Name, row.Scaler, decimals(row.AboveThresholdMinutes, 2), decimals(row.SaturatedMinutes, 2), decimals(row.PodHours, 2),
			decimals(row.UnderSeconds, 1), decimals(row.OverSeconds, 1), decimals(row.Actions, 1), decimals(row.Reversals, 1),
			decimals(row.Forecast.MASE(), 3), decimals(row.Abrupt.MomentaryMinutes, 2), decimals(row.Abrupt.SuddenMinutes, 2),
		})
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// WriteFrontier writes frontier.csv: a line for each scaler and target. One column interpolates how long the rival
// would be above the threshold for the same pods; it is empty beyond the targets that were tried.
func (r *Result) WriteFrontier(w io.Writer) error {
	rows := [][]string{{"trace", "scaler", "target", "hours", "above_threshold_minutes", "saturated_minutes", "pod_hours", rival + "_minutes_at_same_pods",
		"momentary_minutes", "sudden_minutes"}}
	for _, row := range r.Frontier {
		same, ok := r.read(rival, row.Pods(), Figures.Pods, func(f Figures) float64 { return f.AboveThresholdMinutes })
		if !ok || row.Scaler == rival {
			same = math.NaN()
		}
		rows = append(rows, []string{
			r.Options.Trace.Name, row.Scaler, decimals(row.Target, 3), decimals(row.Hours, 2),
			decimals(row.AboveThresholdMinutes, 2), decimals(row.SaturatedMinutes, 2), decimals(row.PodHours, 2), decimals(same, 2),
			decimals(row.Abrupt.MomentaryMinutes, 2), decimals(row.Abrupt.SuddenMinutes, 2),
		})
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// WriteForecasts writes a line for each way to forecast, as forecast.csv has it.
func (r *Result) WriteForecasts(w io.Writer) error {
	rows := [][]string{{
		"trace", "forecast", "horizon_s", "mean_error_pods", "mase", "mean_error_of_rate_pods", "mase_of_rate", "foresail_by_it", "foresail_by_it_of_rate",
		"late_share", "late_share_after_6h", "pinball_pods",
	}}
	for _, f := range r.Forecasts() {
		rows = append(rows, []string{
			r.Options.Trace.Name, f.Name, decimals(f.Horizon.Seconds(), 1), decimals(f.Error.Second, 4), decimals(f.Scaled.Second, 3),
			decimals(f.Error.Rate, 4), decimals(f.Scaled.Rate, 3), decimals(f.Ours.Second, 3), decimals(f.Ours.Rate, 3),
			decimals(f.Late, 4), decimals(f.LateLearned, 4), decimals(f.Pinball, 5),
		})
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// decimals writes a number with so many decimals, and nothing for what is not known.
func decimals(v float64, n int) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', n, 64)
}

// ReportFile is the name of the report.
const ReportFile = "report.html"

// WriteFiles writes tables, charts and the report to a directory, which is made if missing. The options must have had
// targets.
func (r *Result) WriteFiles(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	type file struct {
		name  string
		write func(io.Writer) error
	}
	files := []file{
		{"summary.csv", r.WriteSummary},
		{"forecast.csv", r.WriteForecasts},
		{ReportFile, r.WriteReport},
	}
	if len(r.Frontier) > 0 {
		frontier, timeline := r.frontierChart(), r.timelineChart()
		files = append(files, file{"frontier.csv", r.WriteFrontier}, file{"frontier.svg", frontier.WriteSVG}, file{"frontier.png", frontier.WritePNG},
			file{"timeline.svg", timeline.WriteSVG}, file{"timeline.png", timeline.WritePNG})
	}
	if r.Advice != nil && r.Advice.Holds() {
		files = append(files, file{AdviceFile, func(w io.Writer) error {
			_, err := io.WriteString(w, r.Advice.YAML())
			return err
		}})
	}
	for _, f := range files {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f.name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
