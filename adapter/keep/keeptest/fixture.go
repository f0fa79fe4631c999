package keeptest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/api/v1alpha1"
)

// Subject is a kind whose Keeper is tested.
type Subject struct {
	// New returns a Keeper. What it gives to run ends with the process that leads.
	New func(run func(func(context.Context)), o keep.Options) keep.Runner
	// AddToScheme adds the kinds that the Keeper reads. They are few: the fake client goes through all with each write.
	AddToScheme func(*runtime.Scheme) error
	// Served are the resources by group and version that discovery finds.
	Served map[string][]string
	// Forecast is that of each PredictedMetric, until a test sets another one.
	Forecast snapshot.Snapshot

	// Request has a PredictedMetric request an object or not.
	Request func(spec *v1alpha1.PredictedMetricSpec, wanted bool)
	// Owned returns the name of the object that a status has, "" for none.
	Owned     func(v1alpha1.PredictedMetricStatus) string
	Condition string // its type
	Contested string // the reason of a target that has another object
	// Kept are the conditions of an object that is as it must be, for a short time after its creation and longer.
	Kept []string

	// Empty returns an empty object of the kind, and Foreign one that a user has made for a target.
	Empty   func() client.Object
	Foreign func(name, target string) client.Object
	// Spec returns the spec of an object, and Target the name of its target.
	Spec   func(client.Object) any
	Target func(client.Object) string
	// Drift changes the spec of an object, and Grow changes what the Keeper plans for a PredictedMetric.
	Drift func(client.Object)
	Grow  func(f *Fixture, name string)
	List  string // the type of a list
	// DrainTime is how long the Keeper waits before it deletes an object.
	DrainTime time.Duration
}

// Write is a write of the Keeper.
type Write struct {
	Verb          string
	Object        client.Object
	Preconditions *metav1.Preconditions // of a deletion
}

// Fixture is a cluster with a leader of Foresail. It plays the writer of the status.
type Fixture struct {
	*testing.T
	Subject
	Client     client.WithWatch
	Keeper     keep.Runner
	Namespaces []string // of the next leader

	ctx      context.Context
	recorder *events.FakeRecorder
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu        sync.Mutex
	failing   func(verb string, o client.Object) error // nil: no request fails
	writes    []Write
	requests  []string
	listed    map[string]bool // namespaces that the kind was listed in
	served    map[string][]string
	forecasts map[string]snapshot.Snapshot
}

// Play runs a test in virtual time.
func (s Subject) Play(t *testing.T, objects []client.Object, test func(*Fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		require.NoError(t, errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), s.AddToScheme(scheme)))
		ctx, cancel := context.WithCancel(t.Context())
		f := &Fixture{T: t, Subject: s, ctx: ctx, stop: func() {}, listed: map[string]bool{},
			served:    map[string][]string{},
			forecasts: map[string]snapshot.Snapshot{}}
		maps.Copy(f.served, s.Served)
		f.Client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
			WithStatusSubresource(&v1alpha1.PredictedMetric{}).Build(), f.intercepted())
		defer f.running.Wait()
		defer cancel()
		test(f)
	})
}

