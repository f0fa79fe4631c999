//go:build !race

package forecaster

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/pipeline"
)

// TestMemoryOfANamespaceIsBounded fills budgets with the densest readings that a spec may ask for,
// from more namespaces than there are cores. What a forecast works in is needed once, not once for
// each core.
func TestMemoryOfANamespaceIsBounded(t *testing.T) {
	const namespaces, pods = 4, 80
	now := time.Now().Truncate(time.Second)
	f := New(func() time.Time { return now }, prometheus.NewRegistry(), Options{MaxReadings: 3_000_000})
	before := heap()
	for n := range namespaces {
		for m := range 2 { // the second is beyond the budget
			c := config()
			c.Params.Interval, c.Params.Window, c.Interval = 100*time.Millisecond, 10*time.Minute, 100*time.Millisecond
			c.Params.StaleAfter = time.Hour
			c.Created, c.TargetName = now.Add(time.Duration(m)), fmt.Sprint("target-", m)
			if m == 0 {
				c.Params.Window = time.Hour
			}
			feed, err := f.Set(types.NamespacedName{Namespace: fmt.Sprint("team-", n), Name: fmt.Sprint(m)}, c)
			require.NoError(t, err)
			w := &fleet{}
			feed.SetPods(w)
			feed.SetReplicas(pods)
			for range pods {
				id := w.start(now.Add(-2 * time.Hour))
				for i := range int(c.Params.Window / c.Interval) {
					feed.Append(id, pipeline.Sample{T: now.Add(-c.Params.Window).UnixMilli() + int64(i+1)*100, V: 0.5})
				}
			}
		}
	}
	for range 3 {
		f.runAll()
	}
	samples, work := float64(namespaces*pods*(36_000))*16, float64(pods*36_000)*8
	took := float64(heap() - before)
	t.Logf("%d namespaces at their budgets: %.0f MiB; their samples alone %.0f MiB, what one forecast works in %.0f MiB",
		namespaces, took/(1<<20), samples/(1<<20), work/(1<<20))
	assert.Less(t, took, 1.25*samples+2*work)
	for n := range namespaces {
		served, _ := f.Get(types.NamespacedName{Namespace: fmt.Sprint("team-", n), Name: "0"})
		assert.NoError(t, served.Err)
		refused, _ := f.Get(types.NamespacedName{Namespace: fmt.Sprint("team-", n), Name: "1"})
		assert.ErrorContains(t, refused.Err, "must be at most 3000000 together")
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
