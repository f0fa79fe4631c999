package cost

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/nodepool/fleet"
)

const (
	// DefaultStep is the interval between two samples of the past.
	DefaultStep = 5 * time.Minute
	// maxSteps bounds the samples of one query: Prometheus returns at most 11,000 for a series.
	maxSteps = 10_000
	// queryTimeout bounds one query: some read weeks.
	queryTimeout = time.Minute
)

// Kind is the properties of workers with the same price.
type Kind struct {
	InstanceType string
	Market       fleet.Market
}

// Moment is the state of a pool at one time. It represents the step that ends then.
type Moment struct {
	At          time.Time
	Instances   map[Kind]int // workers that counted
	Gone        int          // workers that were leaving or had failed, and did not count
	Recommended int          // largest recommendation, before minimum and maximum
	Min, Max    int

	BySignals  *int // largest recommendation of a signal; nil: unknown
	Pending    *int // unschedulable pods; nil: unknown
	SpotTarget *int // how many workers should have been Spot; nil: unknown
	// Load is the load of a worker by signal, in the signal's units; absent if unknown.
	Load map[string]float64
}

// Workers returns how many workers counted.
func (m *Moment) Workers() int {
	n := 0
	for _, k := range m.Instances {
		n += k
	}
	return n
}

// Needed returns how many workers were desired, within the limits.
func (m *Moment) Needed() int { return max(m.Min, min(m.Recommended, m.Max)) }

// History is the past of one pool.
type History struct {
	Pool     string
	From, To time.Time
	Step     time.Duration
	Moments  []Moment // known ones, in order
	Unknown  int      // steps without known workers or recommendation
	// Decisions and Events are counts by reason. Every replica decides, so only the shares of decisions are meaningful.
	Decisions, Events map[string]float64
}

// Source is the server that the past of a pool is read from.
type Source struct {
	API     v1.API
	Address string // of the server, for errors
	Step    time.Duration
}

// ErrNoPool means that the server has no metrics of a pool in the period.
var ErrNoPool = errors.New("it has nothing of the pool")

// Read queries the metrics that Foresail exposes of a pool, for the whole steps before to. The values of the leading
// replica count, also where it has none; while none leads, the largest values do.
func Read(ctx context.Context, s Source, pool string, to time.Time, span time.Duration) (*History, error) {
	to = to.Truncate(s.Step)
	n := int(span / s.Step)
	h := &History{Pool: pool, From: to.Add(-time.Duration(n) * s.Step), To: to, Step: s.Step}
	r := reader{Source: s, history: h, samples: make([]sample, n)}
	for _, f := range figures {
		if err := r.read(ctx, f); err != nil {
			return nil, err
		}
	}
	var err error
	if h.Decisions, err = r.count(ctx, "decisions_total"); err != nil {
		return nil, err
	}
	if h.Events, err = r.count(ctx, "events_total"); err != nil {
		return nil, err
	}
	for i := range r.samples {
		if m, ok := r.samples[i].moment(); ok {
			m.At = h.From.Add(time.Duration(i+1) * s.Step)
			h.Moments = append(h.Moments, m)
		}
	}
	h.Unknown = n - len(h.Moments)
	if len(h.Moments) == 0 {
		return h, r.noPool(ctx)
	}
	return h, nil
}

// sample has the values of one time.
type sample struct {
	Moment
	workers                        *int
	hasRecommended, hasMin, hasMax bool
}

// moment returns the state of the pool, if it is known. It is not if replicas disagree on the workers.
func (l *sample) moment() (Moment, bool) {
	known := l.workers != nil && *l.workers == l.Workers() && l.hasRecommended && l.hasMin && l.hasMax
	return l.Moment, known
}

// figure is a metric of a pool with its further labels.
type figure struct {
	name   string
	labels []string
	add    func(l *sample, labels model.Metric, v float64)
}

var figures = []figure{
	{"workers", []string{"state"}, func(l *sample, labels model.Metric, v float64) {
		switch labels["state"] {
		case "terminating", "failed":
			l.Gone += int(v)
		default:
			l.workers = sum(l.workers, v)
		}
	}},
	{"instances", []string{"market", "instance_type", "zone"}, func(l *sample, labels model.Metric, v float64) {
		if l.Instances == nil {
			l.Instances = map[Kind]int{}
		}
		kind := Kind{InstanceType: string(labels["instance_type"]), Market: fleet.Market(labels["market"])}
		l.Instances[kind] += int(v)
	}},
	{"recommended_workers", nil, func(l *sample, _ model.Metric, v float64) {
		l.Recommended, l.hasRecommended = int(v), true
	}},
	{"limit_workers", []string{"limit"}, func(l *sample, labels model.Metric, v float64) {
		switch labels["limit"] {
		case "min":
			l.Min, l.hasMin = int(v), true
		case "max":
			l.Max, l.hasMax = int(v), true
		}
	}},
	{"signal_recommended_workers", []string{"signal"}, func(l *sample, _ model.Metric, v float64) {
		if l.BySignals == nil || *l.BySignals < int(v) {
			l.BySignals = new(int(v))
		}
	}},
	{pendingPods, nil, func(l *sample, _ model.Metric, v float64) { l.Pending = new(int(v)) }},
	{"spot_target_workers", nil, func(l *sample, _ model.Metric, v float64) { l.SpotTarget = new(int(v)) }},
	{"signal_load", []string{"signal"}, func(l *sample, labels model.Metric, v float64) {
		if l.Load == nil {
			l.Load = map[string]float64{}
		}
		l.Load[string(labels["signal"])] = v
	}},
}

