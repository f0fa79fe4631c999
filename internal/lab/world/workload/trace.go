package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/foresail/foresail/internal/lab"
)

// TraceHelp describes the format of a trace.
const TraceHelp = `CSV with the header "unix_seconds,requests_per_second", or another name for the value, and a line for each time, in order`

// widestGap is how many usual steps two lines of a trace may be apart: what lies between is drawn
// as a straight line, and of a longer time nothing would be known.
const widestGap = 5

// Trace is a load that was recorded: straight from line to line, and level before the first.
// It begins at time 0, wherever it was in history.
type Trace struct {
	Name  string
	Start time.Time     // when its first line was
	Step  time.Duration // the usual time between two lines
	line  line
	gaps  []gap // of a recording, in order

	scaled bool
}

// gap is a time of which nothing is known, in ms.
type gap struct{ from, to int64 }

// Rate implements [lab.Load].
func (r *Trace) Rate(t int64) float64 { return r.line.Rate(t) }

// Length returns how long the trace is, from its first line to its last.
func (r *Trace) Length() time.Duration { return time.Duration(r.line.end()) * time.Millisecond }

// Largest returns the largest rate.
func (r *Trace) Largest() float64 {
	return slices.MaxFunc(r.line, func(a, b point) int {
		if a.rate < b.rate {
			return -1
		}
		return 1
	}).rate
}

// Counts reports whether rates are counts of seconds. Multiplied by a factor they would be parts of requests.
func (r *Trace) Counts() bool { return r.Step <= time.Second && !r.scaled }

// Scaled returns the trace with each rate multiplied by a factor, which must be finite and not negative.
func (r *Trace) Scaled(factor float64) *Trace {
	scaled := *r
	scaled.scaled = r.scaled || factor != 1
	scaled.line = slices.Clone(r.line)
	for i := range scaled.line {
		scaled.line[i].rate *= factor
	}
	return &scaled
}

// Profile returns the trace as a load to play, after a lead-in in which the load comes to what the
// trace begins with.
func (r *Trace) Profile() Profile {
	l := climb(r.line[0].rate)
	if first := r.line[0].rate; first < l[0].rate {
		l = start(first)
	}
	begin := l.end()
	for _, p := range r.line[1:] {
		l = append(l, point{begin + p.t, p.rate})
	}
	return Profile{Name: r.Name, Load: l, Span: lab.Span{
		Lead: time.Duration(begin) * time.Millisecond, Length: r.Length().Truncate(time.Second),
	}}
}

// ReadTrace reads a trace. Errors name the line: times that do not rise, rates that
// are negative or no numbers, and gaps, of which nothing is known.
func ReadTrace(name string, in io.Reader) (*Trace, error) {
	rows := csv.NewReader(in)
	rows.ReuseRecord, rows.TrimLeadingSpace, rows.FieldsPerRecord = true, true, 2
	if err := readHeader(rows); err != nil {
		return nil, err
	}
	r := &Trace{Name: name}
	var times []float64 // in unix seconds
	var lines []int     // where each was read
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err // of encoding/csv, with the line
		}
		n, _ := rows.FieldPos(0)
		at, rate, err := parseRow(row)
		if err == nil && len(times) > 0 && at <= times[len(times)-1] {
			err = fmt.Errorf("unix_seconds: %s: must be after that of the line before (%.15g)", row[0],
				times[len(times)-1])
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		times, lines = append(times, at), append(lines, n)
		r.line = append(r.line, point{int64(math.Round((at - times[0]) * 1000)), rate})
	}
	if len(times) < 2 {
		return nil, fmt.Errorf("%d lines after the header: must be at least 2", len(times))
	}
	r.Start = time.UnixMilli(int64(math.Round(times[0] * 1000))).UTC()
	r.Step = r.usualStep()
	return r, r.checkGaps(times, lines)
}

// Point is a rate at a time, in requests per second.
type Point struct {
	At   time.Time
	Rate float64 // finite, 0 or more
}

