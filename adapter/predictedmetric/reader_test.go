package predictedmetric

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

// A reader names the cause that kubectl get shows in its column REASON.
func TestReadersSeeTheReasonOfTheStatus(t *testing.T) {
	key := types.NamespacedName{Namespace: "shop", Name: "checkout"}
	s := snapshot.Snapshot{Metric: key,
		Err: &snapshot.Unavailable{Reason: snapshot.NoReadyPods, Message: "the scale target has not been found yet"}}
	reader := Reader{Reconciler: &Reconciler{}}
	same := s
	reader.explain(&same)
	assert.EqualError(t, same.Err, "the scale target has not been found yet")

	reader.Reconciler.problems.m.Store(key, problem{target: true,
		err: errors.New(`deployments.apps "chekout" not found`)})
	reader.explain(&s)
	assert.Equal(t, &snapshot.Unavailable{Reason: reasonNoScale, Message: `deployments.apps "chekout" not found`},
		s.Err)
	served := snapshot.Snapshot{Metric: key}
	reader.explain(&served)
	assert.NoError(t, served.Err)
}
