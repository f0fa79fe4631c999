package remotewrite

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/value"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/protobuf/encoding/protowire"
)

// otlp is what the decoder has of a request of OTLP that is being decoded. Each data point is a series with one sample.
type otlp struct {
	labelNames map[string]string // by attribute
	resource   []byte            // as sent
	described  bool              // whether the next two are those of the resource
	promoted   labels            // labels of all its series, where their own attributes do not have the name
	target     labels            // labels of all its series, whatever their own attributes are
	scope      string
	points     []byte   // that pdata decodes next
	kind       kind     // of these
	identity   []string // labels that the resource alone gives to them
	attributes labels
}

// Fields of the messages of OTLP.
const (
	otlpResourceMetrics                                     protowire.Number = 1 // of the request
	otlpResource, otlpScopeMetrics                          protowire.Number = 1, 2
	otlpResourceAttributes                                  protowire.Number = 1
	otlpScope, otlpMetrics                                  protowire.Number = 1, 2
	otlpScopeName                                           protowire.Number = 1
	otlpName, otlpUnit, otlpGauge, otlpSum                  protowire.Number = 1, 3, 5, 7
	otlpHistogram, otlpExponential, otlpSummary             protowire.Number = 9, 10, 11
	otlpPoints, otlpTemporality, otlpMonotonic              protowire.Number = 1, 2, 3
	otlpStart, otlpTime, otlpDouble, otlpExemplars, otlpInt protowire.Number = 2, 3, 4, 5, 6
	otlpAttributes, otlpFlags                               protowire.Number = 7, 8
)

// Attributes of a resource that make labels of other names: these two as senders of remote write name them, the other
// three as Prometheus has them.
const (
	podAttribute, namespaceAttribute = "k8s.pod.name", "k8s.namespace.name"
	podLabel                         = "pod"

	serviceAttribute, serviceNamespaceAttribute, serviceInstanceAttribute = "service.name", "service.namespace", "service.instance.id"
)

// The names are those that Prometheus' own endpoint has by default.
var (
	metricNamer = otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	labelNamer  = otlptranslator.LabelNamer{UnderscoreLabelSanitization: true, PreserveMultipleUnderscores: true} //nolint:staticcheck // deprecated, but what Prometheus does by default
)

// pdata decodes a message as a whole, and into much more memory than the message takes. So it gets a few data points at a
// time, and those of metrics that nobody desires not at all.
const (
	pointsAtOnce  = 16 << 10 // bytes
	otlpExpansion = 80       // above the size of a decoded message for each of its bytes
)

// otlpSize returns how much memory decoding a request takes at a time.
func otlpSize(request []byte) int64 { return otlpExpansion * int64(min(len(request), pointsAtOnce)) }

