package decode

import (
	"fmt"
	"strings"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of io.prometheus.write.v2.Request and of its series. The request has none below v2Symbols.
const (
	v2Symbols, v2Series                                        protowire.Number = 4, 5
	v2Labels, v2Samples, v2Histograms, v2Exemplars, v2Metadata protowire.Number = 1, 2, 3, 4, 5
	v2MetadataType                                             protowire.Number = 1
)

// symbolsPerSeries is the maximum number of symbols for each series: few differ from series to series.
const symbolsPerSeries = 8

// writeV2 decodes requests of remote write 2.0.
type writeV2 struct {
	*request

	series  writev2.TimeSeries
	symbols []string
}

// decode decodes a request.
func (d *writeV2) decode(body []byte, to Consumer) error {
	// The symbols may come after the series that refer to them.
	if err := d.readSymbols(body); err != nil {
		return err
	}
	for f, err := range fields(body) {
		switch {
		case err != nil:
			return Malformed(err)
		case f.number == v2Series:
			if err := d.decodeSeries(f.value, to); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *writeV2) readSymbols(body []byte) error {
	limit := symbolsPerSeries * d.limits.Series
	for f, err := range fields(body) {
		switch {
		case err != nil:
			return Malformed(err)
		case f.number < v2Symbols:
			return Malformed(errOtherVersion)
		case f.number != v2Symbols:
			continue
		case f.value == nil:
			return Malformed(errWireType)
		case len(d.symbols) == limit:
			return tooMany("symbols", limit)
		}
		d.symbols = append(d.symbols, string(f.value))
	}
	return nil
}

// seriesV2 is a series whose fields have been counted and not decoded.
type seriesV2 struct {
	refs    int // bytes, which are no fewer than references
	family  writev2.Metadata_MetricType
	content Content
}

// parse counts the fields of a series.
func (s *seriesV2) parse(message []byte) error {
	s.content.Series = 1
	for f, err := range fields(message) {
		switch {
		case err != nil:
			return Malformed(err)
		case f.number == v2Labels:
			s.refs += len(f.whole)
		case f.number == v2Samples:
			s.content.Samples++
		case f.number == v2Histograms:
			s.content.Histograms++
		case f.number == v2Exemplars:
			s.content.Exemplars++
		case f.number == v2Metadata:
			s.content.Metadata++
			if s.family, err = familyOf(f.value); err != nil {
				return Malformed(err)
			}
		}
	}
	return nil
}

// familyOf returns the type of a family from its metadata.
func familyOf(metadata []byte) (writev2.Metadata_MetricType, error) {
	family := writev2.Metadata_METRIC_TYPE_UNSPECIFIED
	for f, err := range fields(metadata) {
		if err != nil {
			return family, err
		}
		if f.number == v2MetadataType {
			family = writev2.Metadata_MetricType(f.varint) // #nosec G115 -- a type that does not exist is no known one
		}
	}
	return family, nil
}

func (d *writeV2) decodeSeries(message []byte, to Consumer) error {
	var s seriesV2
	if err := s.parse(message); err != nil {
		return err
	}
	if err := d.count(s.content); err != nil {
		return err
	}
	if limit := 2 * (d.limits.Labels + 1) * protowire.SizeVarint(1<<32-1); s.refs > limit {
		to.Invalid(d.tooManyLabels("a series"), s.content.Samples)
		return nil
	}
	return d.unmarshal(d.keep(message, v2Labels, v2Samples), &s, to)
}

func (d *writeV2) unmarshal(message []byte, s *seriesV2, to Consumer) error {
	d.series = writev2.TimeSeries{LabelsRefs: d.series.LabelsRefs[:0], Samples: d.series.Samples[:0]}
	if err := d.series.Unmarshal(message); err != nil {
		return Malformed(err)
	}
	metric, err := d.resolve()
	if err != nil {
		to.Invalid(err, s.content.Samples)
		return nil
	}
	if !to.Desired(metric, s.content.Samples) {
		return nil
	}
	if len(d.labels) > d.limits.Labels {
		to.Invalid(d.tooManyLabels(metric), s.content.Samples)
		return nil
	}
	d.samples = d.samples[:0]
	kind := kindOf(metric, s.family)
	for i := range d.series.Samples {
		x := &d.series.Samples[i]
		d.samples = append(d.samples, Sample{T: x.Timestamp, Start: x.StartTimestamp, V: x.Value, Kind: kind})
	}
	return d.deliver(nil, to)
}

// kindOf returns the kind of a series by its name and the metadata of its family.
func kindOf(metric string, family writev2.Metadata_MetricType) Kind {
	switch family {
	case writev2.Metadata_METRIC_TYPE_COUNTER:
		return Counter
	case writev2.Metadata_METRIC_TYPE_GAUGE, writev2.Metadata_METRIC_TYPE_GAUGEHISTOGRAM:
		return Gauge
	case writev2.Metadata_METRIC_TYPE_HISTOGRAM, writev2.Metadata_METRIC_TYPE_SUMMARY:
		for _, suffix := range []string{"_count", "_sum", "_bucket"} {
			if strings.HasSuffix(metric, suffix) {
				return Counter
			}
		}
	}
	return Unknown
}

// resolve resolves the label references of a series and returns the name of its metric.
func (d *writeV2) resolve() (metric string, err error) {
	refs := d.series.LabelsRefs
	d.labels = d.labels[:0]
	if len(refs)%2 != 0 {
		return "", fmt.Errorf("a series has %d references to symbols; a name and a value each make that even",
			len(refs))
	}
	for i := 0; i < len(refs); i += 2 {
		name, value := int(refs[i]), int(refs[i+1])
		if max(name, value) >= len(d.symbols) {
			return "", fmt.Errorf("a series refers to symbol %d; there are %d", max(name, value), len(d.symbols))
		}
		l := Label{d.symbols[name], d.symbols[value]}
		if l.Name == MetricName && metric == "" {
			metric = l.Value
		}
		d.labels = append(d.labels, l)
	}
	if metric == "" {
		return "", errNoMetric
	}
	return metric, nil
}

func (d *writeV2) reset() {
	clear(d.symbols)
	d.symbols = d.symbols[:0]
}
