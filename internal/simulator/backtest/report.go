package backtest

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/foresail/foresail/internal/simulator/chart"
)

//go:embed report.html
var reportText string

// StyleSheet is that of pages with reports.
//
//go:embed style.css
var StyleSheet template.CSS

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"decimals": decimals,
	"known":    func(v float64, n int) string { return orUnknown(decimals(v, n)) },
	"percent":  func(share float64) string { return decimals(100*share, 2) + "%" },
	"isOurs":   isOurs,
	"style":    func() template.CSS { return StyleSheet },
}).Parse(reportText))

// WriteReport writes one page of HTML that needs nothing else.
func (r *Result) WriteReport(w io.Writer) error {
	page := struct {
		*Result
		Assumptions        []string
		Frontier, Timeline template.HTML
		Advice             []string
		Spec               string
		TunedPercent       float64
	}{Result: r, Assumptions: r.assumptions(), TunedPercent: 100 * tunedShare}
	var err error
	if len(r.Frontier) > 0 {
		if page.Frontier, err = Inline(r.frontierChart()); err != nil {
			return err
		}
	}
	if r.Timeline != nil {
		if page.Timeline, err = Inline(r.timelineChart()); err != nil {
			return err
		}
	}
	if r.Advice != nil {
		page.Advice, page.Spec = append([]string{r.Advice.Verdict()}, r.Advice.Reasons()...), r.Advice.YAML()
	}
	return reportTemplate.Execute(w, page)
}

// Inline draws a chart as a part of an HTML page.
func Inline(p chart.Page) (template.HTML, error) {
	var b bytes.Buffer
	if err := p.WriteSVG(&b); err != nil {
		return "", err
	}
	svg := b.String()
	svg = svg[strings.Index(svg, "<svg"):] // without the declaration, which only a document may have
	return template.HTML(svg), nil         // #nosec G203 -- drawn above, its texts escaped
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
