package checkpoint

import (
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// telemetry is the metrics of checkpoints.
type telemetry struct {
	readable prometheus.Gauge
	writes   *prometheus.CounterVec
	restores *prometheus.CounterVec
}

func newTelemetry(r prometheus.Registerer) *telemetry {
	t := &telemetry{
		readable: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "foresail_checkpoints_readable",
			Help: "1 if the PredictedMetricCheckpoints could be read at the last attempt, else 0: the kind is missing, or the right to it.",
		}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "foresail_checkpoint_writes_total",
			Help: "Attempts of the elected replica to write a PredictedMetricCheckpoint, by result: OK, NotServed if the cluster lacks the kind, or the reason of the API server.",
		}, []string{"result"}),
		restores: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "foresail_checkpoint_reads_total",
			Help: "PredictedMetricCheckpoints read, by result: Adopted, Known if nothing new is in it, or Ignored if it is of another source, target or version, or no checkpoint.",
		}, []string{"result"}),
	}
	r.MustRegister(t.readable, t.writes, t.restores)
	return t
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
