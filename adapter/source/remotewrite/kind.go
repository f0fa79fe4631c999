package remotewrite

import (
	"fmt"
	"strings"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/foresail/foresail/adapter/source"
)

// kind is what the sender of a series says that it is.
type kind uint8

const (
	unknownKind kind = iota // as of all series of remote write 1.0, and of recording rules
	gaugeKind
	counterKind
)

// kindOf returns the kind of a series of remote write 2.0 by its name and the metadata of its family.
func kindOf(metric string, family writev2.Metadata_MetricType) kind {
	switch family {
	case writev2.Metadata_METRIC_TYPE_COUNTER:
		return counterKind
	case writev2.Metadata_METRIC_TYPE_GAUGE, writev2.Metadata_METRIC_TYPE_GAUGEHISTOGRAM:
		return gaugeKind
	case writev2.Metadata_METRIC_TYPE_HISTOGRAM, writev2.Metadata_METRIC_TYPE_SUMMARY:
		for _, suffix := range []string{"_count", "_sum", "_bucket"} {
			if strings.HasSuffix(metric, suffix) {
				return counterKind
			}
		}
	}
	return unknownKind
}

// conflict returns why a series of this kind cannot be read as the spec has it, nil if it can.
func (k kind) conflict(as source.Type, metric string) error {
	switch {
	case k == counterKind && as == source.Gauge:
		return fmt.Errorf("%s is a counter by its sender: source.remoteWrite.type must be Counter, "+
			"as the value of a counter is not a load, its rate is", metric)
	case k == gaugeKind && as == source.Counter:
		return fmt.Errorf("%s is a gauge by its sender: source.remoteWrite.type must be Gauge, as a gauge has no rate; "+
			"have the sender declare a counter (OTLP: a monotonic sum) if its value never falls", metric)
	}
	return nil
}
