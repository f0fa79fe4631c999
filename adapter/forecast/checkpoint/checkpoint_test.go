package checkpoint

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// cluster is an API with PredictedMetrics, in which requests may fail.
type cluster struct {
	*testing.T
	client.WithWatch

	mu     sync.Mutex
	failed error // of each request for checkpoints; nil: they succeed
	writes []write
	asked  int
}

type write struct {
	name string
	at   time.Time
}

func newCluster(t *testing.T, metrics ...*v1alpha1.PredictedMetric) *cluster {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := &cluster{T: t}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, pm := range metrics {
		builder = builder.WithObjects(pm)
	}
	c.WithWatch = interceptor.NewClient(builder.Build(), interceptor.Funcs{
		List: func(ctx context.Context, to client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*v1alpha1.PredictedMetricList); !ok {
				if err := c.request(); err != nil {
					return err
				}
			}
			return to.List(ctx, list, opts...)
		},
		Watch: func(ctx context.Context, to client.WithWatch, list client.ObjectList,
			opts ...client.ListOption) (watch.Interface, error) {
			if err := c.request(); err != nil {
				return nil, err
			}
			w, err := to.Watch(ctx, list, opts...)
			if err != nil {
				return nil, err
			}
			return decoded(c.Context(), w), nil
		},
		Apply: func(ctx context.Context, to client.WithWatch, o runtime.ApplyConfiguration,
			opts ...client.ApplyOption) error {
			if err := c.request(); err != nil {
				return err
			}
			if err := to.Apply(ctx, o, opts...); err != nil {
				return err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.writes = append(c.writes, write{o.(interface{ GetName() string }).GetName(), time.Now()})
			return nil
		},
	})
	return c
}

// untyped is a watch as the API answers it where no type is requested.
type untyped struct {
	watch.Interface
	events chan watch.Event
}

func (u *untyped) ResultChan() <-chan watch.Event { return u.events }

func decoded(ctx context.Context, w watch.Interface) *untyped {
	u := &untyped{w, make(chan watch.Event, 1000)}
	go func() {
		defer close(u.events)
		for e := range w.ResultChan() {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(e.Object)
			if err != nil || ctx.Err() != nil {
				return
			}
			u.events <- watch.Event{Type: e.Type, Object: &unstructured.Unstructured{Object: fields}}
		}
	}()
	return u
}

func (c *cluster) request() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.failed
}

func (c *cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = err
}

func (c *cluster) written() []write {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.writes)
}

func (c *cluster) checkpoint(name string) *v1alpha1.PredictedMetricCheckpoint {
	c.Helper()
	var found v1alpha1.PredictedMetricCheckpoint
	require.NoError(c, c.Get(c.Context(), keyOf(name), &found))
	return &found
}

// keyOf returns the key of a name, which may have a namespace other than shop.
func keyOf(name string) types.NamespacedName {
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func metric(name string) *v1alpha1.PredictedMetric {
	key := keyOf(name)
	return &v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name,
		UID: types.UID("uid of " + name)}}
}

// replica is a Foresail whose loads are those of the test.
type replica struct {
	*Checkpoints
	forecasts *forecaster.Forecaster
	end       context.CancelFunc
	running   sync.WaitGroup
	feeds     map[string]*forecaster.Feed
}

// noPods is what follows a target that is measured as a whole.
type noPods struct{}

func (noPods) Instances(time.Time) []podtracker.Instance { return nil }
func (noPods) Ready() int                                { return 1 }
func (noPods) StartupsMeasured() int                     { return 0 }
func (noPods) StartupTime(_ pipeline.Method, initial time.Duration) time.Duration {
	return initial
}
func (noPods) Lost() (since time.Time, why error) { return since, nil }

func (noPods) StartupTimeOnNode(_ pipeline.Method, initial time.Duration) time.Duration {
	return initial
}

// start runs a replica, which leads or not, with some PredictedMetrics.
func (c *cluster) start(leads bool, names ...string) *replica {
	registry := prometheus.NewRegistry()
	r := &replica{forecasts: forecaster.New(time.Now, registry, forecaster.Options{}),
		feeds: map[string]*forecaster.Feed{}}
	for _, name := range names {
		r.add(c, name)
	}
	r.Checkpoints = New(Options{
		Metrics: c, Client: c, Forecasts: r.forecasts.Learned(), Known: func() error { return nil },
		Now: time.Now, Registerer: registry,
	})
	ctx, cancel := context.WithCancel(c.Context())
	r.end = cancel
	r.running.Go(func() { assert.NoError(c, r.forecasts.Run(ctx)) })
	r.running.Go(func() { assert.NoError(c, r.Run(ctx)) })
	if leads {
		r.running.Go(func() { assert.NoError(c, r.Lead(ctx)) })
	}
	return r
}

