package evaluation

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
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/internal/promapi"
)

const (
	// queryTimeout is that of one query.
	queryTimeout = time.Minute
	// asked is how much is asked for at once: some thousand samples of each series.
	asked = 12 * time.Hour
	// mostSamples bounds what is read of one PredictedMetric, in memory some 100 MB.
	mostSamples = 6_000_000
	// learned is for how long before a report the load is read: what Foresail knew when it began.
	// It remembers a week.
	learned = 8 * 24 * time.Hour
)

// metric is one of Foresail's own, by its place in metrics.
type metric int

const (
	readyPods metric = iota
	targetReplicas
	load
	loadPerInstance
	threshold
	startupTime
	sampleInterval
	errorRatio
	lateRatio
	latenessRatio
	numberOfMetrics
)

// names are those of the metrics without their prefix. Those before threshold are read for as long
// as Foresail learns.
var names = [numberOfMetrics]string{
	"ready_pods", "target_replicas", "load", "load_per_instance", "threshold", "startup_time_seconds",
	"sample_interval_seconds",
	"forecast_error_ratio", "forecast_late_ratio", "forecast_lateness_ratio",
}

const prefix = "foresail_"

// String is the whole name.
func (m metric) String() string { return prefix + names[m] }

// Source is a Prometheus server that scrapes Foresail's metrics.
type Source struct {
	API     v1.API
	Address string // for errors
}

// ErrNotRecorded is that the server has nothing of a PredictedMetric in the time that was asked for.
var ErrNotRecorded = errors.New("it has no metrics of the PredictedMetric")

// sample is one of a series.
type sample struct {
	t int64 // unix ms
	v float64
}

// replica is what one replica of Foresail has exposed. A process that restarts in its pod goes on
// with the same series.
type replica struct {
	name   string
	series [numberOfMetrics][]sample
}

// Read asks for what Foresail has recorded of a PredictedMetric over some time before to, and for
// its load in the days before that.
func Read(ctx context.Context, s Source, key types.NamespacedName, to time.Time, since time.Duration) (*Record, error) {
	r := &reader{Source: s, key: key, replicas: map[string]*replica{}}
	from := to.Add(-since)
	for end := to; end.After(from); end = end.Add(-asked) {
		if err := r.ask(ctx, names[:], end, min(asked, end.Sub(from))); err != nil {
			return nil, err
		}
	}
	if len(r.replicas) == 0 {
		return nil, r.nothing(ctx, to, since)
	}
	for end := from; end.After(from.Add(-learned)); end = end.Add(-asked) {
		if err := r.ask(ctx, names[:threshold], end, asked); err != nil {
			return nil, err
		}
	}
	record, err := merge(r.sorted(), from.Add(-learned), to)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", s.Address, key, err)
	}
	record.From = from
	return record, nil
}

type reader struct {
	Source
	key      types.NamespacedName
	replicas map[string]*replica // by name
	samples  int
}

// ask reads some metrics as they are stored over a span, so that nothing is drawn on beyond the last sample.
func (r *reader) ask(ctx context.Context, names []string, end time.Time, span time.Duration) error {
	q := promapi.Question{Address: r.Address, Accepted: "must be a server of Prometheus' API", Timeout: queryTimeout,
		Query: fmt.Sprintf(
			"{__name__=~%q,namespace=%s,predictedmetric=%s}", prefix+"("+strings.Join(names,
				"|")+")", strconv.Quote(r.key.Namespace), strconv.Quote(r.key.Name))}
	matrix, _, err := q.SamplesUntil(ctx, r.API, end, span)
	if err != nil {
		return err
	}
	for _, series := range matrix {
		if r.samples += len(series.Values); r.samples > mostSamples {
			return promapi.Fail(promapi.Content,
				"%s: there are more than %d samples of PredictedMetric %s: ask for less time, or of a server that scrapes Foresail less often",
				r.Address, mostSamples, r.key)
		}
		r.take(series)
	}
	return nil
}

func (r *reader) take(series *model.SampleStream) {
	m := slices.Index(names[:], strings.TrimPrefix(string(series.Metric[model.MetricNameLabel]), prefix))
	if over := series.Metric["over"]; m < 0 || over != "" && over != "1h" {
		return
	}
	labels := series.Metric.Clone()
	for _, of := range []model.LabelName{model.MetricNameLabel, "namespace", "predictedmetric", "over", "source"} {
		delete(labels, of)
	}
	name := labels.String()
	if r.replicas[name] == nil {
		r.replicas[name] = &replica{name: name}
	}
	to := &r.replicas[name].series[m]
	for _, v := range series.Values {
		if x := float64(v.Value); !math.IsNaN(x) && !math.IsInf(x, 0) {
			*to = append(*to, sample{int64(v.Timestamp), x})
		}
	}
}

// sorted returns the replicas in order of names, their samples in order of time. Those at the ends
// of spans may have come twice.
func (r *reader) sorted() []*replica {
	out := make([]*replica, 0, len(r.replicas))
	for _, x := range r.replicas {
		for m, all := range x.series {
			slices.SortStableFunc(all, func(a, b sample) int { return int(a.t - b.t) })
			x.series[m] = slices.CompactFunc(all, func(a, b sample) bool { return a.t == b.t })
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b *replica) int { return strings.Compare(a.name, b.name) })
	return out
}

// nothing says that there is nothing of the PredictedMetric, and what there is instead.
func (r *reader) nothing(ctx context.Context, to time.Time, since time.Duration) error {
	q := promapi.Question{Address: r.Address, Accepted: "must be a server of Prometheus' API", Timeout: queryTimeout,
		Query: fmt.Sprintf(
			"count by (namespace, exported_namespace, predictedmetric) (last_over_time(%s[%ds]))", readyPods, int(since.Seconds()))}
	vector, err := q.Vector(ctx, r.API, to)
	if err != nil {
		return err
	}
	var others []string
	hint := ""
	for _, s := range vector {
		namespace := string(s.Metric["namespace"])
		if exported := string(s.Metric["exported_namespace"]); exported != "" {
			namespace = exported
			hint = ". Their namespace is in the label exported_namespace: scrape Foresail with honor_labels: true"
		}
		others = append(others, namespace+"/"+string(s.Metric["predictedmetric"]))
	}
	slices.Sort(others)
	there := "of no other either: it must be a server that has scraped Foresail's /metrics"
	if len(others) > 0 {
		there = "but of others: " + promapi.Some(slices.Compact(others)) + hint
	}
	return fmt.Errorf("%s: %w %s between %s and %s, %s", r.Address, ErrNotRecorded, r.key,
		to.Add(-since).UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339), there)
}