func sum(to *int, v float64) *int {
	if to == nil {
		to = new(int)
	}
	*to += int(v)
	return to
}

// reader reads the history of one pool.
type reader struct {
	Source
	history *History
	samples []sample
}

// pendingPods has more reasons than that for which pools grow.
const pendingPods = "pending_pods"

// expression returns the query for the value of the leading replica, or for the largest value while none leads.
func (f *figure) expression(pool string) string {
	matchers := "pool=" + strconv.Quote(pool)
	if f.name == pendingPods {
		matchers += `,reason="NeedsNode"`
	}
	series := fmt.Sprintf("foresail_nodepool_%s{%s}", f.name, matchers)
	labels := strings.Join(f.labels, ", ")
	leads := fmt.Sprintf("(foresail_nodepool_leading{pool=%s} == 1)", strconv.Quote(pool))
	return fmt.Sprintf(
		"max by (%s) (%s and ignoring(%s) %s or (%s unless on() %s))", labels, series, labels, leads, series, leads,
	)
}

// read reads one figure in several queries.
func (r *reader) read(ctx context.Context, f figure) error {
	q := promapi.Question{
		Address: r.Address, Query: f.expression(r.history.Pool), Timeout: queryTimeout,
		Accepted: "must be a server of Prometheus' API",
	}
	for from := 0; from < len(r.samples); from += maxSteps {
		to := min(from+maxSteps, len(r.samples))
		span := v1.Range{Start: r.at(from), End: r.at(to - 1), Step: r.Step}
		matrix, _, err := q.Range(ctx, r.API, span)
		if err != nil {
			return err
		}
		for _, series := range matrix {
			r.add(f, series)
		}
	}
	return nil
}

// at returns the time of a sample.
func (r *reader) at(i int) time.Time { return r.history.From.Add(time.Duration(i+1) * r.Step) }

// add adds the values of a series to the samples.
func (r *reader) add(f figure, series *model.SampleStream) {
	for _, v := range series.Values {
		i := int(v.Timestamp.Time().Sub(r.history.From)/r.Step) - 1
		if x := float64(v.Value); i >= 0 && i < len(r.samples) && !math.IsNaN(x) && !math.IsInf(x, 0) {
			f.add(&r.samples[i], series.Metric, x)
		}
	}
}

// count returns the increase of a counter in the whole period by reason, over all replicas.
func (r *reader) count(ctx context.Context, name string) (map[string]float64, error) {
	span := r.history.To.Sub(r.history.From)
	q := promapi.Question{
		Address: r.Address, Timeout: queryTimeout, Accepted: "must be a server of Prometheus' API",
		Query: fmt.Sprintf("sum by (reason) (increase(foresail_nodepool_%s{pool=%s}[%dms]))",
			name, strconv.Quote(r.history.Pool), span.Milliseconds()),
	}
	vector, err := q.Vector(ctx, r.API, r.history.To)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, s := range vector {
		out[string(s.Metric["reason"])] = math.Round(float64(s.Value))
	}
	return out, nil
}

// noPool returns the error that the pool has no metrics, with the pools that have.
func (r *reader) noPool(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	q := promapi.Question{Address: r.Address, Query: "foresail_nodepool_recommended_workers", Timeout: queryTimeout}
	values, _, err := r.API.LabelValues(ctx, "pool", []string{q.Query}, r.history.From, r.history.To)
	if err != nil {
		return q.Explain(err)
	}
	var pools []string
	for _, v := range values {
		pools = append(pools, string(v))
	}
	instead := "no pool at all: it must be a server that reads Foresail's /metrics, since before that time"
	if slices.Contains(pools, r.history.Pool) {
		instead = "no worker counts or recommendations for that period"
	} else if len(pools) > 0 {
		instead = "others: " + strings.Join(pools, ", ")
	}
	return fmt.Errorf("%s: %w %q between %s and %s, but %s", r.Address, ErrNoPool, r.history.Pool,
		r.history.From.UTC().Format(time.RFC3339), r.history.To.UTC().Format(time.RFC3339), instead)
}