// NewTrace returns a trace of points, whose times must rise. It rejects too few of them, and gaps, of which
// nothing is known.
func NewTrace(name string, points []Point) (*Trace, error) {
	r, err := ofPoints(name, points)
	if err != nil {
		return nil, err
	}
	if i, gap := r.gap(); gap > 0 {
		return nil, fmt.Errorf("nothing is known between %s and %s: must be at most %s, %d times the usual step",
			points[i-1].At.UTC().Format(time.RFC3339), points[i].At.UTC().Format(time.RFC3339), widestGap*r.Step, widestGap)
	}
	return r, nil
}

// NewRecording is NewTrace but for gaps: nothing is known between two points that are further apart
// than widest. There the trace has a rate too, for a lead-in, but it must not be played.
func NewRecording(name string, points []Point, widest time.Duration) (*Trace, error) {
	r, err := ofPoints(name, points)
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(r.line); i++ {
		if from, to := r.line[i-1].t, r.line[i].t; to-from > widest.Milliseconds() {
			r.gaps = append(r.gaps, gap{from, to})
		}
	}
	return r, nil
}

func ofPoints(name string, points []Point) (*Trace, error) {
	if len(points) < 2 {
		return nil, fmt.Errorf("%d points: must be at least 2", len(points))
	}
	r := &Trace{Name: name, Start: points[0].At.UTC()}
	for _, p := range points {
		r.line = append(r.line, point{p.At.Sub(r.Start).Milliseconds(), p.Rate})
	}
	r.Step = r.usualStep()
	return r, nil
}

// Known reports whether the rate at a time is known: between the first line and the last, and in no gap.
func (r *Trace) Known(t int64) bool {
	if t < 0 || t > r.line.end() {
		return false
	}
	i := sort.Search(len(r.gaps), func(i int) bool { return r.gaps[i].to > t })
	return i == len(r.gaps) || t <= r.gaps[i].from
}

// TraceName is what the trace of a file is called: the file's name without folder and ending.
func TraceName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

func readHeader(rows *csv.Reader) error {
	header, err := rows.Read()
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("it is empty: must be %s", TraceHelp)
	case err != nil:
		return err
	case strings.TrimPrefix(header[0], "\ufeff") != "unix_seconds":
		return fmt.Errorf("line 1: %q: must be %s", strings.Join(header, ","), TraceHelp)
	}
	return nil
}

// year2100 ends the times of a trace, in Unix seconds. So a trace is shorter than a time.Duration can be, and milliseconds
// are not taken for seconds.
const year2100 = 4102444800

func parseRow(row []string) (at, rate float64, err error) {
	at, err = strconv.ParseFloat(strings.TrimSpace(row[0]), 64)
	if err != nil || !(at >= 0 && at < year2100) {
		return 0, 0, fmt.Errorf("unix_seconds: %q: must be seconds since 1970, before the year 2100", row[0])
	}
	rate, err = strconv.ParseFloat(strings.TrimSpace(row[1]), 64)
	if err != nil || !(rate >= 0 && rate <= 1e12) {
		return 0, 0, fmt.Errorf("value: %q: must be a number, 0 or more", row[1])
	}
	return at, rate, nil
}

// usualStep is the median of the steps.
func (r *Trace) usualStep() time.Duration {
	steps := make([]int64, len(r.line)-1)
	for i := range steps {
		steps[i] = r.line[i+1].t - r.line[i].t
	}
	slices.Sort(steps)
	return time.Duration(steps[len(steps)/2]) * time.Millisecond
}

func (r *Trace) checkGaps(times []float64, lines []int) error {
	i, gap := r.gap()
	if gap == 0 {
		return nil
	}
	return fmt.Errorf("line %d: unix_seconds: %.15g: is %s after the line before: must be at most %s, %d times the usual step; "+
		"add lines with 0 where nothing arrived, or cut the trace", lines[i], times[i], gap, widestGap*r.Step, widestGap)
}

// gap returns the first line that is too long after the one before, and how long; 0 if there is none.
func (r *Trace) gap() (i int, gap time.Duration) {
	for i := 1; i < len(r.line); i++ {
		if gap := time.Duration(r.line[i].t-r.line[i-1].t) * time.Millisecond; gap > widestGap*r.Step {
			return i, gap
		}
	}
	return 0, 0
}
