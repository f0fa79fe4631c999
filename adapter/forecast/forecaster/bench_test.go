package forecaster

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/pipeline"
)

// BenchmarkRound gives each pod a sample, and makes all forecasts, over and over: what a second costs.
func BenchmarkRound(b *testing.B) {
	const metrics, pods = 250, 20
	random := rand.New(rand.NewPCG(1, 2))
	now := time.UnixMilli(1_800_000_000_000)
	f := New(func() time.Time { return now }, prometheus.NewRegistry(), Options{})
	p := pipeline.AdaptiveParams()
	p.Threshold, p.Max = 0.7, 100
	window := p.WindowFor(p.StartupTime)
	var feeds []*Feed
	fleet := &fleet{}
	for range pods {
		fleet.start(now.Add(-time.Hour))
	}
	for i := range metrics {
		feed, err := f.Set(types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("m%04d", i)},
			Config{Params: p, Source: "remoteWrite", TargetKind: "Deployment", TargetName: fmt.Sprint("m", i)})
		require.NoError(b, err)
		feed.SetPods(fleet)
		feed.SetReplicas(pods)
		feeds = append(feeds, feed)
	}
	second := func() {
		now = now.Add(time.Second)
		for _, feed := range feeds {
			for i := range fleet.all {
				feed.Append(fleet.all[i].ID,
					pipeline.Sample{T: now.UnixMilli() - 100 - int64(10*i), V: 0.5 + 0.1*random.Float64()})
			}
		}
		f.runAll()
	}
	for range int(window/time.Second) + 10 {
		second()
	}
	require.NoError(b, feeds[0].Snapshot().Err)
	b.ReportAllocs()
	for b.Loop() {
		second()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*metrics), "ns/forecast")
}
