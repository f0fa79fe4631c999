// Package custommetrics serves forecasts to HorizontalPodAutoscalers through custom.metrics.k8s.io:
// as Object metrics, whose described object is a PredictedMetric. It is for clusters in which
// another server has external.metrics.k8s.io.
//
// The name of the object selects, and nothing else does: a read of several objects at once, or with
// a selector of the metric, is refused. Values and errors are those of package serving, the same as
// of any other door.
package custommetrics

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/adapter/serving/kubeapi"
	"github.com/foresail/foresail/api/v1alpha1"
)

// ReasonInvalidRead is that of an error about a read that names no single PredictedMetric, or more than one.
const ReasonInvalidRead = "InvalidRead"

// Provider answers requests for custom metrics. It is also the prometheus.Collector of its requests.
type Provider struct {
	*kubeapi.Telemetry
	reader serving.Reader
	clock  func() time.Time
}

var _ provider.CustomMetricsProvider = (*Provider)(nil)

// New returns a provider of the snapshots of reader, whose age it judges by the clock.
func New(reader serving.Reader, clock func() time.Time) *Provider {
	reasons := []string{ReasonInvalidRead}
	for _, reason := range serving.Reasons() {
		if reason != serving.ReasonAmbiguous { // a read names one object
			reasons = append(reasons, reason)
		}
	}
	return &Provider{Telemetry: kubeapi.NewTelemetry("custom", reasons...), reader: reader, clock: clock}
}

// described is the resource of the objects that have metrics.
func described() schema.GroupResource {
	return schema.GroupResource{Group: v1alpha1.GroupName, Resource: "predictedmetrics"}
}

// ListAllMetrics names all metrics, whether or not they have values.
func (p *Provider) ListAllMetrics() []provider.CustomMetricInfo {
	infos := make([]provider.CustomMetricInfo, 0, len(serving.Metrics()))
	for _, metric := range serving.Metrics() {
		infos = append(infos, provider.CustomMetricInfo{GroupResource: described(), Namespaced: true, Metric: metric})
	}
	return infos
}

// GetMetricByName returns a metric of the PredictedMetric of a name. Without one, or with one that
// has no value, it returns an error that carries a metav1.Status.
func (p *Provider) GetMetricByName(ctx context.Context, name types.NamespacedName, info provider.CustomMetricInfo,
	selector labels.Selector) (*custom_metrics.MetricValue, error) {
	start := p.clock()
	query := serving.Query{Namespace: name.Namespace, Selector: serving.ByName(name.Name), Metric: info.Metric,
		Now: start}
	item, err := p.read(query, info, selector)
	kubeapi.Trace(ctx, query, item, err)
	if failed := p.observe(info.Metric, err, start); failed != nil {
		return nil, failed
	}
	return &custom_metrics.MetricValue{
		DescribedObject: custom_metrics.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "PredictedMetric", Namespace: name.Namespace,
			Name: name.Name,
		},
		Metric:    custom_metrics.MetricIdentifier{Name: info.Metric},
		Timestamp: metav1.NewTime(item.Timestamp),
		Value:     *resource.NewMilliQuantity(item.Milli, resource.DecimalSI),
	}, nil
}

// GetMetricBySelector refuses to read several objects at once. No HPA does so for an Object metric.
func (p *Provider) GetMetricBySelector(_ context.Context, namespace string, _ labels.Selector,
	info provider.CustomMetricInfo, _ labels.Selector) (*custom_metrics.MetricValueList, error) {
	start := p.clock()
	err := check(info)
	if err == nil {
		err = severalObjects(namespace, info.Metric)
	}
	return nil, p.observe(info.Metric, err, start)
}

func (p *Provider) read(query serving.Query, info provider.CustomMetricInfo,
	selector labels.Selector) (serving.Item, error) {
	if err := check(info); err != nil {
		return serving.Item{}, err
	}
	if !selector.Empty() {
		return serving.Item{}, metricSelector(selector)
	}
	return serving.Read(p.reader, query)
}

// observe counts a read, and returns its error as the API reports it.
func (p *Provider) observe(metric string, err error, start time.Time) error {
	failed := kubeapi.AsStatusError(err)
	p.Observe(metric, failed, p.clock().Sub(start))
	if failed == nil {
		return nil
	}
	return failed
}

// check refuses metrics that do not exist.
func check(info provider.CustomMetricInfo) error {
	if info.GroupResource != described() {
		return &serving.Error{Class: serving.NotFound, Reason: serving.ReasonUnknownMetric, Message: fmt.Sprintf(
			"there are no metrics of %q: must be %s of %s, whose metrics are %s",
			info.GroupResource, "a PredictedMetric", v1alpha1.GroupVersion, strings.Join(serving.Metrics(), ", "))}
	}
	return serving.CheckMetric(info.Metric)
}

func metricSelector(selector labels.Selector) error {
	return &serving.Error{Class: serving.Invalid, Reason: ReasonInvalidRead, Message: fmt.Sprintf(
		"the metric selector %q must be left out: the described object names the PredictedMetric", selector)}
}

func severalObjects(namespace, metric string) error {
	return &serving.Error{Class: serving.Invalid, Reason: ReasonInvalidRead, Message: fmt.Sprintf(
		"%s of all PredictedMetrics in namespace %q at once is not served: name one of them instead of *", metric, namespace)}
}
