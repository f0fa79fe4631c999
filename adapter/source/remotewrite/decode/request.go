package decode

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Consumer takes decoded series.
type Consumer interface {
	// Desired reports whether a metric is desired; if not, it counts the samples.
	Desired(metric string, samples int) bool
	// Add takes a series whose metric is desired. written is how a request of remote write 1.0 spells the labels,
	// nil if the series is not worth caching. The caller may reuse its arguments when it returns.
	Add(l Labels, samples []Sample, written []byte)
	// Invalid counts samples that are rejected for their labels.
	Invalid(reason error, samples int)
	// Unsupported counts samples of a type that cannot be read.
	Unsupported(reason error, samples int)
}

// CachingConsumer is a Consumer that caches the series of remote write 1.0, whose labels are then not decoded again.
type CachingConsumer interface {
	Consumer
	// Recall reports whether a series whose labels are written so is cached. AddRecalled then takes its samples.
	Recall(written []byte) bool
	// AddRecalled is Add for the series that Recall found.
	AddRecalled([]Sample)
}

// Content counts the elements of a request.
type Content struct{ Series, Samples, Histograms, Exemplars, Metadata int }

// request is the state of the request that is being decoded, whichever the protocol. It is reused.
type request struct {
	limits  Limits
	seen    Content // so far
	spelled int64   // bytes of labels so far, where symbols are as long as the strings they stand for

	labels  Labels // of the series that is being decoded
	samples []Sample
	kept    []byte // see keep
}

// count adds content to that of the request, and checks the limits.
func (r *request) count(c Content) error {
	r.seen.Series += c.Series
	r.seen.Samples += c.Samples
	r.seen.Histograms += c.Histograms
	r.seen.Exemplars += c.Exemplars
	r.seen.Metadata += c.Metadata
	if r.seen.Series > r.limits.Series {
		return tooMany("series", r.limits.Series)
	}
	if r.seen.Samples > r.limits.Samples {
		return tooMany("samples", r.limits.Samples)
	}
	return nil
}

// keep returns a valid message with only some of its fields, so that the others take no memory once decoded. It
// is valid until the next call.
func (r *request) keep(message []byte, desired ...protowire.Number) []byte {
	r.kept = r.kept[:0]
	for f, err := range fields(message) {
		if err == nil && slices.Contains(desired, f.number) {
			r.kept = append(r.kept, f.whole...)
		}
	}
	return r.kept
}

// deliver passes the decoded series to the consumer.
func (r *request) deliver(written []byte, to Consumer) error {
	for _, x := range r.labels {
		r.spelled += int64(len(x.Name) + len(x.Value))
	}
	if r.spelled > r.limits.DecodedBytes {
		return &Error{TooLarge: true, Reason: fmt.Sprintf(
			"the labels take more than %d bytes once they are written out for each series", r.limits.DecodedBytes)}
	}
	l := r.labels.normal()
	if err := l.check(&r.limits); err != nil {
		to.Invalid(err, len(r.samples))
		return nil
	}
	to.Add(l.withoutEmpty(), r.samples, written)
	return nil
}

func (r *request) tooManyLabels(of string) error {
	return fmt.Errorf("%.64s has more than %d labels", of, r.limits.Labels)
}

func (r *request) reset() {
	clear(r.labels[:cap(r.labels)])
	r.seen, r.spelled = Content{}, 0
}
