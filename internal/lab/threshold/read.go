package threshold

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/internal/promapi"
)

// Header is that of a file of measurements.
var Header = []string{"unix_seconds", "load", "latency_seconds"}

// mostLines of a file are read.
const mostLines = 1_000_000

// ReadCSV reads measurements. Errors name the line.
func ReadCSV(in io.Reader) ([]Measurement, error) {
	rows := csv.NewReader(in)
	rows.ReuseRecord, rows.TrimLeadingSpace, rows.FieldsPerRecord = true, true, len(Header)
	header, err := rows.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err // of encoding/csv, with the line
	}
	if !slices.Equal(header, Header) {
		return nil, fmt.Errorf("line 1: %q: must be the header unix_seconds,load,latency_seconds", header)
	}
	var out []Measurement
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := rows.FieldPos(0)
		if len(out) == mostLines {
			return nil, fmt.Errorf("line %d: there must be at most %d measurements", line, mostLines)
		}
		var values [3]float64
		for i, text := range row {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
				return nil, fmt.Errorf("line %d: %s: %q: must be a number, finite, 0 or more", line, Header[i], text)
			}
			values[i] = v
		}
		out = append(out, Measurement{time.UnixMilli(int64(values[0] * 1000)), values[1], values[2]})
	}
}

// queryTimeout is that of one query.
const queryTimeout = time.Minute

// Source is a Prometheus server that has measurements.
type Source struct {
	API     v1.API
	Address string // for errors
}

// ReadPrometheus reads measurements of some time up to another: the mean of the series of one query
// is the load of a pod, the only series of another is the latency (s). Times that lack one of them
// are left out.
func (s *Source) ReadPrometheus(ctx context.Context, load, latency string, to time.Time, since,
	step time.Duration) ([]Measurement, error) {
	loads, err := s.read(ctx, "--load", load, to, since, step)
	if err != nil {
		return nil, err
	}
	latencies, err := s.read(ctx, "--latency", latency, to, since, step)
	if err != nil {
		return nil, err
	}
	var out []Measurement
	for t, l := range loads {
		m := Measurement{t.Time(), mean(l), mean(latencies[t])}
		if len(latencies[t]) > 1 {
			return nil, promapi.Fail(promapi.Content,
				"%s: --latency: query %.200q returns several series: it must return one, such as histogram_quantile(0.99, sum by (le) (…))",
				s.Address, latency)
		}
		if !math.IsNaN(m.Load+m.Latency) && !math.IsInf(m.Load+m.Latency, 0) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b Measurement) int { return a.At.Compare(b.At) })
	return out, nil
}

// mean is NaN of none.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// read returns the values of all series of a query by time.
func (s *Source) read(ctx context.Context, flag, query string, to time.Time, since,
	step time.Duration) (map[model.Time][]float64, error) {
	asked := promapi.Question{Address: s.Address + ": " + flag, Query: query,
		Accepted: "must be PromQL that returns series", Timeout: queryTimeout}
	values := map[model.Time][]float64{}
	to = to.Truncate(step)
	span := v1.Range{Start: to.Add(-since.Truncate(step)), End: to, Step: step}
	err := asked.RangeInParts(ctx, s.API, span, func(matrix model.Matrix) error {
		for _, series := range matrix {
			if len(series.Histograms) > 0 {
				return promapi.Fail(promapi.Content,
					"%s: query %.200q returns histograms: it must return numbers, such as histogram_quantile(0.99, …)", asked.Address, query)
			}
			for _, v := range series.Values {
				if !math.IsNaN(float64(v.Value)) {
					values[v.Timestamp] = append(values[v.Timestamp], float64(v.Value))
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return nil, promapi.Fail(promapi.Content,
			"%s: query %.200q returns nothing in the %s before %s: check it in the server's own page",
			asked.Address, query, model.Duration(since), to.UTC().Format(time.RFC3339))
	}
	return values, nil
}
