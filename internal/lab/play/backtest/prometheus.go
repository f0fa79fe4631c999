package backtest

import (
	"context"
	"fmt"
	"math"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/internal/lab/world/workload"
	"github.com/foresail/foresail/internal/promapi"
)

// queryTimeout is that of one query.
const queryTimeout = time.Minute

// Question is what is asked of Prometheus for a trace: the sum of the series of a query, at each
// step, is the load.
type Question struct {
	API        v1.API
	Address    string // of the server, for errors
	Query      string
	To         time.Time
	Since      time.Duration // before To
	Step       time.Duration
	Name       string // of the trace
	Unanswered string // what to do about a query that has no answer, for errors
}

// ReadPrometheus reads a trace. The error describes an answer that is none.
func ReadPrometheus(ctx context.Context, q Question) (*workload.Trace, error) {
	to := q.To.Truncate(q.Step)
	from := to.Add(-q.Since.Truncate(q.Step))
	sums := map[int64]float64{} // by unix milliseconds
	series := 0
	asked := promapi.Question{Address: q.Address, Query: q.Query,
		Accepted: "must be PromQL that returns requests per second", Timeout: queryTimeout}
	err := asked.RangeInParts(ctx, q.API, v1.Range{Start: from, End: to, Step: q.Step},
		func(matrix model.Matrix) error {
			series = max(series, len(matrix))
			for _, s := range matrix {
				if len(s.Histograms) > 0 {
					return promapi.Fail(promapi.Content,
						"%s: query %.200q returns histograms: it must return requests per second, "+
							"such as sum(rate(http_requests_total[1m]))", q.Address, q.Query)
				}
				for _, v := range s.Values {
					sums[int64(v.Timestamp)] += float64(v.Value)
				}
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	return q.trace(from, to, sums, series)
}

// trace makes a trace of sums, from the first to the last that there is.
func (q *Question) trace(from, to time.Time, sums map[int64]float64, series int) (*workload.Trace, error) {
	var points []workload.Point
	for at := from; !at.After(to); at = at.Add(q.Step) {
		rate, known := sums[at.UnixMilli()]
		if !known || math.IsNaN(rate) {
			continue
		}
		if rate < 0 || math.IsInf(rate, 0) {
			return nil, promapi.Fail(promapi.Content,
				"%s: query %.200q comes to %v at %s: it must be requests per second, 0 or more",
				q.Address, q.Query, rate, at.UTC().Format(time.RFC3339))
		}
		points = append(points, workload.Point{At: at, Rate: rate})
	}
	asked := fmt.Sprintf("%s: query %.200q, from %s to %s in steps of %s", q.Address, q.Query,
		from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339), q.Step)
	if series == 0 {
		return nil, promapi.Fail(promapi.Content, "%s: no series came back: %s", asked, q.Unanswered)
	}
	t, err := workload.NewTrace(q.Name, points)
	if err != nil {
		return nil, promapi.Fail(promapi.Content, "%s: %d series came back with %d times that have a value: %w", asked,
			series, len(points), err)
	}
	return t, nil
}
