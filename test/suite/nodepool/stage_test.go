package nodepool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

const (
	// stageLabel is the label of Nodes that tells their stage.
	stageLabel = "test.foresail.dev/stage"
	// joinDelay is from the launch of an instance until its Node is Ready.
	joinDelay = 10 * time.Second
	// settleTicks is how many ticks a pool has to come to rest.
	settleTicks = 200
)

// stage is everything around the processes of one test: a pool, its cloud, pods, and the time.
type stage struct {
	t        *testing.T
	name     string // of the pool, and of the namespace of its pods
	client   kubernetes.Interface
	clock    *clock
	cloud    cloud
	journal  state.Store
	spec     config.Spec
	scenario scenario
	replicas *replicas

	leaders atomic.Int64 // how often the lease was taken

	mu         sync.Mutex
	ever       map[string]fleet.Instance // every instance that was ever seen, as it was last seen
	violations []string                  // what must never happen and has
	notes      []string                  // what happened, for people
}

var stages atomic.Int64

// newStage sets the scene of a scenario: its workers are there, Ready, with pods on them, and no
// process runs yet.
func newStage(t *testing.T, sc scenario, newCloud func(*stage) cloud) *stage {
	t.Helper()
	client, err := kubernetes.NewForConfig(unlimited())
	require.NoError(t, err)
	s := &stage{
		t: t, name: fmt.Sprintf("stage-%d",
			stages.Add(1)), client: client, clock: newClock(), scenario: sc, ever: map[string]fleet.Instance{},
	}
	s.spec = config.Of(s.name, sc.spec)
	s.replicas = &replicas{stage: s, count: sc.pods, perNode: sc.perNode}
	s.create()
	t.Cleanup(s.clear)
	s.cloud = newCloud(s)
	director := &process{stage: s, wire: &wire{}, config: unlimited(), client: client, now: s.clock.Now}
	s.journal = s.cloud.store(director)
	s.populate(s.cloud.provider(director))
	if sc.begin != nil {
		sc.begin(s)
	}
	return s
}

// create makes the namespace of the stage, and its WorkerPool, whose status may keep the journal.
func (s *stage) create() {
	ctx := s.t.Context()
	_, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}},
		metav1.CreateOptions{})
	require.NoError(s.t, err)
	pools := server.Dynamic().Resource(v1alpha1.GroupVersion.WithResource("workerpools"))
	_, err = pools.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       "WorkerPool",
		"metadata":   map[string]any{"name": s.name},
		"spec": map[string]any{"min": int64(1), "max": int64(3),
			"provider": map[string]any{"simulated": map[string]any{}}},
	}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// populate launches the workers that the pool has at first, and waits until they carry the pods.
func (s *stage) populate(p provider.Provider) {
	ctx := s.t.Context()
	offers, err := p.Offers(ctx)
	require.NoError(s.t, err)
	for i := range s.scenario.workers {
		offer := offers[i%len(offers)]
		_, err := p.Launch(ctx, provider.Launch{
			Action: "first", Slot: i, Token: fmt.Sprintf("%s-first-%d", s.name, i),
			Placement: fleet.Placement{Zone: offer.Zone, Subnet: offer.Subnet, InstanceType: offer.InstanceType,
				Market: fleet.OnDemand},
		})
		require.NoError(s.t, err)
	}
	s.step(joinDelay + time.Second)
	require.Len(s.t, s.nodes(), s.scenario.workers)
}

// step lets time pass.
func (s *stage) step(d time.Duration) {
	s.t.Helper()
	ctx := s.t.Context()
	s.clock.advance(d)
	all, err := s.cloud.step(ctx)
	require.NoError(s.t, err)
	s.remember(all)
	nodes := s.nodes()
	if s.scenario.during != nil {
		s.scenario.during(s, nodes)
	}
	require.NoError(s.t, s.replicas.step(ctx, nodes))
}

// look remembers the instances that there are.
func (s *stage) look(ctx context.Context) {
	s.t.Helper()
	all, err := s.cloud.all(ctx)
	require.NoError(s.t, err)
	s.remember(all)
}

func (s *stage) remember(all []fleet.Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range all {
		s.ever[i.ID] = i
	}
}

// launched returns the instances that were launched by processes.
func (s *stage) launched() []fleet.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []fleet.Instance
	for _, i := range s.ever {
		if i.Action != "first" {
			out = append(out, i)
		}
	}
	return out
}

// living returns the instances that run.
func (s *stage) living() []fleet.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []fleet.Instance
	for _, i := range s.ever {
		if i.State == fleet.Running || i.State == fleet.Pending {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b fleet.Instance) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// nodes returns the Nodes of the stage by name.
func (s *stage) nodes() map[string]*corev1.Node {
	s.t.Helper()
	list, err := s.client.CoreV1().Nodes().List(s.t.Context(),
		metav1.ListOptions{LabelSelector: stageLabel + "=" + s.name})
	require.NoError(s.t, err)
	nodes := map[string]*corev1.Node{}
	for i := range list.Items {
		nodes[list.Items[i].Name] = &list.Items[i]
	}
	return nodes
}

// record returns the journal.
func (s *stage) record() state.Record {
	s.t.Helper()
	r, err := s.journal.Load(s.t.Context(), s.name)
	require.NoError(s.t, err)
	return r
}

// note keeps what happened for people who must find out why a test failed.
func (s *stage) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, s.clock.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// violate notes what must never happen.
func (s *stage) violate(format string, args ...any) {
	s.note("VIOLATION: "+format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// tellIfFailed logs what happened if the test has failed.
func (s *stage) tellIfFailed() {
	if s.t.Failed() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.t.Log("what happened:\n" + strings.Join(s.notes, "\n"))
	}
}

// clear removes what would cost other stages time.
func (s *stage) clear() {
	s.tellIfFailed()
	ctx := context.WithoutCancel(s.t.Context())
	now := *metav1.NewDeleteOptions(0)
	core := s.client.CoreV1()
	require.NoError(s.t, core.Nodes().DeleteCollection(ctx, now,
		metav1.ListOptions{LabelSelector: stageLabel + "=" + s.name}))
	require.NoError(s.t, core.Pods(s.name).DeleteCollection(ctx, now, metav1.ListOptions{}))
	require.NoError(s.t, core.ConfigMaps(s.name).DeleteCollection(ctx, now, metav1.ListOptions{}))
	require.NoError(s.t, s.client.PolicyV1().PodDisruptionBudgets(s.name).DeleteCollection(ctx, now,
		metav1.ListOptions{}))
}
