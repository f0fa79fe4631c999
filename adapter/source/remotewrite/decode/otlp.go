package decode

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/value"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"
)

// otlp decodes requests of OTLP. Each data point is a series with one sample.
type otlp struct {
	*request

	labeler otlpLabeler
	points  []byte // the data points that pdata decodes next
	kind    Kind   // of these
}

// pdata decodes a message as a whole, and into much more memory than the message takes. So it gets a few data
// points at a time, and only those of metrics that are desired.
const (
	pointsAtOnce  = 16 << 10 // bytes
	otlpExpansion = 80       // above the size of a decoded message for each of its bytes
)

// OTLPSize returns the memory that decoding a request takes at a time, in bytes.
func OTLPSize(request []byte) int64 { return otlpExpansion * int64(min(len(request), pointsAtOnce)) }

// decode decodes a request.
func (d *otlp) decode(request []byte, to Consumer) error {
	for resource, err := range messages(request, otlpResourceMetrics) {
		if err != nil {
			return err
		}
		if err := d.decodeResource(resource, to); err != nil {
			return err
		}
	}
	return nil
}

func (d *otlp) decodeResource(message []byte, to Consumer) error {
	d.labeler.setResource(nil)
	for resource, err := range messages(message, otlpResource) { // it may come after its metrics
		if err != nil {
			return err
		}
		d.labeler.setResource(resource)
	}
	for scope, err := range messages(message, otlpScopeMetrics) {
		if err != nil {
			return err
		}
		if err := d.decodeScope(scope, to); err != nil {
			return err
		}
	}
	return nil
}

func (d *otlp) decodeScope(message []byte, to Consumer) error {
	d.labeler.scope = ""
	for scope, err := range messages(message, otlpScope) {
		if err != nil {
			return err
		}
		for name, err := range messages(scope, otlpScopeName) {
			if err != nil {
				return err
			}
			d.labeler.scope = string(name)
		}
	}
	for metric, err := range messages(message, otlpMetrics) {
		if err != nil {
			return err
		}
		if err := d.decodeMetric(metric, to); err != nil {
			return err
		}
	}
	return nil
}

func (d *otlp) decodeMetric(message []byte, to Consumer) error {
	m, err := parseMetric(message)
	if err != nil {
		return err
	}
	c := Content{Series: max(1, m.points)} // a metric without data points takes as much to name
	if m.numbers() {
		c.Samples = m.points
	} else {
		c.Histograms = m.points
	}
	if err := d.count(c); err != nil {
		return err
	}
	if m.points == 0 {
		return nil
	}
	name, err := m.translatedName(&d.limits)
	switch {
	case err != nil:
		to.Invalid(err, c.Samples)
		return nil
	case !m.numbers():
		d.rejectDistribution(&m, name, to)
		return nil
	case !to.Desired(name, m.points):
		return nil
	case m.kind == otlpSum && m.temporality != pmetric.AggregationTemporalityCumulative:
		to.Unsupported(fmt.Errorf("%s is a sum of %s temporality, which must be cumulative: "+
			"use the collector's processor deltatocumulative, or have the SDK export cumulative sums", name,
			strings.ToLower(m.temporality.String())), m.points)
		return nil
	}
	d.kind = Gauge // as a sum that is not monotonic is
	if m.monotonic {
		d.kind = Counter
	}
	return d.decodePoints(m.data, name, to)
}

// rejectDistribution rejects a histogram or summary if one of the series that it would be in Prometheus is desired.
func (d *otlp) rejectDistribution(m *otlpMetric, name string, to Consumer) {
	desired := func(suffix string) bool { return to.Desired(name+suffix, 0) }
	if !slices.ContainsFunc([]string{"", "_count", "_sum", "_bucket"}, desired) {
		return
	}
	kind := "histogram"
	if m.kind == otlpSummary {
		kind = "summary"
	}
	to.Unsupported(fmt.Errorf("%s is a %s, of which nothing is read: push a gauge or a counter; "+
		"extract_count_metric of the collector's processor transform makes a counter of it", name, kind), m.points)
}