func (r *replica) add(c *cluster, name string) {
	p := pipeline.AdaptiveParams()
	p.Whole, p.Threshold, p.Max = true, 10, 100
	feed, err := r.forecasts.Set(keyOf(name), forecaster.Config{
		Params: p, Source: "prometheus", Origin: "the origin of " + name, Interval: time.Second,
		TargetKind: "Deployment", TargetName: name,
	})
	require.NoError(c, err)
	feed.SetPods(noPods{})
	feed.SetReplicas(10)
	r.feeds[name] = feed
}

// stop ends a replica in an orderly way.
func (r *replica) stop() {
	r.end()
	r.running.Wait()
}

func (r *replica) forecast(t *testing.T, name string) pipeline.Forecast {
	t.Helper()
	s, ok := r.forecasts.Get(keyOf(name))
	require.True(t, ok)
	require.NoError(t, s.Err)
	return s.Forecast
}

// loads are those that all replicas read.
type loads struct {
	*rand.Rand
	recent []pipeline.Sample
}

func newLoads() *loads { return &loads{Rand: rand.New(rand.NewPCG(1, 2026))} }

// pass lets time go by, a second at a time, in which replicas read the same between two forecasts.
func (l *loads) pass(d time.Duration, replicas ...*replica) {
	for range int(d / time.Second) {
		time.Sleep(time.Second / 2) // virtual time
		now := time.Now().UnixMilli()
		s := pipeline.Sample{T: now, V: 60 + 20*math.Sin(float64(now)/3e5) + l.NormFloat64()}
		l.recent = append(l.recent[max(0, len(l.recent)-300):], s)
		for _, r := range replicas {
			for _, feed := range r.feeds {
				feed.Append(source.WholeTarget, s)
			}
		}
		time.Sleep(time.Second / 2)
	}
	synctest.Wait()
}

// history gives a replica the window that a server of Prometheus remembers.
func (l *loads) history(r *replica) {
	for _, feed := range r.feeds {
		feed.Append(source.WholeTarget, l.recent...)
	}
}

func (r *replica) learned(t *testing.T, name string) []byte {
	t.Helper()
	learned, ok := r.forecasts.Learned().Checkpoint(keyOf(name))
	require.True(t, ok)
	return learned.Data
}

// TestReplicasKnowTheSame: one that starts later knows less, until the elected one writes what it
// knows. After a restart nothing is forgotten.
func TestReplicasKnowTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newCluster(t, metric("web")), newLoads()
		first := c.start(true, "web")
		l.pass(12*time.Minute, first)
		found := c.checkpoint("web")
		assert.Equal(t, metav1.OwnerReference{APIVersion: "foresail.dev/v1alpha1", Kind: "PredictedMetric", Name: "web",
			UID: "uid of web", Controller: new(true)}, found.OwnerReferences[0])
		assert.EqualValues(t, pipeline.CheckpointVersion, found.Version)
		assert.Greater(t, found.Learned.Duration, 8*time.Minute)
		assert.Less(t, len(found.Data), 20_000)

		second := c.start(false, "web")
		// it adopts a checkpoint that is older than its window: something is missing between
		l.pass(5*time.Minute, first, second)
		assert.NotEqual(t, first.learned(t, "web"), second.learned(t, "web"))
		l.pass(6*time.Minute, first, second)
		require.Equal(t, first.learned(t, "web"), second.learned(t, "web"))
		assert.Equal(t, first.forecast(t, "web"), second.forecast(t, "web"))
		assert.Positive(t, testutil.ToFloat64(first.telemetry.requests.WithLabelValues(verbList, "OK")))

		before := second.forecast(t, "web")
		first.stop()
		third := c.start(true, "web")
		l.history(third)
		l.pass(2*time.Second, second, third)
		require.Equal(t, second.learned(t, "web"), third.learned(t, "web"))
		assert.Equal(t, second.forecast(t, "web").Total, third.forecast(t, "web").Total)
		assert.InDelta(t, before.Total, third.forecast(t, "web").Total, 5)
		third.stop()
		second.stop()

		// Without the checkpoint it would know what is in the window alone.
		require.NoError(t, c.Delete(t.Context(), found))
		fourth := c.start(false, "web")
		l.history(fourth)
		l.pass(2*time.Second, fourth)
		learned, ok := fourth.forecasts.Learned().Checkpoint(keyOf("web"))
		require.True(t, ok)
		assert.Less(t, learned.Learned, 5*time.Minute)
		fourth.stop()
	})
}

