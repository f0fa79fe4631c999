package predictedmetric

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// forecasts are what is published, by PredictedMetric.
type forecasts map[types.NamespacedName]snapshot.Snapshot

func (f forecasts) get(key types.NamespacedName) (snapshot.Snapshot, bool) {
	s, ok := f[key]
	return s, ok
}

func forecastOf(at time.Time, predicted float64) snapshot.Snapshot {
	return snapshot.Snapshot{At: at, NewestSample: at, StaleAfter: time.Minute,
		Forecast: pipeline.Forecast{LoadPredicted: predicted}}
}

func resourceSpec(name v1alpha1.ResourceName, container string) *v1alpha1.PredictedMetricSpec {
	return &v1alpha1.PredictedMetricSpec{Source: v1alpha1.Source{Resource: &v1alpha1.ResourceSource{Name: name,
		Container: container}}}
}

func TestPodUse(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	m, told := &allMeasured{}, forecasts{}
	follow := func(namespace, name, selector string, spec *v1alpha1.PredictedMetricSpec, s snapshot.Snapshot) {
		parsed, err := labels.Parse(selector)
		require.NoError(t, err)
		key := types.NamespacedName{Namespace: namespace, Name: name}
		m.set(key, spec, parsed)
		told[key] = s
	}
	fresh := func(predicted float64) snapshot.Snapshot { return forecastOf(now, predicted) }
	unread := fresh(9)
	unread.Err = errors.New("nothing has been read yet")
	follow("shop", "cpu", "app=checkout", resourceSpec(v1alpha1.ResourceCPU, ""), fresh(0.5))
	follow("shop", "memory", "app=checkout", resourceSpec(v1alpha1.ResourceMemory, ""), fresh(300e6))
	follow("shop", "canary", "app=checkout,track=canary", resourceSpec(v1alpha1.ResourceCPU, ""), fresh(0.8))
	follow("shop", "either", "app in (search,index)", resourceSpec(v1alpha1.ResourceCPU, ""), fresh(2))
	follow("shop", "part", "app=cart", resourceSpec(v1alpha1.ResourceCPU, "main"), fresh(9))
	follow("shop", "other-source", "app=cart",
		&v1alpha1.PredictedMetricSpec{Source: v1alpha1.Source{Pods: &v1alpha1.PodsSource{}}}, fresh(9))
	follow("shop", "unread", "app=cart", resourceSpec(v1alpha1.ResourceMemory, ""), unread)
	follow("shop", "old", "app=cart", resourceSpec(v1alpha1.ResourceMemory, ""),
		forecastOf(now.Add(-61*time.Second), 9))
	dry := fresh(9)
	dry.DryRun = true
	follow("shop", "dry", "app=cart", resourceSpec(v1alpha1.ResourceMemory, ""), dry)
	follow("bank", "cpu", "app=checkout", resourceSpec(v1alpha1.ResourceCPU, ""), fresh(3))

	u := &PodUses{measured: m, forecast: told.get, now: func() time.Time { return now }}
	u.publish()
	for _, c := range []struct {
		namespace     string
		pod           labels.Set
		cores, memory float64
	}{
		{"shop", labels.Set{"app": "checkout", "pod-template-hash": "abc"}, 0.5, 300e6},
		{"shop", labels.Set{"app": "checkout", "track": "canary"}, 0.8, 300e6}, // the larger
		{"shop", labels.Set{"app": "index"}, 2, 0},
		// of one container, of another source, without a forecast, of old, in dry run
		{"shop", labels.Set{"app": "cart"}, 0, 0},
		{"shop", nil, 0, 0},
		{"bank", labels.Set{"app": "checkout"}, 3, 0},
		{"home", labels.Set{"app": "checkout"}, 0, 0},
	} {
		cores, memory := u.PodUse(c.namespace, c.pod)
		assert.Equal(t, [2]float64{c.cores, c.memory}, [2]float64{cores, memory}, "%s %v", c.namespace, c.pod)
	}
}

func TestPodUsesFollowForecasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, told := &allMeasured{}, forecasts{key: forecastOf(time.Now().Add(time.Hour), 1)}
		m.set(key, resourceSpec(v1alpha1.ResourceCPU, ""), labels.SelectorFromSet(labels.Set{"app": "checkout"}))
		u := &PodUses{measured: m, forecast: told.get, now: time.Now}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- u.Run(ctx) }()
		synctest.Wait()
		cores, _ := u.PodUse("shop", labels.Set{"app": "checkout"})
		assert.Equal(t, 1.0, cores)

		m.forget(key)
		time.Sleep(usesPeriod)
		synctest.Wait()
		cores, _ = u.PodUse("shop", labels.Set{"app": "checkout"})
		assert.Zero(t, cores)
		cancel()
		require.NoError(t, <-ended)
	})
}

// A PredictedMetric that looks far ahead claims no more for its pods than what they use when the nodes are filled.
func TestPodUsesLookNoFurtherAheadThanNodes(t *testing.T) {
	for horizon, want := range map[time.Duration]float64{time.Minute: 100, 2 * time.Minute: 100, 20 * time.Minute: 19} {
		s := forecastOf(time.Now(), 100)
		s.Forecast.LoadNow, s.Forecast.Horizon = 10, horizon
		m := &allMeasured{}
		m.set(key, resourceSpec(v1alpha1.ResourceCPU, ""), labels.Everything())
		u := &PodUses{measured: m, forecast: forecasts{key: s}.get, now: time.Now, horizon: 2 * time.Minute}
		u.publish()
		cores, _ := u.PodUse("shop", nil)
		assert.InDelta(t, want, cores, 1e-9, horizon)
	}
}

// What is measured follows the spec and the scale, and ends with the PredictedMetric.
func TestReconcileRecordsMeasuredResources(t *testing.T) {
	pm := predictedMetric()
	c := newCluster(t, pm)
	known := func() (found []string) {
		c.measured.each(func(key types.NamespacedName, m measured) {
			found = append(found, key.String()+" "+string(m.resource)+" "+m.selector.String())
		})
		return found
	}
	c.reconcile()
	assert.Empty(t, known(), "the source is not resource")

	pm.Spec.Source = v1alpha1.Source{Resource: &v1alpha1.ResourceSource{Name: v1alpha1.ResourceMemory}}
	require.NoError(t, c.Client.Update(t.Context(), pm))
	c.reconcile()
	assert.Equal(t, []string{"shop/checkout memory app=checkout"}, known())
	u := NewPodUses(c.Reconciler, time.Minute, time.Now)
	u.publish()
	cores, memory := u.PodUse("shop", labels.Set{"app": "checkout"})
	assert.Zero(t, cores+memory, "there is no forecast yet")

	pm.Spec.Source.Resource.Container = "main"
	require.NoError(t, c.Client.Update(t.Context(), pm))
	c.reconcile()
	assert.Empty(t, known(), "a container is not a pod")

	pm.Spec.Source.Resource.Container = ""
	require.NoError(t, c.Client.Update(t.Context(), pm))
	c.reconcile()
	require.Len(t, known(), 1)
	require.NoError(t, c.Client.Delete(t.Context(), pm))
	c.reconcile()
	assert.Empty(t, known())
}