// decodeOTLP decodes a request of OTLP. An error rejects it as a whole.
func (d *decoder) decodeOTLP(request []byte, to consumer) error {
	for resource, err := range messages(request, otlpResourceMetrics) {
		if err != nil {
			return err
		}
		if err := d.resourceMetrics(resource, to); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) resourceMetrics(message []byte, to consumer) error {
	d.otlp.resource, d.otlp.described = nil, false
	for resource, err := range messages(message, otlpResource) { // it may come after its metrics
		if err != nil {
			return err
		}
		d.otlp.resource = resource
	}
	for scope, err := range messages(message, otlpScopeMetrics) {
		if err != nil {
			return err
		}
		if err := d.scopeMetrics(scope, to); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) scopeMetrics(message []byte, to consumer) error {
	d.otlp.scope = ""
	for scope, err := range messages(message, otlpScope) {
		if err != nil {
			return err
		}
		for name, err := range messages(scope, otlpScopeName) {
			if err != nil {
				return err
			}
			d.otlp.scope = string(name)
		}
	}
	for metric, err := range messages(message, otlpMetrics) {
		if err != nil {
			return err
		}
		if err := d.metric(metric, to); err != nil {
			return err
		}
	}
	return nil
}

// otlpMetric is a metric whose data points are not decoded.
type otlpMetric struct {
	name, unit  []byte
	kind        protowire.Number // of the field that has the data
	data        []byte
	points      int
	temporality pmetric.AggregationTemporality // of a sum
	monotonic   bool
}

var errTwoKinds = errors.New("a metric is of two types")

func parseMetric(message []byte) (m otlpMetric, err error) {
	for f, err := range fields(message) {
		switch {
		case err != nil:
			return m, malformed(err)
		case f.number == otlpName:
			m.name = f.value
		case f.number == otlpUnit:
			m.unit = f.value
		case !slices.Contains([]protowire.Number{otlpGauge, otlpSum, otlpHistogram, otlpExponential, otlpSummary}, f.number):
		case f.value == nil:
			return m, malformed(errWireType)
		case m.kind != 0:
			return m, malformed(errTwoKinds)
		default:
			m.kind, m.data = f.number, f.value
		}
	}
	for f, err := range fields(m.data) {
		switch {
		case err != nil:
			return m, malformed(err)
		case f.number == otlpPoints:
			m.points++
		case m.kind == otlpSum && f.number == otlpTemporality:
			m.temporality = pmetric.AggregationTemporality(f.varint)
		case m.kind == otlpSum && f.number == otlpMonotonic:
			m.monotonic = f.varint != 0
		}
	}
	return m, nil
}

// numbers returns whether the data points are numbers.
func (m *otlpMetric) numbers() bool { return m.kind == otlpGauge || m.kind == otlpSum }

// translatedName returns the name of the metric in Prometheus.
func (m *otlpMetric) translatedName(o *Options) (string, error) {
	if n := len(m.name) + len(m.unit); n > o.MaxLabelValueBytes {
		return "", fmt.Errorf("a metric has a name and a unit of %d bytes; at most %d are accepted", n, o.MaxLabelValueBytes)
	}
	kind := otlptranslator.MetricType(otlptranslator.MetricTypeUnknown)
	switch {
	case m.kind == otlpGauge:
		kind = otlptranslator.MetricTypeGauge
	case m.monotonic:
		kind = otlptranslator.MetricTypeMonotonicCounter
	case m.kind == otlpSum:
		kind = otlptranslator.MetricTypeNonMonotonicCounter
	}
	return metricNamer.Build(otlptranslator.Metric{Name: string(m.name), Unit: string(m.unit), Type: kind})
}

func (d *decoder) metric(message []byte, to consumer) error {
	m, err := parseMetric(message)
	if err != nil {
		return err
	}
	c := content{series: max(1, m.points)} // a metric without data points takes as much to name
	if m.numbers() {
		c.samples = m.points
	} else {
		c.histograms = m.points
	}
	if err := d.count(c); err != nil {
		return err
	}
	if m.points == 0 {
		return nil
	}
	name, err := m.translatedName(d.options)
	switch {
	case err != nil:
		to.invalid(invalidLabels, err, c.samples)
		return nil
	case !m.numbers():
		d.rejectDistribution(&m, name, to)
		return nil
	case !to.desired(name, m.points):
		return nil
	case m.kind == otlpSum && m.temporality != pmetric.AggregationTemporalityCumulative:
		to.invalid(unsupportedType, fmt.Errorf("%s is a sum of %s temporality, which must be cumulative: use the collector's processor deltatocumulative, "+
			"or have the SDK export cumulative sums", name, strings.ToLower(m.temporality.String())), m.points)
		return nil
	}
	d.otlp.kind = gaugeKind // as a sum that is not monotonic is
	if m.monotonic {
		d.otlp.kind = counterKind
	}
	return d.points(m.data, name, to)
}

// rejectDistribution rejects a histogram or summary if one of the series that it would be in Prometheus is desired.
func (d *decoder) rejectDistribution(m *otlpMetric, name string, to consumer) {
	desired := func(suffix string) bool { return to.desired(name+suffix, 0) }
	if !slices.ContainsFunc([]string{"", "_count", "_sum", "_bucket"}, desired) {
		return
	}
	kind := "histogram"
	if m.kind == otlpSummary {
		kind = "summary"
	}
	to.invalid(unsupportedType, fmt.Errorf("%s is a %s, of which nothing is read: push a gauge or a counter; extract_count_metric of the collector's processor transform makes "+
		"a counter of it", name, kind), m.points)
}

// points takes the data points of a gauge or of a cumulative sum.
func (d *decoder) points(data []byte, metric string, to consumer) error {
	most := d.options.MaxLabels * (d.options.MaxLabelNameBytes + d.options.MaxLabelValueBytes)
	for point, err := range messages(data, otlpPoints) {
		if err != nil {
			return err
		}
		attributes, err := d.pointAttributes(&point)
		switch {
		case err != nil:
			return err
		case attributes > d.options.MaxLabels:
			to.invalid(invalidLabels, d.tooManyLabels(metric), 1)
			continue
		case len(point) > most:
			to.invalid(invalidLabels, fmt.Errorf("%.64s has a data point of %d bytes; at most %d are accepted", metric, len(point), most), 1)
			continue
		}
		d.otlp.points = protowire.AppendBytes(protowire.AppendTag(d.otlp.points, otlpPoints, protowire.BytesType), point)
		if len(d.otlp.points) < pointsAtOnce {
			continue
		}
		if err := d.flush(metric, to); err != nil {
			return err
		}
	}
	return d.flush(metric, to)
}

// pointAttributes returns how many attributes a data point has, and removes its exemplars.
func (d *decoder) pointAttributes(point *[]byte) (n int, err error) {
	exemplars := 0
	for f, err := range fields(*point) {
		switch {
		case err != nil:
			return 0, malformed(err)
		case f.number == otlpAttributes:
			n++
		case f.number == otlpExemplars:
			exemplars++
		}
	}
	if exemplars > 0 {
		d.seen.exemplars += exemplars
		*point = d.keep(*point, otlpStart, otlpTime, otlpDouble, otlpInt, otlpAttributes, otlpFlags)
	}
	return n, nil
}

// flush decodes the data points that points collected, and gives them to the consumer.
func (d *decoder) flush(metric string, to consumer) error {
	if len(d.otlp.points) == 0 {
		return nil
	}
	resource, err := unmarshalOTLP(d.otlp.points, otlpResourceMetrics, otlpScopeMetrics, otlpMetrics, otlpGauge)
	if err != nil {
		return err
	}
	d.otlp.points = d.otlp.points[:0]
	if err := d.describe(); err != nil {
		return err
	}
	d.identify(metric)
	points := resource.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
	for _, p := range points.All() {
		if err := d.point(p, metric, to); err != nil {
			return err
		}
	}
	return nil
}

// identify finds the labels that only the resource may give to series of a metric: those that name namespace and pod.
func (d *decoder) identify(metric string) {
	o := &d.otlp
	o.identity = append(o.identity[:0], d.options.Tenancy.NamespaceLabel, podLabel)
	if d.podLabels == nil {
		return
	}
	d.labels = d.labels[:0]
	d.addResource(metric)
	namespace := d.options.Tenancy.Namespace(d.labels.get(d.options.Tenancy.NamespaceLabel))
	o.identity = d.podLabels(metric, namespace, o.identity)
}

// unmarshalOTLP has pdata decode a message, which is in the field of that path in a request.
func unmarshalOTLP(message []byte, path ...protowire.Number) (pmetric.ResourceMetrics, error) {
	var head []byte
	size := len(message)
	for _, number := range slices.Backward(path) {
		tag := protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType), uint64(size))
		head = append(tag, head...)
		size += len(tag)
	}
	request := pmetricotlp.NewExportRequest()
	if err := request.UnmarshalProto(append(head, message...)); err != nil {
		return pmetric.ResourceMetrics{}, malformed(err)
	}
	return request.Metrics().ResourceMetrics().At(0), nil
}

