package simulated_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/provider/providertest"
	"github.com/foresail/foresail/nodepool/simulated"
	"github.com/foresail/foresail/test/env/controlplane"
)

var client kubernetes.Interface // of an API server that all tests share

func TestMain(m *testing.M) {
	controlplane.MainBorrowing(m, func(_ context.Context, c *controlplane.Cluster) error {
		client = c.Client()
		return nil
	})
}

// joinDelay is the join delay of test clouds. They have no jitter by default.
const joinDelay = 30 * time.Second

// testCloud is a cloud with its own namespace and a clock that only the test advances.
type testCloud struct {
	mu        sync.Mutex
	now       time.Time
	namespace string
	clouds    map[string]*simulated.Cloud
}

func newTestCloud(t *testing.T) *testCloud {
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	return &testCloud{
		now:       time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		namespace: name,
		clouds:    map[string]*simulated.Cloud{},
	}
}

func (s *testCloud) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// pool returns the cloud of a pool with changed options.
func (s *testCloud) pool(name string, change ...func(*simulated.Options)) *simulated.Cloud {
	o := simulated.Options{
		Client: client, Pool: name, Now: s.Now, Kubelet: true,
		Spec: v1alpha1.SimulatedProvider{Namespace: s.namespace, JoinDelay: &metav1.Duration{Duration: joinDelay}},
	}
	for _, c := range change {
		c(&o)
	}
	s.clouds[name] = simulated.New(o)
	return s.clouds[name]
}

// shape sets the number of CPUs of new instances.
func shape(cpu string) func(*simulated.Options) {
	return func(o *simulated.Options) {
		o.Spec.Shape = map[string]resource.Quantity{
			"cpu":    resource.MustParse(cpu),
			"memory": resource.MustParse("8Gi"),
			"pods":   resource.MustParse("110"),
		}
	}
}

// pass advances the clock and takes a step.
func (s *testCloud) pass(t testing.TB, d time.Duration) {
	t.Helper()
	s.mu.Lock()
	s.now = s.now.Add(d)
	s.mu.Unlock()
	for _, c := range s.clouds {
		require.NoError(t, c.Step(t.Context(), s.Now()))
	}
}

// fault injects a fault into the whole cloud until undo is called.
func (s *testCloud) fault(t testing.TB, key, value string) (undo func()) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	_, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	faults := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: simulated.FaultsName},
		Data:       map[string]string{key: value},
	}
	_, err = client.CoreV1().ConfigMaps(s.namespace).Create(t.Context(), faults, metav1.CreateOptions{})
	require.NoError(t, err)
	return func() {
		err := client.CoreV1().
			ConfigMaps(s.namespace).
			Delete(context.WithoutCancel(t.Context()), simulated.FaultsName, metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
	}
}

