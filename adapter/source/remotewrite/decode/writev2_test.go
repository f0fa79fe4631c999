package decode

import (
	"testing"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/assert"
)

func TestKindsOfSeriesOfAFamily(t *testing.T) {
	for _, test := range []struct {
		metric string
		family writev2.Metadata_MetricType
		want   Kind
	}{
		{"http_requests_total", writev2.Metadata_METRIC_TYPE_COUNTER, Counter},
		{"latency_count", writev2.Metadata_METRIC_TYPE_HISTOGRAM, Counter},
		{"latency_sum", writev2.Metadata_METRIC_TYPE_SUMMARY, Counter},
		{"latency_bucket", writev2.Metadata_METRIC_TYPE_HISTOGRAM, Counter},
		{"latency", writev2.Metadata_METRIC_TYPE_SUMMARY, Unknown},
		{"sizes_bucket", writev2.Metadata_METRIC_TYPE_GAUGEHISTOGRAM, Gauge},
		{"load", writev2.Metadata_METRIC_TYPE_GAUGE, Gauge},
		{"build_info", writev2.Metadata_METRIC_TYPE_INFO, Unknown},
		{"load", 77, Unknown},
	} {
		assert.Equal(t, test.want, kindOf(test.metric, test.family), test.metric)
	}
}
