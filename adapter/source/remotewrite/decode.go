package remotewrite

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"google.golang.org/protobuf/encoding/protowire"
)

// sample is a sample as pushed: times in ms, start 0 where it is not known since when a counter counts.
type sample struct {
	t, start int64
	v        float64
	kind     kind
}

// content counts the elements of a request.
type content struct{ series, samples, histograms, exemplars, metadata int }

// decoder decodes requests series by series into messages that it reuses. Series of other metrics are not decoded.
type decoder struct {
	options *Options
	seen    content // so far, in the request
	spelled int64   // bytes of labels so far, where symbols are as long as what they stand for

	v1       prompb.TimeSeries
	v1Sample prompb.Sample
	v2       writev2.TimeSeries
	otlp     otlp
	// podLabels appends the labels that name the pods of a metric's series in a namespace. nil: none is known.
	podLabels func(metric, namespace string, to []string) []string
	symbols   []string
	kept      []byte
	labels    labels
	family    writev2.Metadata_MetricType // of the series of version 2
	written   []byte                      // the labels as they are in a request of version 1, nil where the series is not to be known
	samples   []sample
}

// consumer takes decoded series.
type consumer interface {
	// desired returns whether a metric is desired; if not, it counts the samples.
	desired(metric string, samples int) bool
	// add takes a series whose metric is desired. The caller may reuse its arguments when it returns.
	add(labels, []sample)
	// invalid counts the samples of a series that is rejected.
	invalid(as result, reason error, samples int)
}

// acquaintance is a consumer that knows series again.
type acquaintance interface {
	consumer
	// known returns a series that was added before, by how its labels are written, nil if it is not known.
	known(written []byte) *known
	// addKnown is add for such a series.
	addKnown(*known, []sample)
}

// errOtherVersion is for fields of the other protocol version. Skipping them would lose samples unseen.
var errOtherVersion = errors.New("it has fields of another version of the protocol")

func malformed(err error) error {
	return &rejection{http.StatusBadRequest, fmt.Sprintf("the body is not the message that the Content-Type names: %v", err)}
}

func tooMany(what string, limit int) error {
	return &rejection{http.StatusRequestEntityTooLarge, fmt.Sprintf("more than %d %s in one request", limit, what)}
}

// decode decodes a request. An error rejects it as a whole.
func (d *decoder) decode(version remote.WriteMessageType, body []byte, to acquaintance) error {
	if version == remote.WriteV2MessageType {
		return d.decodeV2(body, to)
	}
	return d.decodeV1(body, to)
}

// Fields of prometheus.WriteRequest and of its series.
const (
	v1Series, v1Metadata                                  protowire.Number = 1, 3
	v1Labels, v1Samples, v1Exemplars, v1Histograms        protowire.Number = 1, 2, 3, 4
	v1LabelName, v1LabelValue                             protowire.Number = 1, 2
	v2Symbols, v2Series                                   protowire.Number = 4, 5
	v2Labels, v2Samples, v2Histograms, v2Exemplars, v2Met protowire.Number = 1, 2, 3, 4, 5
	v2MetadataType                                        protowire.Number = 1
)

