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

	"github.com/foresail/foresail/nodepool/fleet"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/internal/promapi"
)

const (
	// DefaultStep is between two looks at the past.
	DefaultStep = 5 * time.Minute
	// mostSteps is how many are asked for at once: Prometheus returns at most 11,000 samples of a series.
	mostSteps = 10_000
	// queryTimeout is that of one query: some read weeks.
	queryTimeout = time.Minute
)

// Kind is what workers are alike in that cost the same.
type Kind struct {
	InstanceType string
	Market       fleet.Market
}

// Moment is what was known of a pool at one time. It stands for the step before.
type Moment struct {
	At          time.Time
	Instances   map[Kind]int // workers that counted
	Gone        int          // that were leaving or had failed, and did not count
	Recommended int          // the largest vote, before minimum and maximum
	Min, Max    int

	BySignals  *int // the largest vote of a signal; nil: not known
	Pending    *int // pods that no node takes; nil: not known
	SpotTarget *int // how many of the workers were to be Spot; nil: not known
	// Load is that of each worker by the signal that told it, in its units; absent if it was not known.
	Load map[string]float64
}

// Workers is how many counted.
func (m *Moment) Workers() int {
	n := 0
	for _, k := range m.Instances {
		n += k
	}
	return n
}

// Needed is how many were asked for, within the limits.
func (m *Moment) Needed() int { return max(m.Min, min(m.Recommended, m.Max)) }

// History is the past of one pool.
type History struct {
	Pool     string
	From, To time.Time
	Step     time.Duration
	Moments  []Moment // that are known, in order
	Unknown  int      // steps of which it is not known how many workers there were, or how many were asked for
	// Decisions and Events are how many there were by their reasons. Every replica decides, so of decisions it is the
	// shares that mean something.
	Decisions, Events map[string]float64
}

// Source is where the past of a pool is read.
type Source struct {
	API     v1.API
	Address string // of the server, for errors
	Step    time.Duration
}

// ErrNoPool is that the server knows nothing of a pool in the time that was asked for.
var ErrNoPool = errors.New("it has nothing of the pool")

// Read asks for the metrics that Foresail exposes of a pool, over the whole steps before to. The replica that leads is
// believed, also in what it does not know; where none leads, the largest figure is.
func Read(ctx context.Context, s Source, pool string, to time.Time, span time.Duration) (*History, error) {
	to = to.Truncate(s.Step)
	n := int(span / s.Step)
	h := &History{Pool: pool, From: to.Add(-time.Duration(n) * s.Step), To: to, Step: s.Step}
	r := reader{Source: s, history: h, looks: make([]look, n)}
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
	for i := range r.looks {
		if m, ok := r.looks[i].moment(); ok {
			m.At = h.From.Add(time.Duration(i+1) * s.Step)
			h.Moments = append(h.Moments, m)
		}
	}
	h.Unknown = n - len(h.Moments)
	if len(h.Moments) == 0 {
		return h, r.nothing(ctx)
	}
	return h, nil
}

// look is what was read of one time.
type look struct {
	Moment
	workers                        *int
	hasRecommended, hasMin, hasMax bool
}

// moment returns what was known. Replicas that do not agree on what workers there are do not know.
func (l *look) moment() (Moment, bool) {
	known := l.workers != nil && *l.workers == l.Workers() && l.hasRecommended && l.hasMin && l.hasMax
	return l.Moment, known
}

// figure is a metric of a pool with the labels that it has beside.
type figure struct {
	name   string
	labels []string
	take   func(l *look, labels model.Metric, v float64)
}

