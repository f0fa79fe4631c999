package externalmetrics

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/foresail/foresail/adapter/snapshot"
)

// Reader gives access to what was published last. It answers from memory, never waits for a forecast, and is safe for
// concurrent use. It knows every PredictedMetric that exists: one without a forecast has a snapshot that says why.
type Reader interface {
	// Get returns the snapshot of one PredictedMetric, and false if there is no such PredictedMetric.
	Get(metric types.NamespacedName) (snapshot.Snapshot, bool)
	// List returns the snapshots of a namespace, sorted by name.
	List(namespace string) []snapshot.Snapshot
}

// Provider answers requests for external metrics. It is also the prometheus.Collector of what it has answered.
type Provider struct {
	*telemetry
	reader  Reader
	clock   func() time.Time
	metrics []metric
}

var _ provider.ExternalMetricsProvider = (*Provider)(nil)

// New returns a provider of what reader holds. The clock tells how old that is.
func New(reader Reader, clock func() time.Time) *Provider {
	metrics := servedMetrics()
	return &Provider{telemetry: newTelemetry(metrics), reader: reader, clock: clock, metrics: metrics}
}

// ListAllExternalMetrics names the metrics that there are, whether or not there is a value of them.
func (p *Provider) ListAllExternalMetrics() []provider.ExternalMetricInfo {
	infos := make([]provider.ExternalMetricInfo, 0, len(p.metrics))
	for _, m := range p.metrics {
		infos = append(infos, provider.ExternalMetricInfo{Metric: m.name})
	}
	return infos
}

// GetExternalMetric returns one item for each PredictedMetric of the namespace that the selector matches. The list is
// never empty: without an item, or with one that is not known, the answer is an error with a status.
func (p *Provider) GetExternalMetric(_ context.Context, namespace string, selector labels.Selector, info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	start := p.clock()
	list, refused := p.answer(request{namespace: namespace, selector: selector, metric: info.Metric, now: start})
	p.observe(info.Metric, refused, p.clock().Sub(start))
	if refused != nil {
		return nil, refused
	}
	return list, nil
}

// request is one read of a metric.
type request struct {
	namespace string
	selector  labels.Selector
	metric    string
	now       time.Time
}

func (p *Provider) answer(r request) (*external_metrics.ExternalMetricValueList, *refusal) {
	m, ok := p.metric(r.metric)
	if !ok {
		return nil, unknownMetric(r.metric, p.metrics)
	}
	found := p.find(r)
	if len(found) == 0 {
		return nil, notFound(r, p.reader.List(r.namespace))
	}
	if len(found) > 1 && !m.sums {
		return nil, ambiguous(r, found)
	}
	list := &external_metrics.ExternalMetricValueList{Items: make([]external_metrics.ExternalMetricValue, 0, len(found))}
	for i := range found {
		item, refused := m.item(&found[i], r.now)
		if refused != nil {
			return nil, refused.among(r, len(found))
		}
		list.Items = append(list.Items, item)
	}
	return list, nil
}

func (p *Provider) metric(name string) (metric, bool) {
	for _, m := range p.metrics {
		if m.name == name {
			return m, true
		}
	}
	return metric{}, false
}

// find returns what the selector matches. A selector that names the PredictedMetric, as nearly all do, is one look-up.
func (p *Provider) find(r request) []snapshot.Snapshot {
	var candidates []snapshot.Snapshot
	if name, named := r.selector.RequiresExactMatch(LabelMetric); named {
		if s, ok := p.reader.Get(types.NamespacedName{Namespace: r.namespace, Name: name}); ok {
			candidates = []snapshot.Snapshot{s}
		}
	} else {
		candidates = p.reader.List(r.namespace)
	}
	var found []snapshot.Snapshot
	for i := range candidates {
		if r.selector.Matches(itemLabels{&candidates[i]}) {
			found = append(found, candidates[i])
		}
	}
	return found
}

// item returns the metric's value for one PredictedMetric, or why there is none.
func (m metric) item(s *snapshot.Snapshot, now time.Time) (external_metrics.ExternalMetricValue, *refusal) {
	if refused := unfit(s, now); refused != nil {
		return external_metrics.ExternalMetricValue{}, refused
	}
	milli, refused := m.value(s)
	if refused != nil {
		return external_metrics.ExternalMetricValue{}, refused
	}
	timestamp := s.NewestSample
	if timestamp.After(now) { // a pod's clock may be ahead of ours; readers take a time in the future for nonsense
		timestamp = now
	}
	return external_metrics.ExternalMetricValue{
		MetricName:   m.name,
		MetricLabels: itemLabels{s}.set(),
		Timestamp:    metav1.NewTime(timestamp),
		Value:        *resource.NewMilliQuantity(milli, resource.DecimalSI),
	}, nil
}
