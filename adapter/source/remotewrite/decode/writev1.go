package decode

import (
	"github.com/prometheus/prometheus/prompb"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of prometheus.WriteRequest and of its series.
const (
	v1Series, v1Metadata                           protowire.Number = 1, 3
	v1Labels, v1Samples, v1Exemplars, v1Histograms protowire.Number = 1, 2, 3, 4
	v1LabelName, v1LabelValue                      protowire.Number = 1, 2
)

// maxCachedBytes is the maximum size of the labels of a series that is worth caching.
const maxCachedBytes = 4 << 10

// writeV1 decodes requests of remote write 1.0.
type writeV1 struct {
	*request

	series prompb.TimeSeries
	sample prompb.Sample
}

// decode decodes a request.
func (d *writeV1) decode(body []byte, to CachingConsumer) error {
	for f, err := range fields(body) {
		switch {
		case err != nil:
			return Malformed(err)
		case f.number > v1Metadata:
			return Malformed(errOtherVersion)
		case f.number == v1Metadata:
			d.seen.Metadata++
		case f.number == v1Series:
			if err := d.decodeSeries(f.value, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// seriesV1 is a series whose fields have been counted and not decoded.
type seriesV1 struct {
	metric    []byte // nil: it has none
	labels    int
	labelled  int  // bytes up to the last label
	scattered bool // other fields are between the labels
	content   Content
}

// parse counts the fields of a series.
func (s *seriesV1) parse(message []byte) error {
	s.content.Series = 1
	read := 0
	for f, err := range fields(message) {
		read += len(f.whole)
		switch {
		case err != nil:
			return Malformed(err)
		case f.number == v1Labels:
			s.labels++
			s.scattered = s.scattered || s.labelled+len(f.whole) != read
			s.labelled = read
			if s.metric == nil {
				s.metric = metricOf(f.value)
			}
		case f.number == v1Samples:
			s.content.Samples++
		case f.number == v1Histograms:
			s.content.Histograms++
		case f.number == v1Exemplars:
			s.content.Exemplars++
		}
	}
	return nil
}

func (d *writeV1) decodeSeries(message []byte, to CachingConsumer) error {
	var s seriesV1
	if err := s.parse(message); err != nil {
		return err
	}
	if err := d.count(s.content); err != nil {
		return err
	}
	if s.metric == nil {
		to.Invalid(errNoMetric, s.content.Samples)
		return nil
	}
	if !to.Desired(string(s.metric), s.content.Samples) {
		return nil
	}
	var written []byte
	if !s.scattered && s.labelled <= maxCachedBytes {
		if written = message[:s.labelled]; to.Recall(written) {
			return d.decodeRecalled(message[s.labelled:], to)
		}
	}
	if s.labels > d.limits.Labels {
		to.Invalid(d.tooManyLabels(string(s.metric)), s.content.Samples)
		return nil
	}
	if s.content.Histograms+s.content.Exemplars > 0 {
		message = d.keep(message, v1Labels, v1Samples)
	}
	return d.unmarshal(message, written, to)
}

// metricOf returns the value of a label if it is the name of the metric, else nil. If the metric is desired, the series
// is decoded in full later.
func metricOf(message []byte) (value []byte) {
	var name []byte
	for f, err := range fields(message) {
		switch {
		case err != nil:
			return nil
		case f.number == v1LabelName:
			name = f.value
		case f.number == v1LabelValue:
			value = f.value
		}
	}
	if string(name) != MetricName || len(value) == 0 {
		return nil
	}
	return value
}

func (d *writeV1) unmarshal(message, written []byte, to Consumer) error {
	d.series = prompb.TimeSeries{Labels: d.series.Labels[:0], Samples: d.series.Samples[:0]}
	if err := d.series.Unmarshal(message); err != nil {
		return Malformed(err)
	}
	d.labels, d.samples = d.labels[:0], d.samples[:0]
	for i := range d.series.Labels {
		d.labels = append(d.labels, Label{d.series.Labels[i].Name, d.series.Labels[i].Value})
	}
	for i := range d.series.Samples {
		d.samples = append(d.samples, Sample{T: d.series.Samples[i].Timestamp, V: d.series.Samples[i].Value})
	}
	return d.deliver(written, to)
}

// decodeRecalled decodes the fields after the labels of a series that the consumer knows. The labels are part
// of the body, and so within the limits.
func (d *writeV1) decodeRecalled(rest []byte, to CachingConsumer) error {
	d.samples = d.samples[:0]
	for f, err := range fields(rest) {
		switch {
		case err != nil:
			return Malformed(err)
		case f.number != v1Samples:
			continue
		case f.value == nil:
			return Malformed(errWireType)
		}
		d.sample.Reset() // an absent field is 0
		if err := d.sample.Unmarshal(f.value); err != nil {
			return Malformed(err)
		}
		d.samples = append(d.samples, Sample{T: d.sample.Timestamp, V: d.sample.Value})
	}
	to.AddRecalled(d.samples)
	return nil
}

func (d *writeV1) reset() { clear(d.series.Labels[:cap(d.series.Labels)]) }