func (d *decoder) decodeV1(body []byte, to acquaintance) error {
	for f, err := range fields(body) {
		switch {
		case err != nil:
			return malformed(err)
		case f.number >= v2Symbols:
			return malformed(errOtherVersion)
		case f.number == v1Metadata:
			d.seen.metadata++
		case f.number == v1Series:
			if err := d.seriesV1(f.value, to); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *decoder) seriesV1(message []byte, to acquaintance) error {
	var metric []byte
	c := content{series: 1}
	count, labelled, read := 0, 0, 0 // labelled: bytes, up to the last label
	scattered := false
	for f, err := range fields(message) {
		read += len(f.whole)
		switch {
		case err != nil:
			return malformed(err)
		case f.number == v1Labels:
			count++
			scattered = scattered || labelled+len(f.whole) != read
			labelled = read
			if metric == nil {
				metric = metricOf(f.value)
			}
		case f.number == v1Samples:
			c.samples++
		case f.number == v1Histograms:
			c.histograms++
		case f.number == v1Exemplars:
			c.exemplars++
		}
	}
	if err := d.count(c); err != nil {
		return err
	}
	if metric == nil {
		to.invalid(invalidLabels, errNoMetric, c.samples)
		return nil
	}
	if !to.desired(string(metric), c.samples) {
		return nil
	}
	d.written = nil
	if !scattered && labelled <= maxKnownBytes {
		d.written = message[:labelled]
		if s := to.known(d.written); s != nil {
			return d.again(s, message[labelled:], to)
		}
	}
	if count > d.options.MaxLabels {
		to.invalid(invalidLabels, d.tooManyLabels(string(metric)), c.samples)
		return nil
	}
	if c.histograms+c.exemplars > 0 {
		message = d.keep(message, v1Labels, v1Samples)
	}
	return d.unmarshalV1(message, to)
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
	if string(name) != metricName || len(value) == 0 {
		return nil
	}
	return value
}

func (d *decoder) unmarshalV1(message []byte, to consumer) error {
	d.v1 = prompb.TimeSeries{Labels: d.v1.Labels[:0], Samples: d.v1.Samples[:0]}
	if err := d.v1.Unmarshal(message); err != nil {
		return malformed(err)
	}
	d.labels, d.samples = d.labels[:0], d.samples[:0]
	for i := range d.v1.Labels {
		d.labels = append(d.labels, label{d.v1.Labels[i].Name, d.v1.Labels[i].Value})
	}
	for i := range d.v1.Samples {
		d.samples = append(d.samples, sample{t: d.v1.Samples[i].Timestamp, v: d.v1.Samples[i].Value})
	}
	return d.hand(to)
}

// again decodes what follows the labels of a known series. The labels are part of the body, and so within the limits.
func (d *decoder) again(s *known, rest []byte, to acquaintance) error {
	d.samples = d.samples[:0]
	for f, err := range fields(rest) {
		switch {
		case err != nil:
			return malformed(err)
		case f.number != v1Samples:
			continue
		case f.value == nil:
			return malformed(errWireType)
		}
		d.v1Sample.Reset() // what is absent is 0
		if err := d.v1Sample.Unmarshal(f.value); err != nil {
			return malformed(err)
		}
		d.samples = append(d.samples, sample{t: d.v1Sample.Timestamp, v: d.v1Sample.Value})
	}
	to.addKnown(s, d.samples)
	return nil
}

func (d *decoder) decodeV2(body []byte, to consumer) error {
	// The symbols may come after what refers to them.
	if err := d.readSymbols(body); err != nil {
		return err
	}
	for f, err := range fields(body) {
		switch {
		case err != nil:
			return malformed(err)
		case f.number == v2Series:
			if err := d.seriesV2(f.value, to); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *decoder) readSymbols(body []byte) error {
	limit := symbolsPerSeries * d.options.MaxSeries
	for f, err := range fields(body) {
		switch {
		case err != nil:
			return malformed(err)
		case f.number < v2Symbols:
			return malformed(errOtherVersion)
		case f.number != v2Symbols:
			continue
		case f.value == nil:
			return malformed(errWireType)
		case len(d.symbols) == limit:
			return tooMany("symbols", limit)
		}
		d.symbols = append(d.symbols, string(f.value))
	}
	return nil
}

// symbolsPerSeries is the maximum number of symbols for each series: few differ from series to series.
const symbolsPerSeries = 8

func (d *decoder) seriesV2(message []byte, to consumer) error {
	c := content{series: 1}
	refs := 0 // bytes, which are no fewer than references
	d.family = writev2.Metadata_METRIC_TYPE_UNSPECIFIED
	for f, err := range fields(message) {
		switch {
		case err != nil:
			return malformed(err)
		case f.number == v2Labels:
			refs += len(f.whole)
		case f.number == v2Samples:
			c.samples++
		case f.number == v2Histograms:
			c.histograms++
		case f.number == v2Exemplars:
			c.exemplars++
		case f.number == v2Met:
			c.metadata++
			if d.family, err = familyOf(f.value); err != nil {
				return malformed(err)
			}
		}
	}
	if err := d.count(c); err != nil {
		return err
	}
	if most := 2 * (d.options.MaxLabels + 1) * protowire.SizeVarint(1<<32-1); refs > most {
		to.invalid(invalidLabels, d.tooManyLabels("a series"), c.samples)
		return nil
	}
	return d.unmarshalV2(d.keep(message, v2Labels, v2Samples), c, to)
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

func (d *decoder) unmarshalV2(message []byte, c content, to consumer) error {
	d.v2 = writev2.TimeSeries{LabelsRefs: d.v2.LabelsRefs[:0], Samples: d.v2.Samples[:0]}
	if err := d.v2.Unmarshal(message); err != nil {
		return malformed(err)
	}
	metric, err := d.resolve()
	if err != nil {
		to.invalid(invalidLabels, err, c.samples)
		return nil
	}
	if !to.desired(metric, c.samples) {
		return nil
	}
	if len(d.labels) > d.options.MaxLabels {
		to.invalid(invalidLabels, d.tooManyLabels(metric), c.samples)
		return nil
	}
	d.samples = d.samples[:0]
	is := kindOf(metric, d.family)
	for i := range d.v2.Samples {
		x := &d.v2.Samples[i]
		d.samples = append(d.samples, sample{t: x.Timestamp, start: x.StartTimestamp, v: x.Value, kind: is})
	}
	return d.hand(to)
}

// resolve resolves the label references of a series and returns the name of its metric.
func (d *decoder) resolve() (metric string, err error) {
	refs := d.v2.LabelsRefs
	d.labels = d.labels[:0]
	if len(refs)%2 != 0 {
		return "", fmt.Errorf("a series has %d references to symbols; a name and a value each make that even", len(refs))
	}
	for i := 0; i < len(refs); i += 2 {
		name, value := int(refs[i]), int(refs[i+1])
		if max(name, value) >= len(d.symbols) {
			return "", fmt.Errorf("a series refers to symbol %d; there are %d", max(name, value), len(d.symbols))
		}
		l := label{d.symbols[name], d.symbols[value]}
		if l.name == metricName && metric == "" {
			metric = l.value
		}
		d.labels = append(d.labels, l)
	}
	if metric == "" {
		return "", errNoMetric
	}
	return metric, nil
}

// hand gives a decoded series to the consumer.
func (d *decoder) hand(to consumer) error {
	for _, x := range d.labels {
		d.spelled += int64(len(x.name) + len(x.value))
	}
	if d.spelled > d.options.MaxDecodedBytes {
		return &rejection{http.StatusRequestEntityTooLarge, fmt.Sprintf("the labels take more than %d bytes once they are written out for each series", d.options.MaxDecodedBytes)}
	}
	l := d.labels.normal()
	if err := l.check(d.options); err != nil {
		to.invalid(invalidLabels, err, len(d.samples))
		return nil
	}
	to.add(l.withoutEmpty(), d.samples)
	return nil
}

// count adds content to that of the request, and checks the limits.
func (d *decoder) count(c content) error {
	d.seen.series += c.series
	d.seen.samples += c.samples
	d.seen.histograms += c.histograms
	d.seen.exemplars += c.exemplars
	d.seen.metadata += c.metadata
	if d.seen.series > d.options.MaxSeries {
		return tooMany("series", d.options.MaxSeries)
	}
	if d.seen.samples > d.options.MaxSamples {
		return tooMany("samples", d.options.MaxSamples)
	}
	return nil
}

// keep returns a valid message with only some of its fields, so that the others take no memory once decoded.
func (d *decoder) keep(message []byte, desired ...protowire.Number) []byte {
	d.kept = d.kept[:0]
	for f, err := range fields(message) {
		if err == nil && slices.Contains(desired, f.number) {
			d.kept = append(d.kept, f.whole...)
		}
	}
	return d.kept
}

func (d *decoder) tooManyLabels(of string) error {
	return fmt.Errorf("%.64s has more than %d labels", of, d.options.MaxLabels)
}

// reset forgets a request.
func (d *decoder) reset() {
	clear(d.symbols)
	clear(d.labels[:cap(d.labels)])
	clear(d.v1.Labels[:cap(d.v1.Labels)])
	d.otlp.reset()
	d.symbols, d.written, d.seen, d.spelled = d.symbols[:0], nil, content{}, 0
}

// field is one field of a message on the wire.
type field struct {
	number protowire.Number
	value  []byte // of a length-delimited field, else nil
	varint uint64 // of a number of variable length
	whole  []byte // with its tag
}

var errWireType = errors.New("a field has the wrong wire type")

// fields iterates over the fields of a message without decoding them. It ends with the first error.
func fields(message []byte) iter.Seq2[field, error] {
	return func(yield func(field, error) bool) {
		for len(message) > 0 {
			number, kind, tag := protowire.ConsumeTag(message)
			if tag < 0 {
				yield(field{}, protowire.ParseError(tag))
				return
			}
			size := protowire.ConsumeFieldValue(number, kind, message[tag:])
			if size < 0 {
				yield(field{}, protowire.ParseError(size))
				return
			}
			f := field{number: number, whole: message[:tag+size]}
			switch kind {
			case protowire.BytesType:
				f.value, _ = protowire.ConsumeBytes(message[tag:])
			case protowire.VarintType:
				f.varint, _ = protowire.ConsumeVarint(message[tag:])
			}
			if !yield(f, nil) {
				return
			}
			message = message[tag+size:]
		}
	}
}
