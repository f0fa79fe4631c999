// Package decode reads the messages of Prometheus remote write 1.0 (prometheus.WriteRequest) and 2.0
// (io.prometheus.write.v2.Request), and of OTLP (ExportMetricsServiceRequest), series by series. Series of
// metrics that the consumer does not desire are skipped before they are decoded. The memory of a request is
// bounded by [Limits].
//
// Metrics and attributes of OTLP get the names that Prometheus would give them, and each data point is a series
// with one sample.
package decode

import (
	"github.com/prometheus/client_golang/exp/api/remote"

	"github.com/foresail/foresail/internal/promapi"
)

// Decoder decodes one request after the other, and reuses its memory. It is not safe for concurrent use.
type Decoder struct {
	request request
	v1      writeV1
	v2      writeV2
	otlp    otlp
}

// PodLabels appends the labels that name the pods of a metric's series in a namespace.
type PodLabels func(metric, namespace string, to []string) []string

// New returns a decoder. podLabels may be nil: no such label is known.
func New(l Limits, tenancy promapi.Tenancy, podLabels PodLabels) *Decoder {
	d := &Decoder{request: request{limits: l}}
	d.v1.request, d.v2.request, d.otlp.request = &d.request, &d.request, &d.request
	d.otlp.labeler = otlpLabeler{request: &d.request, tenancy: tenancy, podLabels: podLabels}
	return d
}

// Write decodes a request of remote write. An error, which is an *Error, rejects it as a whole.
func (d *Decoder) Write(version remote.WriteMessageType, body []byte, to CachingConsumer) error {
	if version == remote.WriteV2MessageType {
		return d.v2.decode(body, to)
	}
	return d.v1.decode(body, to)
}

// OTLP decodes a request of OTLP in protobuf. An error, which is an *Error, rejects it as a whole.
func (d *Decoder) OTLP(body []byte, to Consumer) error { return d.otlp.decode(body, to) }

// Seen returns the content of the request so far.
func (d *Decoder) Seen() Content { return d.request.seen }

// Capacity returns the size of the buffers that d reuses: in bytes, and in items of other types.
func (d *Decoder) Capacity() (bytes, items int) {
	return cap(d.request.kept) + cap(d.otlp.points), cap(d.request.samples) + cap(d.v2.symbols)
}

// Reset drops a request, so that the next one can be decoded.
func (d *Decoder) Reset() {
	d.request.reset()
	d.v1.reset()
	d.v2.reset()
	d.otlp.reset()
}
