package remotewrite

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
)

// telemetry is the metrics of a Source.
type telemetry struct {
	duration *prometheus.HistogramVec // by version and code
	samples  [results]prometheus.Counter
	ignored  map[string]prometheus.Counter
	inFlight prometheus.Gauge
}

func newTelemetry(r prometheus.Registerer) *telemetry {
	factory := promauto.With(r)
	samples := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "foresail_remote_write_samples_total",
		Help: "Samples received by remote write and OTLP, by result; a sample that several PredictedMetrics read counts for each.",
	}, []string{"result"})
	ignored := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "foresail_remote_write_ignored_total",
		Help: "Histograms, exemplars and metadata received by remote write and OTLP, which are not used.",
	}, []string{"kind"})
	t := &telemetry{
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "foresail_remote_write_request_duration_seconds",
			Help: "Duration of remote-write and OTLP requests, from header to answer, by protocol version (1, " +
				"2 or otlp) and status code.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"version", "code"}),
		ignored: map[string]prometheus.Counter{},
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "foresail_remote_write_in_flight_bytes",
			Help: "Bytes of the bodies of remote-write and OTLP requests in memory, as sent, decompressed and decoded.",
		}),
	}
	for r := range results {
		t.samples[r] = samples.WithLabelValues(resultNames[r])
	}
	for _, kind := range []string{"histogram", "exemplar", "metadata"} {
		t.ignored[kind] = ignored.WithLabelValues(kind)
	}
	return t
}

// versionOf names a version of remote write.
func versionOf(m remote.WriteMessageType) string {
	switch m {
	case remote.WriteV1MessageType:
		return "1"
	case remote.WriteV2MessageType:
		return "2"
	default:
		return "unknown"
	}
}

// request records an answer.
func (t *telemetry) request(version string, code int, took time.Duration) {
	t.duration.WithLabelValues(version, strconv.Itoa(code)).Observe(took.Seconds())
}

// taken records the content of a request.
func (t *telemetry) taken(of *tally, c *decode.Content) {
	for r, n := range of.of {
		t.samples[r].Add(float64(n))
	}
	t.ignored["histogram"].Add(float64(c.Histograms))
	t.ignored["exemplar"].Add(float64(c.Exemplars))
	t.ignored["metadata"].Add(float64(c.Metadata))
}
