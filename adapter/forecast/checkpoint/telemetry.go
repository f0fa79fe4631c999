package checkpoint

import (
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// telemetry is the metrics of checkpoints.
type telemetry struct {
	requests *prometheus.CounterVec // by verb and result
	restores *prometheus.CounterVec
}

func newTelemetry(r prometheus.Registerer) *telemetry {
	t := &telemetry{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "foresail_checkpoint_requests_total",
			Help: "Attempts to follow the PredictedMetricCheckpoints (list) and, of the elected replica, to write " +
				"one (write), by result: " +
				"OK, NotServed if the cluster lacks the kind, or the reason of the API server.",
		}, []string{"verb", "result"}),
		restores: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "foresail_checkpoint_reads_total",
			Help: "PredictedMetricCheckpoints read, by result: Adopted, Known if nothing new is in it, or Ignored if it is of another source, target or version, or no checkpoint.",
		}, []string{"result"}),
	}
	r.MustRegister(t.requests, t.restores)
	return t
}

// Verbs of requests.
const (
	verbList  = "list"
	verbWrite = "write"
)

func (t *telemetry) asked(verb string, err error) {
	t.requests.WithLabelValues(verb, resultOf(err)).Inc()
}

// resultOf names the outcome of a request.
func resultOf(err error) string {
	switch {
	case err == nil:
		return "OK"
	case meta.IsNoMatchError(err):
		return "NotServed"
	}
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	return "Failed"
}
