// Package nodequery asks Prometheus servers for what there is of each node over ranges of time.
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

// Question is an expression that a server is asked for over ranges of time.
//
// Its samples carry the times for which the server has worked them out. Where the expression itself looks back, as
// rate(…[1m]) does, they tell of the time before, half a minute earlier on average; and a series that has ended without
// a word is told for as long as the server looks back for a sample, which is five minutes unless it is told otherwise.
type Question struct {
	API     v1.API
	Text    promapi.Question
	Step    time.Duration // between samples, which are at its multiples
	Timeout time.Duration
}

// MaxSeries is how many series an answer may have: of more nodes than a cluster has.
const MaxSeries = 20_000

// New returns a question to the server at an address.
func New(api v1.API, address, expr string, step, timeout time.Duration) Question {
	text := promapi.Question{Address: address, Query: expr, Accepted: "must be an expression of PromQL that has a number at each time", Timeout: timeout}
	return Question{API: api, Text: text, Step: step, Timeout: timeout}
}

// Line is one series of an answer.
type Line struct {
	Labels  model.Metric
	Samples []pipeline.Sample // in order, finite, within what was asked for; may be none
}

// Ask returns the series from one time to another, both multiples of the step (ms). Its errors are *promapi.Failure.
func (q *Question) Ask(ctx context.Context, from, to int64) ([]Line, error) {
	ctx, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	r := v1.Range{Start: time.UnixMilli(from), End: time.UnixMilli(to), Step: q.Step}
	value, _, err := q.API.QueryRange(ctx, q.Text.Query, r, v1.WithTimeout(q.Timeout), v1.WithLimit(MaxSeries+1))
	if err != nil {
		return nil, q.Text.Explain(err)
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, promapi.Fail(promapi.Content, "%s: the answer is no matrix", q.Text.Address)
	}
	if len(matrix) > MaxSeries {
		return nil, promapi.Fail(promapi.Limit, "%s: query %.200q returns more than %d series; it must select less", q.Text.Address, q.Text.Query, MaxSeries)
	}
	lines := make([]Line, 0, len(matrix))
	for _, stream := range matrix {
		if stream == nil {
			continue
		}
		if len(stream.Histograms) > 0 {
			return nil, promapi.Fail(promapi.Refused, "%s: query %.200q returns native histograms: must return numbers", q.Text.Address, q.Text.Query)
		}
		lines = append(lines, Line{Labels: stream.Metric, Samples: usable(stream.Values, from, to)})
	}
	return lines, nil
}

// usable returns the samples that are numbers and within what was asked for.
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

// Join makes one of series that are of the same thing, which is possible if none has a sample between the first and the
// last of another: the labels of an exporter may change when it is started again.
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