// point takes a data point.
func (d *decoder) point(p pmetric.NumberDataPoint, metric string, to consumer) error {
	err := d.label(p.Attributes(), metric)
	if err == nil {
		err = d.sampleOf(p)
	}
	if err != nil {
		to.invalid(invalidLabels, fmt.Errorf("%s: %w", metric, err), 1)
		return nil
	}
	if len(d.labels) > d.options.MaxLabels {
		to.invalid(invalidLabels, d.tooManyLabels(metric), 1)
		return nil
	}
	return d.hand(to)
}

// sampleOf makes the sample of a data point.
func (d *decoder) sampleOf(p pmetric.NumberDataPoint) error {
	x := sample{t: milliseconds(p.Timestamp()), start: milliseconds(p.StartTimestamp()), kind: d.otlp.kind}
	switch {
	case x.t == 0:
		return errors.New("a data point has no time")
	case p.Flags().NoRecordedValue():
		x.v = math.Float64frombits(value.StaleNaN)
	case p.ValueType() == pmetric.NumberDataPointValueTypeDouble:
		x.v = p.DoubleValue()
	case p.ValueType() == pmetric.NumberDataPointValueTypeInt:
		x.v = float64(p.IntValue())
	default:
		return errors.New("a data point has no value")
	}
	d.samples = append(d.samples[:0], x)
	return nil
}

func milliseconds(t pcommon.Timestamp) int64 { return int64(t / 1e6) }

// label makes the labels of a data point. As in Prometheus its own attributes come before those of the resource, but
// for the job and the instance. Unlike there, the namespace and the pod are those of the resource or none: an
// application may set attributes of its points, and must not claim to be another one.
func (d *decoder) label(attributes pcommon.Map, metric string) (err error) {
	o := &d.otlp
	if d.labels, err = o.translate(d.labels[:0], attributes); err != nil {
		return err
	}
	d.labels = slices.DeleteFunc(d.labels, func(x label) bool { return slices.Contains(o.identity, x.name) })
	d.addResource(metric)
	return nil
}