// annotate sets an annotation of an instance.
func (s *testCloud) annotate(t *testing.T, id, key, value string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	require.NoError(t, err)
	_, err = client.CoreV1().
		ConfigMaps(s.namespace).
		Patch(t.Context(), id, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

// Provider and the following methods implement [providertest.Harness].
func (s *testCloud) Provider(_ testing.TB, pool string) provider.Provider { return s.pool(pool) }

func (s *testCloud) Renew(_ testing.TB, pool string) provider.Provider {
	return s.pool(pool, shape("4"))
}

func (s *testCloud) Exhaust(t testing.TB, placements ...fleet.Placement) func() {
	var lines []string
	for _, p := range placements {
		lines = append(lines, p.Zone+"/"+p.InstanceType+"/"+string(p.Market))
	}
	return s.fault(t, simulated.FaultExhausted, strings.Join(lines, "\n"))
}

// Alternative returns a type that is not offered but can be launched.
func (s *testCloud) Alternative() string { return "simulated-2" }

func (s *testCloud) Settle(t testing.TB) { s.pass(t, time.Second) }

func (s *testCloud) End(t testing.TB) { s.pass(t, 10*time.Second) }

func (s *testCloud) Untag(t testing.TB, id string) bool {
	patch := []byte(`{"metadata":{"labels":{"simulated.foresail.dev/pool":null}}}`)
	_, err := client.CoreV1().
		ConfigMaps(s.namespace).
		Patch(t.Context(), id, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	return true
}

// Adopt reports that a simulated cloud has no other controllers.
func (s *testCloud) Adopt(testing.TB, string) bool { return false }

func TestProvider(t *testing.T) { providertest.Run(t, newTestCloud(t)) }

// launch launches an instance in zone a.
func launch(t *testing.T, c *simulated.Cloud, token string) fleet.Instance {
	t.Helper()
	i, err := c.Launch(t.Context(), provider.Launch{
		Action: "up-1", Slot: 1, Token: t.Name() + token,
		Placement: fleet.Placement{Zone: "a", InstanceType: simulated.InstanceType, Market: fleet.Spot},
	})
	require.NoError(t, err)
	return i.Instance
}

// nodeOf returns the Node of an instance, nil if there is none.
func nodeOf(t *testing.T, i fleet.Instance) *corev1.Node {
	t.Helper()
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for n := range nodes.Items {
		if nodes.Items[n].Spec.ProviderID == i.ProviderID {
			return &nodes.Items[n]
		}
	}
	return nil
}

func readyOf(node *corev1.Node) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

func states(t *testing.T, c *simulated.Cloud) map[string]fleet.InstanceState {
	t.Helper()
	all, err := c.List(t.Context())
	require.NoError(t, err)
	out := map[string]fleet.InstanceState{}
	for _, i := range all {
		out[i.ID] = i.State
	}
	return out
}

func TestNodesJoinAfterTheDelay(t *testing.T) {
	s := newTestCloud(t)
	c := s.pool("joining", func(o *simulated.Options) {
		o.Labels = map[string]string{"team": "shop"}
		o.Taints = []corev1.Taint{{Key: "dedicated", Value: "shop", Effect: corev1.TaintEffectNoSchedule}}
	})
	i := launch(t, c, "1")
	assert.Equal(t, fleet.Pending, i.State)
	s.pass(t, joinDelay-time.Second)
	assert.Equal(t, map[string]fleet.InstanceState{i.ID: fleet.Running}, states(t, c))
	require.Nil(t, nodeOf(t, i))

	s.pass(t, time.Second)
	node := nodeOf(t, i)
	require.NotNil(t, node)
	assert.Equal(t, corev1.ConditionTrue, readyOf(node))
	assert.Equal(
		t,
		[]corev1.Taint{{Key: "dedicated", Value: "shop", Effect: corev1.TaintEffectNoSchedule}},
		node.Spec.Taints,
	)
	assert.Equal(t, "fake", node.Annotations["kwok.x-k8s.io/node"])
	offers, err := c.Offers(t.Context())
	require.NoError(t, err)
	for key, value := range offers[0].Labels {
		assert.Equal(t, value, node.Labels[key], key)
	}
	assert.Equal(t, "shop", node.Labels["team"])
	assert.Equal(t, node.Name, node.Labels[corev1.LabelHostname])
	for name, quantity := range offers[0].Allocatable {
		assert.True(t, quantity.Equal(node.Status.Allocatable[name]), name)
	}

	require.NoError(t, client.CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{}))
	s.pass(t, time.Minute)
	assert.Nil(t, nodeOf(t, i), "a deleted Node is not created again")
}

// The Node of an instance that was launched before the spec changed has the shape at launch.
func TestNodesHaveTheShapeOfTheirLaunch(t *testing.T) {
	s := newTestCloud(t)
	i := launch(t, s.pool("shaped", shape("3")), "1")
	s.pool("shaped", shape("5"))
	s.pass(t, joinDelay)
	node := nodeOf(t, i)
	require.NotNil(t, node)
	assert.Equal(t, "3", node.Status.Allocatable.Cpu().String())
}

func TestOutdated(t *testing.T) {
	s := newTestCloud(t)
	launch(t, s.pool("outdated", shape("2")), "1")
	for name, c := range map[string]struct {
		change func(*simulated.Options)
		want   string
	}{
		"the same":        {shape("2"), ""},
		"the same amount": {shape("2000m"), ""},
		"another shape": {shape("4"),
			"it was launched with cpu 2, memory 8Gi, pods 110, and new ones have cpu 4, memory 8Gi, pods 110"},
		"another zone": {func(o *simulated.Options) { shape("2")(o); o.Spec.Zones = []string{"b", "c"} },
			"its zone a is not one of the pool's any more"},
	} {
		all, err := s.pool("outdated", c.change).List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.Equal(t, c.want, all[0].Outdated, name)
	}
}

func TestTerminatedInstanceLeavesItsNodeWithoutKubelet(t *testing.T) {
	s := newTestCloud(t)
	c := s.pool("terminated")
	i := launch(t, c, "1")
	s.pass(t, joinDelay)
	require.NoError(t, c.Terminate(t.Context(), i.ID))
	assert.Equal(t, map[string]fleet.InstanceState{i.ID: fleet.Leaving}, states(t, c))
	s.pass(t, time.Second)
	assert.Equal(t, map[string]fleet.InstanceState{i.ID: fleet.Leaving}, states(t, c), "for a while")
	node := nodeOf(t, i)
	require.NotNil(t, node)
	assert.Equal(t, corev1.ConditionUnknown, readyOf(node))
	s.pass(t, 4*time.Second)
	assert.Empty(t, states(t, c))
	assert.NotNil(t, nodeOf(t, i), "until it is deleted")
	assert.Equal(t, "custom", node.Annotations["kwok.x-k8s.io/status"], "kwok must not make it ready again")

	again := launch(t, c, "1")
	assert.Equal(t, i.ID, again.ID)
	s.pass(t, 2*time.Hour)
	_, err := client.CoreV1().ConfigMaps(s.namespace).Get(t.Context(), i.ID, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestTerminationByUser(t *testing.T) {
	for _, c := range []struct {
		annotation string
		nodeStays  bool
	}{{simulated.AnnotationTerminate, true}, {simulated.AnnotationVanish, false}} {
		t.Run(strings.ReplaceAll(c.annotation, "/", "."), func(t *testing.T) {
			s := newTestCloud(t)
			s.namespace = "termination-by-user"
			cloud := s.pool("console-" + fmt.Sprint(c.nodeStays))
			i := launch(t, cloud, "1")
			s.pass(t, joinDelay)
			require.NotNil(t, nodeOf(t, i))
			s.annotate(t, i.ID, c.annotation, "true")
			s.pass(t, time.Second)
			node := nodeOf(t, i)
			require.NotNil(t, node)
			assert.Equal(t, corev1.ConditionUnknown, readyOf(node))
			assert.Equal(t, c.nodeStays, len(states(t, cloud)) == 1, "a vanished instance is not listed while it ends")
			s.pass(t, 5*time.Second)
			assert.Empty(t, states(t, cloud))
			assert.Equal(t, c.nodeStays, nodeOf(t, i) != nil)
		})
	}
}

func TestInstancesThatNeverJoin(t *testing.T) {
	s := newTestCloud(t)
	c := s.pool("never")
	annotated := launch(t, c, "1")
	s.annotate(t, annotated.ID, simulated.AnnotationNeverJoin, "true")
	undo := s.fault(t, simulated.FaultNeverJoin, "true")
	all := launch(t, c, "2")
	undo()
	joins := launch(t, c, "3")
	s.pass(t, time.Hour)
	assert.Nil(t, nodeOf(t, annotated))
	assert.Nil(t, nodeOf(t, all))
	assert.NotNil(t, nodeOf(t, joins))
	assert.Len(t, states(t, c), 3)
}

func TestInstancesAreHiddenAtFirst(t *testing.T) {
	s := newTestCloud(t)
	c := s.pool("hidden")
	s.fault(t, simulated.FaultHiddenFor, "10s")
	i := launch(t, c, "1")
	s.pass(t, 9*time.Second)
	assert.Empty(t, states(t, c))
	assert.Equal(t, i.ID, launch(t, c, "1").ID, "the token still returns it")
	s.pass(t, time.Second)
	assert.Len(t, states(t, c), 1)
}

func TestCapacityByPatterns(t *testing.T) {
	s := newTestCloud(t)
	c := s.pool("capacity")
	earlier := launch(t, c, "earlier")
	s.fault(t, simulated.FaultExhausted, "a/*/Spot\nb/simulated/OnDemand")
	for zone, markets := range map[string]map[fleet.Market]bool{
		"a": {fleet.Spot: false, fleet.OnDemand: true}, "b": {fleet.Spot: true, fleet.OnDemand: false},
	} {
		for market, available := range markets {
			l := provider.Launch{
				Action:    "up",
				Token:     zone + string(market),
				Placement: fleet.Placement{Zone: zone, InstanceType: simulated.InstanceType, Market: market},
			}
			_, err := c.Launch(t.Context(), l)
			if available {
				assert.NoError(t, err)
			} else {
				assert.Equal(t, provider.Capacity, provider.ClassOf(err), "%v", err)
			}
		}
	}
	assert.Equal(t, earlier.ID, launch(t, c, "earlier").ID, "an existing instance needs no capacity")
}

func TestEveryCallFailsOnDemand(t *testing.T) {
	s := newTestCloud(t)
	c := s.pool("failing")
	s.fault(t, simulated.FaultError, string(provider.Throttled))
	_, launching := c.Launch(t.Context(), provider.Launch{Token: "t"})
	_, listing := c.List(t.Context())
	for _, err := range []error{launching, listing, c.Terminate(t.Context(), "i"), c.MarkJoinFailed(t.Context(), "i")} {
		assert.Equal(t, provider.Throttled, provider.ClassOf(err), "%v", err)
	}
}

func TestInvalidFaultsFailCalls(t *testing.T) {
	for key, value := range map[string]string{
		simulated.FaultExhausted: "a/Spot", simulated.FaultHiddenFor: "soon",
		simulated.FaultNeverJoin: "True", simulated.FaultError: "Throtled",
	} {
		t.Run(key, func(t *testing.T) {
			s := newTestCloud(t)
			s.fault(t, key, value)
			_, err := s.pool("invalid").List(t.Context())
			require.ErrorContains(t, err, "data."+key)
			assert.ErrorContains(t, err, value)
		})
	}
}

func TestInterruption(t *testing.T) {
	s := newTestCloud(t)
	c := s.pool("spot")
	i := launch(t, c, "1")
	s.pass(t, joinDelay)
	s.annotate(t, i.ID, simulated.AnnotationInterrupt, "2m")
	s.pass(t, time.Second)
	deadline := s.Now().Add(2 * time.Minute)
	want := []provider.Message{{InstanceID: i.ID, Kind: provider.MessageInterruption, Deadline: deadline}}
	for range 2 {
		messages, err := c.Messages(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, messages, "until it is done")
	}
	require.NoError(t, c.Done(t.Context(), want[0]))
	messages, err := c.Messages(t.Context())
	require.NoError(t, err)
	assert.Empty(t, messages)

	s.pass(t, 2*time.Minute-time.Second)
	assert.Equal(t, map[string]fleet.InstanceState{i.ID: fleet.Running}, states(t, c))
	s.pass(t, time.Second)
	assert.Equal(t, map[string]fleet.InstanceState{i.ID: fleet.Leaving}, states(t, c))
	assert.Equal(t, corev1.ConditionUnknown, readyOf(nodeOf(t, i)))
	s.pass(t, 5*time.Second)
	assert.Empty(t, states(t, c))
}

func TestRebalanceRecommendation(t *testing.T) {
	s := newTestCloud(t)
	c := s.pool("advice")
	i := launch(t, c, "1")
	s.annotate(t, i.ID, simulated.AnnotationRebalance, "true")
	s.pass(t, time.Second)
	messages, err := c.Messages(t.Context())
	require.NoError(t, err)
	require.Equal(t, []provider.Message{{InstanceID: i.ID, Kind: provider.MessageRebalance}}, messages)
	require.NoError(t, c.Done(t.Context(), messages[0]))
	messages, err = c.Messages(t.Context())
	require.NoError(t, err)
	assert.Empty(t, messages)
	assert.Len(t, states(t, c), 1)
}

func TestInstancesJoinAtDifferentTimes(t *testing.T) {
	s := newTestCloud(t)
	c := s.pool("jitter", func(o *simulated.Options) { o.Jitter, o.Seed = 0.5, 1 })
	var instances []fleet.Instance
	for n := range 4 {
		instances = append(instances, launch(t, c, fmt.Sprint(n)))
	}
	joined := func() (n int) {
		for _, i := range instances {
			if nodeOf(t, i) != nil {
				n++
			}
		}
		return n
	}
	s.pass(t, joinDelay/2-time.Second)
	assert.Zero(t, joined(), "none within half of the delay")
	counts := map[int]bool{}
	for range 31 {
		s.pass(t, time.Second)
		counts[joined()] = true
	}
	assert.Equal(t, 4, joined(), "all within one and a half of it")
	assert.Greater(t, len(counts), 2, "at different times")
}

// One process makes a Node ready while another terminates its instance: the next step stops the kubelet again.
func TestNodeThatJoinsLateIsStopped(t *testing.T) {
	s := newTestCloud(t)
	c := s.pool("late")
	i := launch(t, c, "1")
	s.pass(t, joinDelay)
	require.NoError(t, c.Terminate(t.Context(), i.ID))
	s.pass(t, time.Second)
	node := nodeOf(t, i)
	require.Equal(t, corev1.ConditionUnknown, readyOf(node))
	for k := range node.Status.Conditions {
		node.Status.Conditions[k].Status = corev1.ConditionTrue
	}
	_, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.ConditionTrue, readyOf(nodeOf(t, i)))
	s.pass(t, time.Second)
	require.Equal(t, corev1.ConditionUnknown, readyOf(nodeOf(t, i)))
}

// TestConcurrentSteps terminates and steps concurrently.
func TestConcurrentSteps(t *testing.T) {
	s := newTestCloud(t)
	c := s.pool("many")
	stays, goes := launch(t, c, "stays"), launch(t, c, "goes")
	s.mu.Lock()
	s.now = s.now.Add(joinDelay)
	s.mu.Unlock()
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() { assert.NoError(t, c.Step(t.Context(), s.Now())) })
		calls.Go(func() { assert.NoError(t, c.Terminate(t.Context(), goes.ID)) })
	}
	calls.Wait()
	s.pass(t, 5*time.Second)
	assert.Equal(t, map[string]fleet.InstanceState{stays.ID: fleet.Running}, states(t, c))
	assert.Equal(t, corev1.ConditionTrue, readyOf(nodeOf(t, stays)))
	if node := nodeOf(t, goes); node != nil {
		assert.Equal(t, corev1.ConditionUnknown, readyOf(node))
	}
}

// TestRun runs in real time.
func TestRun(t *testing.T) {
	s := newTestCloud(t)
	c := s.pool("running", func(o *simulated.Options) { o.Spec.JoinDelay = &metav1.Duration{}; o.Now = time.Now })
	i := launch(t, c, "1")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	require.Eventually(t, func() bool { return nodeOf(t, i) != nil }, 30*time.Second, 50*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}

func TestReceiver(t *testing.T) {
	s := newTestCloud(t)
	c := s.pool("noticed")
	i := launch(t, c, "1")
	s.annotate(t, i.ID, simulated.AnnotationInterrupt, "2m")
	s.annotate(t, i.ID, simulated.AnnotationRebalance, "true")
	s.pass(t, time.Second)
	receiver := simulated.Receiver{Cloud: c}
	messages, err := receiver.Receive(t.Context())
	require.NoError(t, err)
	require.Equal(t, []provider.Message{
		{InstanceID: i.ID, Kind: provider.MessageInterruption, Deadline: s.Now().Add(2 * time.Minute)},
		{InstanceID: i.ID, Kind: provider.MessageRebalance},
	}, messages)
	for _, m := range messages {
		require.NoError(t, receiver.Done(t.Context(), m))
	}
	left, err := c.Messages(t.Context())
	require.NoError(t, err)
	assert.Empty(t, left)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = receiver.Receive(ended)
	assert.True(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
}
