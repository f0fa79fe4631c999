package nodepool

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/provider"
)

// witnessed sees to it that an instance is empty when it is terminated.
type witnessed struct {
	provider.Provider
	stage *stage
}

func (w witnessed) Terminate(ctx context.Context, id string) error {
	if err := w.stage.requireEmpty(ctx, id); err != nil {
		return err
	}
	return w.Provider.Terminate(ctx, id)
}

// witnessedDrainer checks that an instance is gone when its Node is deleted.
type witnessedDrainer struct {
	*drain.Drainer
	stage *stage
}

func (w witnessedDrainer) DeleteNode(ctx context.Context, node, providerID string) error {
	all, err := w.stage.cloud.all(ctx)
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.ProviderID == providerID && i.State != gone {
			w.stage.violate("node %s is deleted while its instance %s is %s", node, i.ID, i.State)
		}
	}
	return w.Drainer.DeleteNode(ctx, node, providerID)
}

// requireEmpty notes a violation if the node of an instance that is about to be terminated has pods.
func (s *stage) requireEmpty(ctx context.Context, id string) error {
	s.mu.Lock()
	instance := s.ever[id]
	s.mu.Unlock()
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: stageLabel + "=" + s.name})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if node.Spec.ProviderID != instance.ProviderID {
			continue
		}
		pods, err := s.client.CoreV1().Pods("").List(ctx,
			metav1.ListOptions{FieldSelector: "spec.nodeName=" + node.Name})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if class, _ := cluster.Classify(&pods.Items[i], time.Now()); class != cluster.Ignored &&
				class != cluster.Tolerant {
				s.violate("instance %s is terminated with pod %s on it", id, pods.Items[i].Name)
			}
		}
	}
	return nil
}

// unrest returns what keeps the pool from being at rest as its scenario wants it, nil if it is.
func (s *stage) unrest() []string {
	s.t.Helper()
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if text := summary(s.record()); text != "nothing" {
		add("the journal has open %s", text)
	}
	if rest := s.scenario.rest; rest != nil && !rest(s) {
		add("what the scenario is about has not come yet")
	}
	living, nodes := s.living(), s.nodes()
	if len(living) != s.scenario.want {
		add("%d instances live, want %d", len(living), s.scenario.want)
	}
	if len(nodes) != s.scenario.want {
		add("there are %d Nodes, want %d", len(nodes), s.scenario.want)
	}
	ready := map[string]bool{}
	for name, node := range nodes {
		if isReady(node) {
			ready[node.Spec.ProviderID] = true
		}
		if _, marked := drain.MarkOf(node); marked || node.Spec.Unschedulable || len(node.Spec.Taints) > 0 ||
			node.Annotations[drain.CordonedBy] != "" {
			add("node %s is marked: %+v %v", name, node.Spec, node.Annotations)
		}
	}
	for _, i := range living {
		if !ready[i.ProviderID] {
			add("instance %s has no Ready node", i.ID)
		}
	}
	return append(out, s.lostPods()...)
}

// lostPods tells of pods that do not run.
func (s *stage) lostPods() []string {
	s.t.Helper()
	pods, err := s.client.CoreV1().Pods(s.name).List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	running := 0
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			running++
		}
	}
	if running == s.replicas.count {
		return nil
	}
	return []string{fmt.Sprintf("%d pods are on nodes, want %d", running, s.replicas.count)}
}

// drive has a process tick until it dies or the pool is at rest, and returns whether it still lives.
func (s *stage) drive(p *process) bool {
	s.t.Helper()
	var why []string
	for range settleTicks {
		if !p.tick(s.t.Context()) {
			return false
		}
		// Whoever waits for a lease is not kept waiting for long.
		if p.leads() {
			s.step(cmp.Or(s.scenario.stride, 5*time.Second))
		} else {
			s.step(30 * time.Second)
		}
		if !p.rests() {
			why = []string{"the process does not lead, or has work"}
		} else if why = s.unrest(); len(why) == 0 {
			return true
		}
	}
	require.Fail(s.t, "the pool does not come to rest", "%v", why)
	return true
}

// linger sees that a pool at rest stays there, past all that might still be waited for.
func (s *stage) linger(p *process) bool {
	s.t.Helper()
	for _, d := range []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute, 5 * time.Second,
		20 * time.Minute, 5 * time.Second} {
		s.step(d)
		if !p.tick(s.t.Context()) {
			return false
		}
	}
	s.step(5 * time.Second)
	// Where a maximum cannot be come down to, it is tried again and again.
	if !s.scenario.blocked {
		require.Empty(s.t, s.unrest(), "some time after it was at rest")
	}
	return true
}

// check holds what happened to what may have.
func (s *stage) check() {
	s.t.Helper()
	s.look(s.t.Context())
	assert.Empty(s.t, s.violations)
	s.checkCalls()
	assert.Len(s.t, s.launched(), s.scenario.launch, "instances launched")
}

// checkCalls sees that no call has launched more instances than the scenario needs.
func (s *stage) checkCalls() {
	s.t.Helper()
	calls := map[string][]string{}
	for _, i := range s.launched() {
		calls[i.Token] = append(calls[i.Token], i.ID)
	}
	for token, ids := range calls {
		assert.LessOrEqual(s.t, len(ids), s.scenario.launch, "%s", token)
	}
}