// addResource adds the labels of all data points of a metric of the resource to those of one.
func (d *decoder) addResource(metric string) {
	o := &d.otlp
	for _, x := range o.promoted {
		if d.labels.get(x.name) == "" {
			d.labels = d.labels.set(x)
		}
	}
	for _, x := range o.target {
		d.labels = d.labels.set(x)
	}
	if o.scope != "" {
		d.labels = d.labels.set(label{"otel_scope_name", o.scope})
	}
	d.labels = append(d.labels, label{metricName, metric})
}

// describe makes the labels that the resource gives to its series.
func (d *decoder) describe() error {
	o := &d.otlp
	if o.described {
		return nil
	}
	kept, err := d.resourceAttributes()
	if err != nil {
		return err
	}
	resource, err := unmarshalOTLP(kept, otlpResourceMetrics, otlpResource)
	if err != nil {
		return err
	}
	attributes := resource.Resource().Attributes()
	attributes.RemoveIf(func(name string, v pcommon.Value) bool {
		_, err := o.labelName(name)
		return err != nil || len(v.AsString()) > d.options.MaxLabelValueBytes
	})
	if o.promoted, err = o.translate(o.promoted[:0], attributes); err != nil {
		return malformed(err)
	}
	o.target = o.target[:0]
	if pod, ok := attributes.Get(podAttribute); ok {
		o.target = append(o.target, label{podLabel, pod.AsString()})
	}
	if namespace, ok := attributes.Get(namespaceAttribute); ok {
		o.target = append(o.target, label{d.options.Tenancy.NamespaceLabel, namespace.AsString()})
	}
	if job, ok := attributes.Get(serviceAttribute); ok {
		name := job.AsString()
		if namespace, ok := attributes.Get(serviceNamespaceAttribute); ok {
			name = namespace.AsString() + "/" + name
		}
		o.target = append(o.target, label{"job", name})
	}
	if instance, ok := attributes.Get(serviceInstanceAttribute); ok {
		o.target = append(o.target, label{"instance", instance.AsString()})
	}
	o.described = true
	return nil
}

// resourceAttributes returns the attributes of the resource that can be labels. Others are left out: no application can be
// expected to have a short command line.
func (d *decoder) resourceAttributes() ([]byte, error) {
	d.kept = d.kept[:0]
	most, n := d.options.MaxLabelNameBytes+d.options.MaxLabelValueBytes, 0
	for f, err := range fields(d.otlp.resource) {
		switch {
		case err != nil:
			return nil, malformed(err)
		case f.number == otlpResourceAttributes && len(f.value) <= most && n <= d.options.MaxLabels:
			d.kept = append(d.kept, f.whole...)
			n++
		}
	}
	return d.kept, nil
}

// translate appends the labels that attributes make. Values whose labels have the same name are joined in the order of
// their attributes' names.
func (o *otlp) translate(to labels, attributes pcommon.Map) (labels, error) {
	o.attributes = o.attributes[:0]
	for name, v := range attributes.All() {
		o.attributes = append(o.attributes, label{name, v.AsString()})
	}
	for _, x := range o.attributes.normal() {
		name, err := o.labelName(x.name)
		if err != nil {
			return to, err
		}
		if name == metricName {
			continue
		}
		if before := to.get(name); before != "" {
			x.value = before + ";" + x.value
		}
		to = to.set(label{name, x.value})
	}
	return to, nil
}

// Limits of the names that are kept.
const (
	keptNames     = 1024
	keptNameBytes = 256
)

// labelName returns the name of the label that an attribute makes.
func (o *otlp) labelName(attribute string) (string, error) {
	if name, ok := o.labelNames[attribute]; ok {
		return name, nil
	}
	name, err := labelNamer.Build(attribute)
	if err != nil || len(attribute) > keptNameBytes {
		return name, err
	}
	if len(o.labelNames) >= keptNames {
		clear(o.labelNames)
	}
	if o.labelNames == nil {
		o.labelNames = map[string]string{}
	}
	o.labelNames[attribute] = name
	return name, nil
}

// reset forgets a request.
func (o *otlp) reset() {
	clear(o.promoted[:cap(o.promoted)])
	clear(o.target[:cap(o.target)])
	clear(o.attributes[:cap(o.attributes)])
	o.resource, o.described, o.scope, o.points = nil, false, "", o.points[:0]
}

// messages iterates over the messages in one field of a message.
func messages(message []byte, number protowire.Number) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for f, err := range fields(message) {
			if err == nil && f.number != number {
				continue
			}
			if err == nil && f.value == nil {
				err = errWireType
			}
			if err != nil {
				yield(nil, malformed(err))
				return
			}
			if !yield(f.value, nil) {
				return
			}
		}
	}
}