// decodePoints decodes the data points of a gauge or of a cumulative sum.
func (d *otlp) decodePoints(data []byte, metric string, to Consumer) error {
	limit := d.limits.Labels * (d.limits.LabelNameBytes + d.limits.LabelValueBytes)
	for point, err := range messages(data, otlpPoints) {
		if err != nil {
			return err
		}
		attributes, err := d.pointAttributes(&point)
		switch {
		case err != nil:
			return err
		case attributes > d.limits.Labels:
			to.Invalid(d.tooManyLabels(metric), 1)
			continue
		case len(point) > limit:
			to.Invalid(fmt.Errorf("%.64s has a data point of %d bytes; at most %d are accepted", metric, len(point),
				limit), 1)
			continue
		}
		d.points = protowire.AppendBytes(protowire.AppendTag(d.points, otlpPoints, protowire.BytesType), point)
		if len(d.points) < pointsAtOnce {
			continue
		}
		if err := d.flush(metric, to); err != nil {
			return err
		}
	}
	return d.flush(metric, to)
}

// pointAttributes returns how many attributes a data point has, and removes its exemplars.
func (d *otlp) pointAttributes(point *[]byte) (n int, err error) {
	exemplars := 0
	for f, err := range fields(*point) {
		switch {
		case err != nil:
			return 0, Malformed(err)
		case f.number == otlpAttributes:
			n++
		case f.number == otlpExemplars:
			exemplars++
		}
	}
	if exemplars > 0 {
		d.seen.Exemplars += exemplars
		*point = d.keep(*point, otlpStart, otlpTime, otlpDouble, otlpInt, otlpAttributes, otlpFlags)
	}
	return n, nil
}

// flush decodes the data points that points collected, and gives them to the Consumer.
func (d *otlp) flush(metric string, to Consumer) error {
	if len(d.points) == 0 {
		return nil
	}
	resource, err := unmarshalOTLP(d.points, otlpResourceMetrics, otlpScopeMetrics, otlpMetrics, otlpGauge)
	if err != nil {
		return err
	}
	d.points = d.points[:0]
	if err := d.labeler.prepare(metric); err != nil {
		return err
	}
	points := resource.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
	for _, p := range points.All() {
		if err := d.decodePoint(p, metric, to); err != nil {
			return err
		}
	}
	return nil
}

// decodePoint passes a data point to the consumer.
func (d *otlp) decodePoint(p pmetric.NumberDataPoint, metric string, to Consumer) error {
	err := d.labeler.label(p.Attributes(), metric)
	if err == nil {
		err = d.setSample(p)
	}
	if err != nil {
		to.Invalid(fmt.Errorf("%s: %w", metric, err), 1)
		return nil
	}
	if len(d.labels) > d.limits.Labels {
		to.Invalid(d.tooManyLabels(metric), 1)
		return nil
	}
	return d.deliver(nil, to)
}

// setSample makes the sample of a data point.
func (d *otlp) setSample(p pmetric.NumberDataPoint) error {
	x := Sample{T: milliseconds(p.Timestamp()), Start: milliseconds(p.StartTimestamp()), Kind: d.kind}
	switch {
	case x.T == 0:
		return errors.New("a data point has no time")
	case p.Flags().NoRecordedValue():
		x.V = math.Float64frombits(value.StaleNaN)
	case p.ValueType() == pmetric.NumberDataPointValueTypeDouble:
		x.V = p.DoubleValue()
	case p.ValueType() == pmetric.NumberDataPointValueTypeInt:
		x.V = float64(p.IntValue())
	default:
		return errors.New("a data point has no value")
	}
	d.samples = append(d.samples[:0], x)
	return nil
}

func milliseconds(t pcommon.Timestamp) int64 { return int64(t / 1e6) }

func (d *otlp) reset() {
	d.labeler.reset()
	d.points = d.points[:0]
}
