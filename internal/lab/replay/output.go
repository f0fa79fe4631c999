package replay

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// Format names a way to write results.
type Format string

// The formats there are.
const (
	JSON  Format = "json"  // one object a line, numbers in full
	Table Format = "table" // columns for people, numbers rounded
)

// Formats lists the formats there are.
func Formats() []Format { return []Format{JSON, Table} }

// Writer writes results one at a time, so that a long replay is never held in memory.
type Writer struct {
	out   *bufio.Writer
	write func(Result) error
}

// NewWriter returns a writer of the format. Flush must be called after the last result.
func NewWriter(w io.Writer, f Format) (*Writer, error) {
	out := &Writer{out: bufio.NewWriterSize(w, 64<<10)}
	switch f {
	case JSON:
		encoder := json.NewEncoder(out.out)
		encoder.SetEscapeHTML(false)
		out.write = func(r Result) error { return encoder.Encode(record(r)) }
	case Table:
		out.write = out.row
		if err := out.header(); err != nil {
			return nil, err
		}
	default:
		return nil, &pipeline.FieldError{Field: "output", Value: fmt.Sprintf("%q", string(f)),
			Accept: fmt.Sprintf("one of %v", Formats())}
	}
	return out, nil
}

// Write writes one result.
func (w *Writer) Write(r Result) error { return w.write(r) }

// Flush hands on what is still held back.
func (w *Writer) Flush() error { return w.out.Flush() }

// forecastRecord is a result as JSON. Its fields are part of the command's interface.
type forecastRecord struct {
	Now                int64              `json:"now"`
	Tick               int64              `json:"tick"`
	Level              float64            `json:"level"`
	Trend              float64            `json:"trend"`
	HorizonMs          float64            `json:"horizonMs"`
	Forecast           float64            `json:"forecast"`
	Damped             float64            `json:"damped"`
	ContributionWeight float64            `json:"contributionWeight"`
	Active             int                `json:"active"`
	LoadNow            float64            `json:"loadNow"`
	LoadPredicted      float64            `json:"loadPredicted"`
	Direction          pipeline.Direction `json:"direction"`
	Desired            int                `json:"desired"`
	Action             pipeline.Action    `json:"action"`
}

// errorRecord stands for a run without a forecast.
type errorRecord struct {
	Now   int64  `json:"now"`
	Error string `json:"error"`
}

func record(r Result) any {
	if r.Err != nil {
		return errorRecord{Now: r.Now, Error: r.Err.Error()}
	}
	f := r.Forecast
	return forecastRecord{
		Now: r.Now, Tick: f.Tick,
		Level: f.Level, Trend: f.Trend, HorizonMs: float64(f.Horizon) / float64(time.Millisecond), Forecast: f.Total,
		Damped:             f.PlannedLoad,
		ContributionWeight: f.Weight, Active: f.Active, LoadNow: f.LoadNow, LoadPredicted: f.LoadPredicted,
		Direction: r.Decision.Direction, Desired: r.Decision.Desired, Action: r.Decision.Action,
	}
}

// column is one column of the table; cells wider than it push the rest to the right.
type column struct {
	title string
	width int // negative: aligned to the left
	cell  func(Result) any
}

// columns name what JSON calls forecast, damped, contributionWeight, loadNow and loadPredicted by
// what they are of.
var columns = []column{
	{"NOW", 13, func(r Result) any { return r.Now }},
	{"TICK", 13, func(r Result) any { return r.Forecast.Tick }},
	{"LEVEL", 9, func(r Result) any { return rounded(r.Forecast.Level) }},
	{"TREND", 9, func(r Result) any { return rounded(r.Forecast.Trend) }},
	{"HORIZON", 8, func(r Result) any { return r.Forecast.Horizon }},
	{"FORECAST", 9, func(r Result) any { return rounded(r.Forecast.Total) }},
	{"DAMPED", 9, func(r Result) any { return rounded(r.Forecast.PlannedLoad) }},
	{"WEIGHT", 7, func(r Result) any { return fmt.Sprintf("%.2f", r.Forecast.Weight) }},
	{"ACTIVE", 6, func(r Result) any { return r.Forecast.Active }},
	{"TARGET", 6, func(r Result) any { return r.Forecast.Target }},
	{"LOAD", 8, func(r Result) any { return rounded(r.Forecast.LoadNow) }},
	{"PREDICTED", 9, func(r Result) any { return rounded(r.Forecast.LoadPredicted) }},
	{"DIRECTION", -9, func(r Result) any { return r.Decision.Direction }},
	{"DESIRED", 7, func(r Result) any { return r.Decision.Desired }},
	{"ACTION", -9, func(r Result) any { return r.Decision.Action }},
	{"REASON", -1, func(r Result) any { return r.Decision.Reason }},
}

func rounded(x float64) string { return fmt.Sprintf("%.4f", x) }

func (w *Writer) header() error {
	return w.line(slices.Collect(func(yield func(any) bool) {
		for _, c := range columns {
			if !yield(c.title) {
				return
			}
		}
	}))
}

func (w *Writer) row(r Result) error {
	if r.Err != nil {
		_, err := fmt.Fprintf(w.out, "%*d  error: %v\n", columns[0].width, r.Now, r.Err)
		return err
	}
	cells := make([]any, len(columns))
	for i, c := range columns {
		cells[i] = c.cell(r)
	}
	return w.line(cells)
}

func (w *Writer) line(cells []any) error {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprintf("%*v", columns[i].width, cell)
	}
	_, err := fmt.Fprintln(w.out, strings.Join(texts, "  "))
	return err
}