// TestWritesArePaced: two a second in all, each metric every ten minutes, the oldest first, and
// none without a reason.
func TestWritesArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var metrics []*v1alpha1.PredictedMetric
		var names []string
		for i := range 40 {
			names = append(names, fmt.Sprintf("web-%02d", i))
			metrics = append(metrics, metric(names[i]))
		}
		c, l := newCluster(t, append(metrics, metric("silent"))...), newLoads()
		r := c.start(true, append(names, "silent")...)
		delete(r.feeds, "silent")
		l.pass(25*time.Minute, r)
		writes := c.written()
		last := map[string]time.Time{}
		for i, w := range writes {
			if i > 0 {
				require.GreaterOrEqual(t, w.at.Sub(writes[i-1].at), writeEach)
			}
			if at, ok := last[w.name]; ok {
				require.GreaterOrEqual(t, w.at.Sub(at), writePeriod)
			}
			last[w.name] = w.at
		}
		require.Len(t, writes, 3*len(names))
		var first, second []string
		for i := range names {
			first, second = append(first, writes[i].name), append(second, writes[len(names)+i].name)
		}
		assert.Equal(t, names, first)
		assert.Equal(t, first, second, "the oldest first")
		assert.Equal(t, float64(len(writes)), testutil.ToFloat64(r.telemetry.requests.WithLabelValues(verbWrite, "OK")))

		// While nothing is learned, nothing is written.
		l.pass(20 * time.Minute)
		after := len(c.written())
		assert.LessOrEqual(t, after, 4*len(names))
		l.pass(20 * time.Minute)
		assert.Len(t, c.written(), after)

		// At the end what has been learned since is written, all at once.
		l.pass(time.Minute, r)
		before, ended := len(c.written()), time.Now()
		r.stop()
		assert.WithinRange(t, time.Now(), ended, ended.Add(flushLimit))
		assert.Len(t, c.written(), before+len(names))
	})
}

// Hundreds of new PredictedMetrics of other namespaces do not put off the checkpoint of one.
func TestNamespacesTakeTurnsAtWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"web"}
		for i := range 150 {
			names = append(names, fmt.Sprintf("bank/pm-%03d", i), fmt.Sprintf("casino/pm-%03d", i))
		}
		var metrics []*v1alpha1.PredictedMetric
		for _, name := range names {
			metrics = append(metrics, metric(name))
		}
		c, l := newCluster(t, metrics...), newLoads()
		r := c.start(true, names...)
		l.pass(3*time.Minute, r)
		writes := c.written()
		at := slices.IndexFunc(writes, func(w write) bool { return w.name == "web" })
		require.GreaterOrEqual(t, at, 0, "of %d writes none is of the namespace with one", len(writes))
		assert.Less(t, at, 3)
		r.stop()
	})
}

// TestTheEndIsBounded: an API that does not answer does not hold up the end.
func TestTheEndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newCluster(t, metric("web")), newLoads()
		c.WithWatch = interceptor.NewClient(c.WithWatch, interceptor.Funcs{
			Apply: func(ctx context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration,
				_ ...client.ApplyOption) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
		r := c.start(true, "web")
		l.pass(5*time.Minute, r)
		ended := time.Now()
		r.stop()
		assert.Equal(t, flushLimit, time.Since(ended))
	})
}

// TestWithoutTheKind: nothing fails but the checkpoints, which come once there is the kind.
func TestWithoutTheKind(t *testing.T) {
	missing := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "foresail.dev", Kind: kind}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "foresail.dev",
		Resource: "predictedmetriccheckpoints"}, "web", nil)
	for name, err := range map[string]error{"missing": missing, "forbidden": forbidden} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, l := newCluster(t, metric("web")), newLoads()
				c.fail(err)
				r := c.start(true, "web")
				l.pass(time.Hour, r)
				assert.Positive(t, r.forecast(t, "web").Total)
				assert.Empty(t, c.written())
				assert.Zero(t, testutil.ToFloat64(r.telemetry.requests.WithLabelValues(verbList, "OK")))
				assert.Positive(t, testutil.ToFloat64(r.telemetry.requests.WithLabelValues(verbList, resultOf(err))))
				c.mu.Lock()
				assert.LessOrEqual(t, c.asked, 61, "once a minute")
				c.mu.Unlock()

				c.fail(nil)
				l.pass(3*time.Minute, r)
				assert.Positive(t, testutil.ToFloat64(r.telemetry.requests.WithLabelValues(verbList, "OK")))
				assert.NotEmpty(t, c.written())
				assert.Greater(t, c.checkpoint("web").Learned.Duration, 50*time.Minute)

				// Rights that go again are one failure a minute.
				c.fail(err)
				l.pass(30*time.Minute, r)
				assert.Positive(t, r.forecast(t, "web").Total)
				assert.InDelta(t, 20, testutil.ToFloat64(r.telemetry.requests.WithLabelValues(verbWrite,
					resultOf(err))), 3)
				r.stop()
			})
		})
	}
}

