package predictedmetric

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

// Reader returns the snapshots of a Reconciler's forecaster. One without a forecast has the reason
// and the message of its condition Ready, so that a reader shows the same cause as kubectl get
// predictedmetrics.
type Reader struct{ Reconciler *Reconciler }

// Get returns the snapshot of one PredictedMetric, and false if there is no such PredictedMetric.
func (r Reader) Get(metric types.NamespacedName) (snapshot.Snapshot, bool) {
	s, known := r.Reconciler.Forecaster.Get(metric)
	if known {
		r.explain(&s)
	}
	return s, known
}

// All returns the snapshots of all PredictedMetrics, in any order.
func (r Reader) All() []snapshot.Snapshot {
	all := r.Reconciler.Forecaster.All()
	for i := range all {
		r.explain(&all[i])
	}
	return all
}

// Trace returns how the newest forecast was made, as forecaster.Forecaster.Trace does.
func (r Reader) Trace(metric types.NamespacedName) (*snapshot.Trace, bool) {
	return r.Reconciler.Forecaster.Trace(metric)
}

func (r Reader) explain(s *snapshot.Snapshot) {
	if _, ok := errors.AsType[*snapshot.Unavailable](s.Err); !ok {
		return
	}
	if c := ready(r.Reconciler.problems.get(s.Metric), *s, true); c.Status == metav1.ConditionFalse {
		s.Err = &snapshot.Unavailable{Reason: snapshot.Reason(c.Reason), Message: c.Message}
	}
}
