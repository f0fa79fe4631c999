package predictedmetric

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/foresail/foresail/api/v1alpha1"
)

var game = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Game"}

func ofGame() *v1alpha1.PredictedMetric {
	pm := predictedMetric()
	pm.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "example.com/v1", Kind: "Game", Name: "checkout"}
	return pm
}

func TestTargetsOfAnyKindAreWatchedWhereAllowed(t *testing.T) {
	c := newCluster(t, ofGame())
	var reviewed []schema.GroupVersionResource
	var watched []schema.GroupVersionKind
	c.kinds.allowed = func(_ context.Context, resource schema.GroupVersionResource) (bool, error) {
		reviewed = append(reviewed, resource)
		return true, nil
	}
	c.kinds.watch = func(kind schema.GroupVersionKind) error {
		watched = append(watched, kind)
		return nil
	}
	for range 3 {
		assertResync(t, c.reconcile())
	}
	assert.Equal(t, []schema.GroupVersionKind{game}, watched, "once")
	assert.Equal(t, []schema.GroupVersionResource{{Group: "example.com", Version: "v1", Resource: "games"}}, reviewed)
}

// Rights may be given later, and an API server that does not answer may answer later.
func TestTargetsThatMayNotBeWatchedArePolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ofGame())
		reviews, allowed, failure := 0, false, errors.New("down")
		c.kinds.allowed = func(context.Context, schema.GroupVersionResource) (bool, error) {
			reviews++
			return allowed, failure
		}
		assert.Equal(t, poll, c.reconcile())
		failure = nil
		assert.Equal(t, poll, c.reconcile())
		assert.Equal(t, 1, reviews)
		time.Sleep(resync)
		assert.Equal(t, poll, c.reconcile())
		assert.Equal(t, 2, reviews)
		allowed = true
		time.Sleep(resync)
		assertResync(t, c.reconcile())
		assert.Empty(t, c.reads.polled)
	})
}

// A right may be taken away, and a kind may get another version. A watch that fails would leave
// targets unread for minutes.
func TestWatchedKindsAreReviewedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var allowed bool
		var failure error
		var happened []string
		gone := ""
		say := func(what string) func(schema.GroupVersionKind) error {
			return func(kind schema.GroupVersionKind) error {
				happened = append(happened, what+" "+kind.Version)
				return nil
			}
		}
		k := &kinds{
			state:   map[schema.GroupKind]kindState{},
			allowed: func(context.Context, schema.GroupVersionResource) (bool, error) { return allowed, failure },
			watch:   say("watch"),
			unwatch: func(_ context.Context, kind schema.GroupVersionKind) error { return say("unwatch")(kind) },
			served:  func(kind schema.GroupVersionKind) bool { return kind.Version != gone },
		}
		follow := func(version string) (watched bool, changes []string) {
			time.Sleep(resync)
			happened = nil
			kind := game.GroupKind().WithVersion(version)
			return k.follow(t.Context(),
					&meta.RESTMapping{GroupVersionKind: kind, Resource: kind.GroupVersion().WithResource("games")},
					time.Now()),
				happened
		}
		for _, step := range []struct {
			allowed bool
			failure error
			version string
			watched bool
			changes []string
			gone    string
		}{
			{allowed: false, version: "v1"},
			{allowed: true, version: "v1", watched: true, changes: []string{"watch v1"}},
			{allowed: true, version: "v1", watched: true},
			{failure: errors.New("down"), version: "v1", watched: true},
			{allowed: true, version: "v2", watched: true}, // v1 does for both
			{allowed: true, version: "v1", watched: true},
			{allowed: true, version: "v2", watched: true, gone: "v1", changes: []string{"unwatch v1", "watch v2"}},
			{allowed: false, version: "v2", changes: []string{"unwatch v2"}},
			{allowed: true, version: "v2", watched: true, changes: []string{"watch v2"}},
		} {
			allowed, failure, gone = step.allowed, step.failure, step.gone
			watched, changes := follow(step.version)
			assert.Equal(t, step.watched, watched, "%+v", step)
			assert.Equal(t, step.changes, changes, "%+v", step)
		}
	})
}

func TestReviewOfEveryNamespace(t *testing.T) {
	var asked []string
	denied := "watch in bank"
	c := fake.NewClientBuilder().WithScheme(schemeWithReviews(t)).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			review := o.(*authorizationv1.SelfSubjectAccessReview)
			a := review.Spec.ResourceAttributes
			what := fmt.Sprintf("%s in %s", a.Verb, a.Namespace)
			asked = append(asked, what)
			review.Status.Allowed = what != denied
			return nil
		},
	}).Build()
	games := game.GroupVersion().WithResource("games")
	ok, err := mayWatch(t.Context(), c, games, nil)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, []string{"list in ", "watch in "}, asked)
	asked = nil
	ok, err = mayWatch(t.Context(), c, games, []string{"shop", "bank"})
	require.NoError(t, err)
	assert.False(t, ok)
	assert.Equal(t, []string{"list in shop", "watch in shop", "list in bank", "watch in bank"}, asked)
}

func schemeWithReviews(t *testing.T) *runtime.Scheme {
	scheme := runtime.NewScheme()
	require.NoError(t, authorizationv1.AddToScheme(scheme))
	return scheme
}

// A thousand targets that must be polled would be 200 requests a second, all that Foresail may
// make. A user who has them waits.
func TestPollsOfManyTargetsAreBounded(t *testing.T) {
	r := newReads()
	of := func(namespace string, i int) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: fmt.Sprint("checkout-", i)}
	}
	var every time.Duration
	for i := range 1000 {
		every = r.next(of("shop", i), false, time.Now())
	}
	assert.Equal(t, 50*time.Second, every)
	assert.Equal(t, poll, r.next(of("bank", 0), false, time.Now()))
	assert.Equal(t, 100*time.Second, r.next(of("shop", 0), false, time.Now()),
		"half of the rate is the other namespace's")
	for i := range 1000 {
		r.forget(of("shop", i))
	}
	assert.Equal(t, poll, r.next(of("bank", 0), false, time.Now()))
	assert.Len(t, r.polled, 1)
}

// A user who creates many PredictedMetrics, or changes their targets all the time, waits, each for its
// turn, and others do not.
func TestReadsOfANamespaceAreBounded(t *testing.T) {
	const many = readBurst + 100
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for i := range many {
			pm := predictedMetric()
			pm.Name = fmt.Sprint("many-", i)
			require.NoError(t, c.Client.Create(t.Context(), pm))
		}
		victim := predictedMetric()
		victim.Namespace = "bank"
		require.NoError(t, c.Client.Create(t.Context(), victim))
		after := func(i int) time.Duration {
			key := types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("many-", i)}
			result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			require.NoError(t, err)
			_, known := c.Forecaster.Get(key)
			assert.True(t, known, "every caller who reads others of its target knows of it")
			return result.RequeueAfter
		}
		for i := range many {
			if beyond := i - readBurst + 1; beyond > 0 {
				assert.InDelta(t, time.Duration(beyond)*time.Second/readRate, after(i), float64(time.Microsecond), i)
				continue
			}
			assertResync(t, after(i))
		}
		assert.InDelta(t, 5*time.Second, after(many-1), float64(time.Microsecond), "asking again changes nothing")
		result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(victim)})
		require.NoError(t, err)
		assertResync(t, result.RequeueAfter)
		assert.NoError(t, c.Settled(t.Context()), "a start does not wait for those that wait")
		time.Sleep(5 * time.Second)
		assertResync(t, after(many-1), "its turn has come")
	})
}