// TestOnlyItsOwn: a checkpoint counts for the PredictedMetric that owns it alone, whatever is in
// it, and the elected replica does not follow what others write.
func TestOnlyItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newCluster(t, metric("web"), metric("other")), newLoads()
		leader := c.start(true, "web", "other")
		follower := c.start(false, "web", "other")
		l.pass(12*time.Minute, leader, follower)
		good := c.checkpoint("web")
		count := func(r *replica, result string) float64 {
			return testutil.ToFloat64(r.telemetry.restores.WithLabelValues(result))
		}
		var bomb bytes.Buffer
		w := gzip.NewWriter(&bomb)
		_, err := w.Write(make([]byte, 20_000_000))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.Less(t, bomb.Len(), v1alpha1.MaxCheckpointData)
		for name, change := range map[string]func(*v1alpha1.PredictedMetricCheckpoint){
			"garbage": func(o *v1alpha1.PredictedMetricCheckpoint) { o.Data = []byte("garbage") },
			"nothing": func(o *v1alpha1.PredictedMetricCheckpoint) { o.Data = nil },
			"cut off": func(o *v1alpha1.PredictedMetricCheckpoint) { o.Data = o.Data[:len(o.Data)/2] },
			"too large": func(o *v1alpha1.PredictedMetricCheckpoint) {
				o.Data = make([]byte,
					v1alpha1.MaxCheckpointData+1)
			},
			"a bomb":        func(o *v1alpha1.PredictedMetricCheckpoint) { o.Data = bomb.Bytes() },
			"another owner": func(o *v1alpha1.PredictedMetricCheckpoint) { o.OwnerReferences[0].UID = "another" },
			"no owner":      func(o *v1alpha1.PredictedMetricCheckpoint) { o.OwnerReferences = nil },
			"of another":    func(o *v1alpha1.PredictedMetricCheckpoint) { o.Data = c.checkpoint("other").Data },
		} {
			ignored, kept := count(follower, "Ignored"), count(leader, "Ignored")
			bad := good.DeepCopy()
			bad.ResourceVersion = c.checkpoint("web").ResourceVersion
			change(bad)
			require.NoError(t, c.Update(t.Context(), bad))
			synctest.Wait()
			assert.Equal(t, ignored+1, count(follower, "Ignored"), name)
			assert.Equal(t, kept+1, count(leader, "Ignored"), name)
			require.Equal(t, leader.learned(t, "other"), follower.learned(t, "other"))
			assert.Equal(t, leader.forecast(t, "web"), follower.forecast(t, "web"), name)
		}

		// Another, good in itself, has followers follow and the elected one stay as it is, until it
		// writes its own again.
		l.pass(time.Second, leader, follower)
		stray := c.start(false, "web", "other")
		strange := newLoads()
		strange.NormFloat64()
		strange.pass(3*time.Minute, stray)
		learned, ok := stray.forecasts.Learned().Checkpoint(keyOf("web"))
		require.True(t, ok)
		object, err := Object(keyOf("web"), "uid of web", &learned, time.Now())
		require.NoError(t, err)
		stray.stop()
		adopted := count(leader, "Adopted")
		followed := count(follower, "Adopted")
		require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object),
			client.FieldOwner("somebody"), client.ForceOwnership))
		synctest.Wait()
		assert.Equal(t, adopted, count(leader, "Adopted"))
		assert.Equal(t, followed+1, count(follower, "Adopted"))
		leader.stop()
		follower.stop()
	})
}

