package decode

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/protobuf/encoding/protowire"
)

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

// metricNamer gives metrics the names that Prometheus' own endpoint does by default.
var metricNamer = otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)

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
			return m, Malformed(err)
		case f.number == otlpName:
			m.name = f.value
		case f.number == otlpUnit:
			m.unit = f.value
		case !slices.Contains([]protowire.Number{otlpGauge, otlpSum, otlpHistogram, otlpExponential, otlpSummary},
			f.number):
		case f.value == nil:
			return m, Malformed(errWireType)
		case m.kind != 0:
			return m, Malformed(errTwoKinds)
		default:
			m.kind, m.data = f.number, f.value
		}
	}
	for f, err := range fields(m.data) {
		switch {
		case err != nil:
			return m, Malformed(err)
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

// numbers reports whether the data points are numbers.
func (m *otlpMetric) numbers() bool { return m.kind == otlpGauge || m.kind == otlpSum }

// translatedName returns the name of the metric in Prometheus.
func (m *otlpMetric) translatedName(l *Limits) (string, error) {
	if n := len(m.name) + len(m.unit); n > l.LabelValueBytes {
		return "", fmt.Errorf("a metric has a name and a unit of %d bytes; at most %d are accepted", n,
			l.LabelValueBytes)
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

// unmarshalOTLP decodes a message that is in the field of this path in a request.
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
		return pmetric.ResourceMetrics{}, Malformed(err)
	}
	return request.Metrics().ResourceMetrics().At(0), nil
}
