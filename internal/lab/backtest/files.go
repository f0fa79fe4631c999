package backtest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
)

// ReportFile is the name of the report.
const ReportFile = "report.html"

// WriteFiles writes tables, charts and the report to a directory, which is made if missing. The options must have had
// targets.
func (r *Result) WriteFiles(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"summary.csv", r.WriteSummary},
		{"forecast.csv", r.WriteForecasts},
		{"frontier.csv", r.WriteFrontier},
		{"frontier.svg", r.frontierChart().WriteSVG},
		{"frontier.png", r.frontierChart().WritePNG},
		{"timeline.svg", r.timelineChart().WriteSVG},
		{"timeline.png", r.timelineChart().WritePNG},
		{ReportFile, r.WriteReport},
	} {
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