// intercepted records the requests of the Keeper, which passes options with each write, and fails requests as a test
// demands.
func (f *Fixture) intercepted() interceptor.Funcs {
	write := func(verb string, o client.Object, preconditions *metav1.Preconditions) error {
		if err := f.request(verb, o); err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.writes = append(f.writes, Write{verb, o.DeepCopyObject().(client.Object), preconditions})
		return nil
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if len(opts) > 0 {
				if err := write("create", o, nil); err != nil {
					return err
				}
				o.SetCreationTimestamp(metav1.Now())
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			if len(opts) > 0 {
				if err := write("patch", o, nil); err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if len(opts) > 0 {
				if err := write("delete", o, (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions); err != nil {
					return err
				}
			}
			return c.Delete(ctx, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if err := f.request(fmt.Sprintf("list %T", l), nil); err != nil {
				return err
			}
			if fmt.Sprintf("%T", l) == f.List {
				f.mu.Lock()
				f.listed[(&client.ListOptions{}).ApplyOptions(opts).Namespace] = true
				f.mu.Unlock()
			}
			return c.List(ctx, l, opts...)
		},
	}
}

func (f *Fixture) request(verb string, o client.Object) error {
	f.mu.Lock()
	f.requests = append(f.requests, verb)
	why := f.failing
	f.mu.Unlock()
	if why == nil {
		return nil
	}
	return why(verb, o)
}

// FailRequests has requests fail from now on, nil none.
func (f *Fixture) FailRequests(why func(verb string, o client.Object) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = why
}

// Serve has discovery find resources of a group and version, without any not even the version.
func (f *Fixture) Serve(groupVersion string, resources ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.served[groupVersion] = resources
}

// ServerResourcesForGroupVersionWithContext implements keep.Discovery.
func (f *Fixture) ServerResourcesForGroupVersionWithContext(_ context.Context,
	groupVersion string) (*metav1.APIResourceList, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, "discover "+groupVersion)
	list := &metav1.APIResourceList{GroupVersion: groupVersion}
	for _, name := range f.served[groupVersion] {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	if len(list.APIResources) == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	return list, nil
}

// Forecasts changes the forecast of a PredictedMetric.
func (f *Fixture) Forecasts(name string, change func(*snapshot.Snapshot)) {
	s, _ := f.Get(types.NamespacedName{Name: name})
	change(&s)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forecasts[name] = s
}

// Get implements keep.Forecasts.
func (f *Fixture) Get(key types.NamespacedName) (snapshot.Snapshot, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.forecasts[key.Name]
	if !ok {
		s = f.Forecast
	}
	s.At, s.NewestSample = time.Now(), time.Now()
	return s, true
}

// Lead starts a process that leads, after the previous one was killed.
func (f *Fixture) Lead() {
	f.Helper()
	f.Stop()
	f.recorder = events.NewFakeRecorder(100)
	ctx, cancel := context.WithCancel(f.ctx)
	f.stop = cancel
	run := func(part func(context.Context)) { f.running.Go(func() { part(ctx) }) }
	f.Keeper = f.New(run, keep.Options{
		Metrics: Metrics(f, f.Client), Client: f.Client, Discovery: f, Forecasts: f,
		Events: f.recorder, Namespaces: f.Namespaces,
		Registerer: prometheus.NewRegistry(), Now: time.Now,
	})
	run(func(ctx context.Context) { assert.NoError(f, f.Keeper.Start(ctx)) })
	synctest.Wait()
}

// Stop kills the process that leads.
func (f *Fixture) Stop() {
	f.stop()
	f.running.Wait()
}

// Pass lets the leader and the writer of the status do what they have to do, but for what waits on purpose.
func (f *Fixture) Pass() {
	f.Helper()
	f.PassFor(5 * keep.CheckPeriod)
}

// PassFor lets them run for a time.
func (f *Fixture) PassFor(d time.Duration) {
	f.Helper()
	for range d / keep.CheckPeriod {
		f.Check()
		f.WriteStatus()
	}
}

// Check lets the leader check once. No status is written.
func (f *Fixture) Check() {
	time.Sleep(keep.CheckPeriod)
	synctest.Wait()
}

// WriteStatus does what predictedmetric.Writer does.
func (f *Fixture) WriteStatus() {
	f.Helper()
	var list v1alpha1.PredictedMetricList
	require.NoError(f, f.Client.List(f.ctx, &list))
	for i := range list.Items {
		pm := &list.Items[i]
		status := pm.Status.DeepCopy()
		f.Keeper.AddStatus(pm, status, time.Now())
		pm.Status = *status
		require.NoError(f, f.Client.Status().Update(f.ctx, pm))
	}
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// PassRemoval lets them run until an object that is not wanted has been deleted.
func (f *Fixture) PassRemoval() {
	f.Helper()
	f.PassFor(f.DrainTime + 5*keep.CheckPeriod)
}

// AssertKept asserts that a PredictedMetric has its object, and reports it.
func (f *Fixture) AssertKept(name string) {
	f.Helper()
	assert.NotNil(f, f.Find(name))
	condition, ok := strings.CutSuffix(f.Reports(name), " "+name)
	assert.True(f, ok && slices.Contains(f.Kept, condition), f.Reports(name))
}

// Find returns an object of the kind, nil if there is none.
func (f *Fixture) Find(name string) client.Object {
	f.Helper()
	o := f.Empty()
	err := f.Client.Get(f.ctx, key(name), o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(f, err)
	return o
}

// Edit changes an object of the kind as a user does.
func (f *Fixture) Edit(name string, change func(client.Object)) {
	f.Helper()
	o := f.Find(name)
	require.NotNil(f, o)
	change(o)
	require.NoError(f, f.Client.Update(f.ctx, o))
}

// Remove deletes an object of the kind, as a user or the garbage collector does.
func (f *Fixture) Remove(name string) {
	f.Helper()
	require.NoError(f, f.Client.Delete(f.ctx, f.Find(name)))
}

// Metric returns a PredictedMetric.
func (f *Fixture) Metric(name string) *v1alpha1.PredictedMetric {
	f.Helper()
	var pm v1alpha1.PredictedMetric
	require.NoError(f, f.Client.Get(f.ctx, key(name), &pm))
	return &pm
}

// Change changes the spec of a PredictedMetric as a user does.
func (f *Fixture) Change(name string, change func(*v1alpha1.PredictedMetricSpec)) {
	f.Helper()
	pm := f.Metric(name)
	change(&pm.Spec)
	pm.Generation++
	require.NoError(f, f.Client.Update(f.ctx, pm))
}

// Want has a PredictedMetric request an object or not.
func (f *Fixture) Want(name string, wanted bool) {
	f.Helper()
	f.Change(name, func(s *v1alpha1.PredictedMetricSpec) { f.Request(s, wanted) })
}

// Reports returns what the status of a PredictedMetric has: the condition, its reason, and the object.
func (f *Fixture) Reports(name string) string {
	f.Helper()
	pm := f.Metric(name)
	text := "none"
	if c := meta.FindStatusCondition(pm.Status.Conditions, f.Condition); c != nil {
		text = string(c.Status) + " " + c.Reason
	}
	return strings.TrimSpace(text + " " + f.Owned(pm.Status))
}

// Message returns the message of the condition.
func (f *Fixture) Message(name string) string {
	f.Helper()
	c := meta.FindStatusCondition(f.Metric(name).Status.Conditions, f.Condition)
	require.NotNil(f, c)
	return c.Message
}

// Sent returns the types and reasons of the events since the last call.
func (f *Fixture) Sent() []string { return SentReasons(f.recorder) }

// Writes returns the writes of the Keeper since the last call.
func (f *Fixture) Writes() []Write {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.writes
	f.writes = nil
	return out
}

// Wrote returns the verbs and names of the writes since the last call.
func (f *Fixture) Wrote() (out []string) {
	for _, w := range f.Writes() {
		out = append(out, w.Verb+" "+w.Object.GetName())
	}
	return out
}

// NewMetric returns a PredictedMetric that requests an object.
func (s Subject) NewMetric(name, target string, uid types.UID, age time.Duration) *v1alpha1.PredictedMetric {
	pm := &v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid,
		Generation: 1}}
	pm.CreationTimestamp = metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(-age))
	pm.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: target}
	pm.Spec.MaxReplicas = new(int32(20))
	s.Request(&pm.Spec, true)
	return pm
}

// Checkout is the PredictedMetric of most tests.
func (s Subject) Checkout() *v1alpha1.PredictedMetric {
	return s.NewMetric("checkout", "checkout", "uid-1", time.Hour)
}
