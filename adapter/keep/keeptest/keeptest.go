// Package keeptest has the tests that Keepers of all kinds pass, and what their own tests share.
package keeptest

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/api/v1alpha1"
)

// Metrics returns the PredictedMetrics that a client lists. The test fails if one that was returned is changed, as they
// are those of a cache outside of tests.
func Metrics(tb testing.TB, c client.Reader) keep.Metrics {
	tb.Helper()
	var mu sync.Mutex
	returned := map[*v1alpha1.PredictedMetric]*v1alpha1.PredictedMetric{}
	unchanged := func() {
		mu.Lock()
		defer mu.Unlock()
		for pm, before := range returned {
			assert.Equal(tb, before, pm, "one that must not be changed")
		}
		clear(returned)
	}
	tb.Cleanup(unchanged)
	return func() (out []*v1alpha1.PredictedMetric, err error) {
		unchanged()
		var list v1alpha1.PredictedMetricList
		err = c.List(tb.Context(), &list)
		mu.Lock()
		defer mu.Unlock()
		for i := range list.Items {
			pm := &list.Items[i]
			returned[pm] = pm.DeepCopy()
			out = append(out, pm)
		}
		return out, err
	}
}

// Sent returns the events since the last call.
func Sent(recorder *events.FakeRecorder) (out []string) {
	for {
		select {
		case e := <-recorder.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

// SentReasons returns the types and reasons of the events since the last call.
func SentReasons(recorder *events.FakeRecorder) (out []string) {
	for _, e := range Sent(recorder) {
		out = append(out, strings.Join(strings.Fields(e)[:2], " "))
	}
	return out
}

// WithoutErrorHandlers removes client-go's handlers of errors for a test: they wait until virtual time has reached the
// real one.
func WithoutErrorHandlers(tb testing.TB) {
	tb.Helper()
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	tb.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
}
