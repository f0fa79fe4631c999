package nodepool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/controller"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/signal"
	"github.com/foresail/foresail/nodepool/state"
)

// tickTimeout bounds a tick in real time, on a crowded machine.
const tickTimeout = time.Minute

// process is one run of a program that runs the pool of a stage.
type process struct {
	stage   *stage
	name    string
	wire    *wire
	config  *rest.Config // through the wire
	client  kubernetes.Interface
	now     func() time.Time
	pool    *nodepool.Pool
	notices provider.Notices

	mu   sync.Mutex
	last nodepool.CycleReport
}

// start starts a process that ends as k says; nil: it does not. Its clock may be wrong by skew.
func (s *stage) start(name string, k *kill, skew time.Duration) *process {
	s.t.Helper()
	p := &process{stage: s, name: name, wire: &wire{kill: k}, now: func() time.Time { return s.clock.Now().Add(skew) }}
	p.config = unlimited()
	p.config.Wrap(p.wire.wrap)
	var err error
	p.client, err = kubernetes.NewForConfig(p.config)
	require.NoError(s.t, err)
	provider := s.cloud.provider(p)
	p.notices = s.cloud.notices(p)
	p.pool, err = nodepool.New(nodepool.Options{
		Name: s.name, Owner: name,
		Spec:     func() (config.Spec, error) { return s.spec, nil },
		Store:    named{Store: s.cloud.store(p), wire: p.wire},
		Provider: witnessed{Provider: provider, stage: s},
		Observer: observer{p}, Signals: noSignals{}, Drainer: witnessedDrainer{&drain.Drainer{Client: p.client,
			Now: p.now}, s},
		Labeler: controller.Labeler{Client: p.client},
		Notices: p.notices, Reporter: p, Now: p.now, Seed: 1,
		// The stages have one API server: pods of another that are about to be bound are none that
		// could come to a node here.
		MaxBindGrace: time.Nanosecond,
	})
	require.NoError(s.t, err)
	return p
}

// tick has the process tick once, and returns whether it still lives.
func (p *process) tick(ctx context.Context) bool {
	t := p.stage.t
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		var err error
		defer func() { ended <- err }() // also when the process is killed
		if err = p.hear(ctx); err == nil {
			_, err = p.pool.Tick(ctx)
		}
	}()
	select {
	case err := <-ended:
		if err != nil && !p.wire.isDead() {
			p.stage.note("%s: %v", p.name, err)
		}
	case <-time.After(tickTimeout):
		require.FailNow(t, "a tick does not end", "%s after %v", p.name, p.wire.calls)
	}
	return !p.wire.isDead()
}

// hear takes what the cloud tells by itself, as the loop of a pool does.
func (p *process) hear(ctx context.Context) error {
	if p.notices == nil {
		return nil
	}
	messages, err := p.notices.Receive(ctx)
	p.pool.Notify(messages...)
	return err
}

// Report notes what a cycle came to.
func (p *process) Report(_ context.Context, t nodepool.CycleReport) {
	p.mu.Lock()
	p.last = t
	p.mu.Unlock()
	for _, e := range t.Events {
		if e.Reason == journal.EventLeading {
			p.stage.leaders.Add(1)
		}
		p.stage.note("%s: %s %s %s", p.name, e.Reason, e.Node, e.Message)
	}
	if t.Health != nil {
		p.stage.note("%s is not healthy: %v", p.name, t.Health)
	}
	p.stage.note("%s: leading %t, %s %s: %s [%s]", p.name, t.Leading, t.Decision.Step, t.Decision.Reason,
		t.Decision.Message, summary(t.Record))
}

// leads tells whether the process held the lease in its last tick.
func (p *process) leads() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.Leading
}

// unlimited returns a configuration for clients that never wait for their turn, and lose little
// time over encoding.
func unlimited() *rest.Config {
	config := server.RESTConfig()
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

// rests tells whether the process led in its last tick and knew of no work.
func (p *process) rests() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.Leading && p.last.Decision.Step == plan.Hold && summary(p.last.Record) == "nothing"
}

// kubernetesREST is for stores in the API.
func (p *process) kubernetesREST() rest.Interface {
	client, err := discovery.NewDiscoveryClientForConfig(p.config)
	require.NoError(p.stage.t, err)
	return client.RESTClient()
}

// observer sees what is of a stage, as other stages share its API server.
type observer struct{ *process }

func (o observer) Observe(ctx context.Context) (*cluster.Cluster, error) {
	c, err := cluster.List(ctx, o.client, o.now())
	if err != nil {
		return nil, err
	}
	c.Nodes = slices.DeleteFunc(c.Nodes,
		func(n cluster.Node) bool { return n.Object.Labels[stageLabel] != o.stage.name })
	c.Pending = slices.DeleteFunc(c.Pending, func(p cluster.Pending) bool { return p.Pod.Namespace != o.stage.name })
	return c, nil
}

func (o observer) Wake() <-chan struct{} { return nil }

// noSignals leaves all to pending pods, the minimum and the maximum.
type noSignals struct{}

func (noSignals) Observe(context.Context, signal.Observation) []plan.Signal { return nil }

func (noSignals) Seasonal(context.Context, time.Time, time.Duration) *plan.Seasonal { return nil }

// named names writes after what they write.
type named struct {
	state.Store
	wire *wire
}

func (n named) Save(ctx context.Context, pool string, r state.Record) (state.Record, error) {
	n.wire.writes(summary(r))
	return n.Store.Save(ctx, pool, r)
}

// summary says in a few words what a journal knows.
func summary(r state.Record) string {
	var parts []string
	if a := r.Action; a != nil {
		parts = append(parts, string(a.Kind))
		for _, slot := range a.Slots {
			parts = append(parts, string(slot.State))
		}
		for _, target := range a.Targets {
			parts = append(parts, string(target.State))
		}
	}
	for _, i := range r.Interruptions {
		parts = append(parts, fmt.Sprintf("Interruption-%s-%t", i.State, i.ReplacementSettled))
	}
	for _, x := range r.Repairs {
		parts = append(parts, fmt.Sprintf("Repair-%s-%t", x.State, x.ReplacementSettled))
	}
	for range r.Endings {
		parts = append(parts, "Ending")
	}
	for _, c := range r.PendingTerminations {
		parts = append(parts, "Condemned-"+c.Reason)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " ")
}

// isReady tells whether a node is Ready.
func isReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
