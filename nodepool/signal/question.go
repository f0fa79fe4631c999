package signal

import (
	"cmp"
	"context"
	"errors"
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

// question is an expression that a server is asked for over ranges of time.
//
// Its samples carry the times for which the server has worked them out. Where the expression itself looks back, as
// rate(…[1m]) does, they tell of the time before, half a minute earlier on average; and a series that has ended without
// a word is told for as long as the server looks back for a sample, which is five minutes unless it is told otherwise.
type question struct {
	api     v1.API
	text    promapi.Question
	step    time.Duration // between samples, which are at its multiples
	timeout time.Duration
}

// maxSeries is how many series an answer may have: of more nodes than a cluster has.
const maxSeries = 20_000

func newQuestion(o *Options, q *Query, step, timeout time.Duration) (question, error) {
	address := cmp.Or(q.Address, o.DefaultAddress)
	if o.Servers == nil || address == "" {
		return question{}, errors.New(`prometheus.address: "": must be given, as Foresail was started without a Prometheus server`)
	}
	api, err := o.Servers.API(address)
	if err != nil {
		return question{}, fmt.Errorf("prometheus.%w", err)
	}
	text := promapi.Question{Address: address, Query: q.Expr, Accepted: "must be an expression of PromQL that has a number at each time", Timeout: timeout}
	return question{api: api, text: text, step: step, timeout: timeout}, nil
}

// line is one series of an answer.
type line struct {
	labels  model.Metric
	samples []pipeline.Sample // in order, finite, within what was asked for; may be none
}

// ask returns the series from one time to another, both multiples of the step (ms).
func (q *question) ask(ctx context.Context, from, to int64) ([]line, error) {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	r := v1.Range{Start: time.UnixMilli(from), End: time.UnixMilli(to), Step: q.step}
	value, _, err := q.api.QueryRange(ctx, q.text.Query, r, v1.WithTimeout(q.timeout), v1.WithLimit(maxSeries+1))
	if err != nil {
		return nil, q.text.Explain(err)
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, promapi.Fail(promapi.Content, "%s: the answer is no matrix", q.text.Address)
	}
	if len(matrix) > maxSeries {
		return nil, promapi.Fail(promapi.Limit, "%s: query %.200q returns more than %d series; it must select less", q.text.Address, q.text.Query, maxSeries)
	}
	lines := make([]line, 0, len(matrix))
	for _, stream := range matrix {
		if stream == nil {
			continue
		}
		if len(stream.Histograms) > 0 {
			return nil, promapi.Fail(promapi.Refused, "%s: query %.200q returns native histograms: must return numbers", q.text.Address, q.text.Query)
		}
		lines = append(lines, line{labels: stream.Metric, samples: usable(stream.Values, from, to)})
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

// join makes one of series that are of the same thing, which is possible if none has a sample between the first and the
// last of another: the labels of an exporter may change when it is started again.
func join(lines []line) ([]pipeline.Sample, error) {
	lines = slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return len(l.samples) == 0 })
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.samples[0].T, b.samples[0].T) })
	var out []pipeline.Sample
	for i, l := range lines {
		if i > 0 && l.samples[0].T <= out[len(out)-1].T {
			return nil, fmt.Errorf("%s and %s at once: must be one series", labels(lines[i-1].labels), labels(l.labels))
		}
		out = append(out, l.samples...)
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

// floor returns the last multiple of step that is not after t.
func floor(t, step int64) int64 {
	if t < 0 {
		return -floor(-t+step-1, step)
	}
	return t / step * step
}