var figures = []figure{
	{"workers", []string{"state"}, func(l *look, labels model.Metric, v float64) {
		switch labels["state"] {
		case "terminating", "failed":
			l.Gone += int(v)
		default:
			l.workers = sum(l.workers, v)
		}
	}},
	{"instances", []string{"market", "instance_type", "zone"}, func(l *look, labels model.Metric, v float64) {
		if l.Instances == nil {
			l.Instances = map[Kind]int{}
		}
		l.Instances[Kind{InstanceType: string(labels["instance_type"]), Market: fleet.Market(labels["market"])}] += int(v)
	}},
	{"recommended_workers", nil, func(l *look, _ model.Metric, v float64) { l.Recommended, l.hasRecommended = int(v), true }},
	{"limit_workers", []string{"limit"}, func(l *look, labels model.Metric, v float64) {
		switch labels["limit"] {
		case "min":
			l.Min, l.hasMin = int(v), true
		case "max":
			l.Max, l.hasMax = int(v), true
		}
	}},
	{"signal_recommended_workers", []string{"signal"}, func(l *look, _ model.Metric, v float64) {
		if l.BySignals == nil || *l.BySignals < int(v) {
			l.BySignals = new(int(v))
		}
	}},
	{"pending_pods", nil, func(l *look, _ model.Metric, v float64) { l.Pending = new(int(v)) }},
	{"spot_target_workers", nil, func(l *look, _ model.Metric, v float64) { l.SpotTarget = new(int(v)) }},
	{"signal_load", []string{"signal"}, func(l *look, labels model.Metric, v float64) {
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

type reader struct {
	Source
	history *History
	looks   []look
}

// expression is the figure of the replica that leads, or the largest one at times when none does.
func (f *figure) expression(pool string) string {
	series := fmt.Sprintf("foresail_nodepool_%s{pool=%s}", f.name, strconv.Quote(pool))
	labels := strings.Join(f.labels, ", ")
	leads := fmt.Sprintf("(foresail_nodepool_leading{pool=%s} == 1)", strconv.Quote(pool))
	return fmt.Sprintf("max by (%s) (%s and ignoring(%s) %s or (%s unless on() %s))", labels, series, labels, leads, series, leads)
}

// read asks for one figure, some steps after the other.
func (r *reader) read(ctx context.Context, f figure) error {
	q := promapi.Question{Address: r.Address, Query: f.expression(r.history.Pool), Accepted: "must be a server of Prometheus' API", Timeout: queryTimeout}
	for from := 0; from < len(r.looks); from += mostSteps {
		to := min(from+mostSteps, len(r.looks))
		span := v1.Range{Start: r.at(from), End: r.at(to - 1), Step: r.Step}
		matrix, _, err := q.Range(ctx, r.API, span)
		if err != nil {
			return err
		}
		for _, series := range matrix {
			r.take(f, series)
		}
	}
	return nil
}

// at is the time of a look.
func (r *reader) at(i int) time.Time { return r.history.From.Add(time.Duration(i+1) * r.Step) }

func (r *reader) take(f figure, series *model.SampleStream) {
	for _, v := range series.Values {
		i := int(v.Timestamp.Time().Sub(r.history.From)/r.Step) - 1
		if x := float64(v.Value); i >= 0 && i < len(r.looks) && !math.IsNaN(x) && !math.IsInf(x, 0) {
			f.take(&r.looks[i], series.Metric, x)
		}
	}
}

// count asks how much the counter of a reason has grown in the whole time, over all replicas.
func (r *reader) count(ctx context.Context, name string) (map[string]float64, error) {
	span := r.history.To.Sub(r.history.From)
	q := promapi.Question{Address: r.Address, Timeout: queryTimeout, Accepted: "must be a server of Prometheus' API", Query: fmt.Sprintf(
		"sum by (reason) (increase(foresail_nodepool_%s{pool=%s}[%dms]))", name, strconv.Quote(r.history.Pool), span.Milliseconds())}
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

// nothing says that there is nothing of the pool, and what there is instead.
func (r *reader) nothing(ctx context.Context) error {
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
	told := "no pool at all: it must be a server that reads Foresail's /metrics, since before that time"
	if slices.Contains(pools, r.history.Pool) {
		told = "no worker counts or recommendations for that period"
	} else if len(pools) > 0 {
		told = "others: " + strings.Join(pools, ", ")
	}
	return fmt.Errorf("%s: %w %q between %s and %s, but %s", r.Address, ErrNoPool, r.history.Pool,
		r.history.From.UTC().Format(time.RFC3339), r.history.To.UTC().Format(time.RFC3339), told)
}
