// Package nodequery queries Prometheus servers for a value of each node over a span of time.
package nodequery

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/pipeline"
)

// Question is an expression that a server evaluates over spans of time.
//
// Each sample has the time for which the server evaluated it. An expression that looks back shows
// an earlier time: rate(…[1m]) half a minute earlier on average. A series that ended without a
// stale marker goes on for as long as the server looks back for a sample, five minutes by default.
type Question struct {
	API  v1.API
	Text promapi.Question
	Step time.Duration // between samples, which are at its multiples
}

// MaxSeries is how many series an answer may have: more than a cluster has nodes.
const MaxSeries = 20_000

// New returns a question to the server at an address.
func New(api v1.API, address, expr string, step, timeout time.Duration) Question {
	return Question{API: api, Step: step, Text: promapi.Question{
		Address: address, Query: expr, Accepted: "must be an expression of PromQL that has a number at each time",
		Timeout: timeout, MaxSeries: MaxSeries,
	}}
}

// Line is one series of an answer.
type Line struct {
	Labels  model.Metric
	Samples []pipeline.Sample // in order of time, finite, within the span; may be none
}

// Ask returns the series over a span, whose ends are multiples of the step (ms). Its errors are
// *promapi.Failure.
func (q *Question) Ask(ctx context.Context, from, to int64) ([]Line, error) {
	matrix, _, err := q.Text.Range(ctx, q.API,
		v1.Range{Start: time.UnixMilli(from), End: time.UnixMilli(to), Step: q.Step})
	if err != nil {
		return nil, err
	}
	lines := make([]Line, 0, len(matrix))
	for _, stream := range matrix {
		if stream == nil {
			continue
		}
		if len(stream.Histograms) > 0 {
			return nil, promapi.Fail(promapi.Rejected,
				"%s: query %.200q returns native histograms: must return numbers", q.Text.Address, q.Text.Query)
		}
		lines = append(lines, Line{Labels: stream.Metric, Samples: usable(stream.Values, from, to)})
	}
	return lines, nil
}

// usable returns the finite samples within a span, in order of time.
func usable(values []model.SamplePair, from, to int64) []pipeline.Sample {
	out := make([]pipeline.Sample, 0, len(values))
	for _, v := range values {
		t, x := int64(v.Timestamp), float64(v.Value)
		if t >= from && t <= to && !math.IsNaN(x) && !math.IsInf(x, 0) {
			out = append(out, pipeline.Sample{T: t, V: x})
		}
	}
	slices.SortStableFunc(out, func(a, b pipeline.Sample) int { return cmp.Compare(a.T, b.T) })
	return slices.CompactFunc(out, func(a, b pipeline.Sample) bool { return a.T == b.T })
}

// Join merges series of the same node, which may follow each other but not overlap: the labels of
// an exporter may change when it restarts.
func Join(lines []Line) ([]pipeline.Sample, error) {
	lines = slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return len(l.Samples) == 0 })
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Compare(a.Samples[0].T, b.Samples[0].T) })
	if len(lines) == 1 {
		return lines[0].Samples, nil
	}
	var out []pipeline.Sample
	for i, l := range lines {
		if i > 0 && l.Samples[0].T <= out[len(out)-1].T {
			return nil, fmt.Errorf("%s and %s at once: must be one series", labels(lines[i-1].Labels), labels(l.Labels))
		}
		out = append(out, l.Samples...)
	}
	return out, nil
}

// labels writes the labels of a series in order, shortened.
func labels(m model.Metric) string {
	all := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s=%q", name, string(m[name])))
	}
	return promapi.Short("{" + strings.Join(all, ", ") + "}")
}

// Floor returns the last multiple of step that is not after t.
func Floor(t, step int64) int64 {
	if t < 0 {
		return -Floor(-t+step-1, step)
	}
	return t / step * step
}
