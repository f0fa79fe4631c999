package keep

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/api/v1alpha1"
)

// WriteBudget counts the requests of one check, by namespace.
type WriteBudget map[string]int

// TurnsPerCheck is the number of objects of a namespace that may be read or written in a check, so
// that a namespace does not hold up others.
const TurnsPerCheck = 20

// Take reports whether an object of a namespace may be read or written in this check.
func (t WriteBudget) Take(namespace string) bool {
	t[namespace]++
	return t[namespace] <= TurnsPerCheck
}

// RetryPeriod is the time after which a write that was rejected is repeated, unless the spec changes.
const RetryPeriod = 30 * time.Second

// retries are the times at which rejected writes are repeated, by the UID of the PredictedMetric.
type retries map[types.UID]retry

// retry is the time at which the write for a generation is repeated.
type retry struct {
	generation int64
	at         time.Time
}

// hold holds back the next write for a PredictedMetric.
func (r retries) hold(pm *v1alpha1.PredictedMetric, now time.Time) {
	r[pm.UID] = retry{generation: pm.Generation, at: now.Add(RetryPeriod)}
}

// waiting reports whether a write for the present spec was rejected less than RetryPeriod ago.
func (r retries) waiting(pm *v1alpha1.PredictedMetric, now time.Time) bool {
	held, ok := r[pm.UID]
	return ok && held.generation == pm.Generation && now.Before(held.at)
}