// TestDeletedCheckpointsAreForgotten: every caller who deletes one has the load learned again, by
// all replicas.
func TestDeletedCheckpointsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newCluster(t, metric("web")), newLoads()
		leader, follower := c.start(true, "web"), c.start(false, "web")
		l.pass(time.Hour, leader, follower)
		require.Greater(t, c.checkpoint("web").Learned.Duration, 40*time.Minute)
		require.NoError(t, c.Delete(t.Context(), c.checkpoint("web")))
		synctest.Wait()
		for _, r := range []*replica{leader, follower} {
			_, ok := r.forecasts.Learned().Checkpoint(keyOf("web"))
			assert.False(t, ok)
		}
		l.pass(10*time.Minute, leader, follower)
		assert.Less(t, c.checkpoint("web").Learned.Duration, 20*time.Minute)
		leader.stop()
		follower.stop()
	})
}

// TestPredictedMetricsThatComeLater: their checkpoints are looked for too, and those of another
// source are not taken. A replica that does not lead keeps nothing of PredictedMetrics that come
// and go.
func TestNothingIsKeptOfDeletedPredictedMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newCluster(t, metric("web")), newLoads()
		first, second := c.start(true, "web"), c.start(false, "web")
		l.pass(12*time.Minute, first, second)
		require.Contains(t, second.written, keyOf("web"))
		first.stop()
		require.NoError(t, c.Delete(t.Context(), metric("web")))
		require.NoError(t, c.Delete(t.Context(), c.checkpoint("web"))) // as the garbage collector does
		l.pass(time.Second, second)
		assert.Empty(t, second.written)
		second.stop()
	})
}

func TestPredictedMetricsThatComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newCluster(t, metric("web"), metric("late")), newLoads()
		before := c.start(true, "web", "late")
		l.pass(30*time.Minute, before)
		before.stop()

		r := c.start(true, "web")
		l.pass(time.Minute, r)
		r.add(c, "late")
		assert.Equal(t, []types.NamespacedName{keyOf("late")}, r.forecasts.Learned().WithoutCheckpoint())
		l.pass(seekPeriod+time.Second, r)
		assert.Empty(t, r.forecasts.Learned().WithoutCheckpoint())
		l.pass(time.Minute, r)
		learned, ok := r.forecasts.Learned().Checkpoint(keyOf("late"))
		require.True(t, ok)
		assert.Greater(t, learned.Learned, 25*time.Minute)

		feed, err := r.forecasts.Set(keyOf("late"), forecaster.Config{Params: func() pipeline.Params {
			p := pipeline.AdaptiveParams()
			p.Whole, p.Threshold, p.Max = true, 10, 100
			return p
		}(), Origin: "another", TargetKind: "Deployment", TargetName: "late"})
		require.NoError(t, err)
		feed.SetPods(noPods{})
		l.pass(seekPeriod+time.Second, r)
		assert.Empty(t, r.forecasts.Learned().WithoutCheckpoint())
		_, ok = r.forecasts.Learned().Checkpoint(keyOf("late"))
		assert.False(t, ok)
		s, _ := r.forecasts.Get(keyOf("late"))
		assert.IsType(t, &snapshot.Unavailable{}, s.Err)
		r.stop()
	})
}

// TestSpoiltObjectsHideNoOthers: objects are decoded one by one.
func TestSpoiltObjectsHideNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newCluster(t, metric("a"), metric("web")), newLoads()
		before := c.start(true, "web")
		l.pass(30*time.Minute, before)
		before.stop()
		spoilt := emptyObject()
		spoilt.SetNamespace("shop")
		spoilt.SetName("a")
		spoilt.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "foresail.dev/v1alpha1", Kind: "PredictedMetric",
			Name: "a", UID: "uid of a", Controller: new(true)}})
		require.NoError(t, unstructured.SetNestedField(spoilt.Object, "soon", "updated"))
		page := emptyList()
		require.NoError(t, c.List(t.Context(), page))
		c.WithWatch = interceptor.NewClient(c.WithWatch, interceptor.Funcs{
			List: func(ctx context.Context, to client.WithWatch, list client.ObjectList,
				opts ...client.ListOption) error {
				if err := to.List(ctx, list, opts...); err != nil {
					return err
				}
				if l, ok := list.(*unstructured.UnstructuredList); ok {
					l.Items = append([]unstructured.Unstructured{*spoilt}, l.Items...)
				}
				return nil
			},
		})
		r := c.start(false, "a", "web")
		l.pass(time.Minute, r)
		assert.Equal(t, 1.0, testutil.ToFloat64(r.telemetry.restores.WithLabelValues("Ignored")))
		assert.Equal(t, 1.0, testutil.ToFloat64(r.telemetry.restores.WithLabelValues("Adopted")))
		r.stop()
	})
}
