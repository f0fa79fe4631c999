package predictedmetric

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/foresail/foresail/adapter/forecast/forecaster"
)

var deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}

// scaleAPI answers lists and watches of Deployments, or fails.
type scaleAPI struct {
	mu      sync.Mutex
	failure error
	open    []*watch.FakeWatcher
}

// IsWatchListSemanticsUnSupported has a reflector list by a list.
func (*scaleAPI) IsWatchListSemanticsUnSupported() bool { return true }

func (a *scaleAPI) List(metav1.ListOptions) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &appsv1.DeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, a.failure
}

func (a *scaleAPI) Watch(metav1.ListOptions) (watch.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failure != nil {
		return nil, a.failure
	}
	w := watch.NewFake()
	a.open = append(a.open, w)
	return w, nil
}

// fail ends all watches, and refuses new ones for a reason; nil: for none.
func (a *scaleAPI) fail(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failure = why
	for _, w := range a.open {
		w.Stop()
	}
	a.open = nil
}

func TestWatchesKnowSinceWhenChangesAreNotSeen(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil // one of them sleeps by the clock of another test
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	for name, why := range map[string]error{
		"refused": errors.New("connection refused"),
		"expired": apierrors.NewResourceExpired("too old"),
		"right":   apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "", errors.New("no right")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &scaleAPI{}
				w := NewWatches(clientgoscheme.Scheme, time.Now)
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				informer := w.NewInformer(api, &appsv1.Deployment{}, 0, toolscache.Indexers{})
				go informer.RunWithContext(ctx)
				time.Sleep(time.Minute)
				require.Zero(t, w.Lost(deployments))
				lost := time.Now()
				api.fail(why)
				time.Sleep(5 * time.Minute)
				require.WithinRange(t, w.Lost(deployments), lost, lost.Add(30*time.Second))
				assert.Zero(t, w.Lost(schema.GroupKind{Group: "apps", Kind: "StatefulSet"}))
				api.fail(nil)
				time.Sleep(2 * time.Minute)
				assert.Zero(t, w.Lost(deployments), "changes are seen again")
				api.fail(errors.New("again"))
				time.Sleep(time.Minute)
				assert.NotZero(t, w.Lost(deployments))
				cancel()
				synctest.Wait()
				assert.Zero(t, w.Lost(deployments), "nothing is watched any more")
			})
		})
	}
}

// The watch of Deployments is lost alone. The replicas have an age, and then are read one by one.
func TestReplicasThatAreNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withTargets(t, predictedMetric(), deployment("checkout", 4))
		c.Forecaster = forecaster.New(time.Now, prometheus.NewRegistry(), forecaster.Options{})
		c.Watches = NewWatches(clientgoscheme.Scheme, time.Now)
		go func() { _ = c.Forecaster.Run(t.Context()) }()
		assertResync(t, c.reconcile())
		time.Sleep(10 * time.Second)
		lost := func() time.Time {
			time.Sleep(2 * time.Second)
			s, _ := c.Forecaster.Get(key)
			return s.ReplicasLost
		}
		require.Zero(t, lost())

		v := &watched{watches: c.Watches, kind: deployments}
		c.Watches.touch(t.Context(), v, errors.New("connection refused"))
		since := time.Now()
		require.Equal(t, since, lost(), "what is known ages before the next reconciliation")
		_, found := c.watchedTarget(t.Context(), key.Namespace, predictedMetric().Spec.ScaleTargetRef)
		require.False(t, found)
		c.scale = newCluster(t).scale // the API server still answers reads
		assert.Equal(t, poll, c.reconcile())
		require.Zero(t, lost(), "as it was just read")

		c.Watches.touch(t.Context(), v, nil)
		time.Sleep(2 * catchUp)
		assertResync(t, c.reconcile())
		require.Zero(t, lost())
		c.Watches.touch(t.Context(), v, errors.New("connection refused"))
		require.NotZero(t, lost())
	})
}
