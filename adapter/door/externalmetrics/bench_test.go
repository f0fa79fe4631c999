package externalmetrics

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving"
)

// fixed is a serving.Reader that never changes, so that the benchmark measures the provider alone.
type fixed struct {
	byName map[types.NamespacedName]snapshot.Snapshot
	list   []snapshot.Snapshot
}

func (f fixed) Get(metric types.NamespacedName) (snapshot.Snapshot, bool) {
	s, ok := f.byName[metric]
	return s, ok
}

func (f fixed) List(string) []snapshot.Snapshot { return f.list }

// BenchmarkGetExternalMetric reads one PredictedMetric of a namespace of n, by its name and by its target's.
func BenchmarkGetExternalMetric(b *testing.B) {
	for _, n := range []int{10, 1000, 5000} {
		f := fixed{byName: map[types.NamespacedName]snapshot.Snapshot{}, list: many(n)}
		for _, s := range f.list {
			f.byName[s.Metric] = s
		}
		p := newTestProvider(f)
		for _, label := range []string{serving.LabelMetric, serving.LabelTarget} {
			last := map[string]string{serving.LabelMetric: f.list[n-1].Metric.Name,
				serving.LabelTarget: f.list[n-1].TargetName}
			selector, err := labels.Parse(label + "=" + last[label])
			require.NoError(b, err)
			b.Run(fmt.Sprintf("by=%s/n=%d", label, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.GetExternalMetric(b.Context(), "shop", selector,
						provider.ExternalMetricInfo{Metric: serving.LoadTotal}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
