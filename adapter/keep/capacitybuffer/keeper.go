// Package capacitybuffer keeps a CapacityBuffer for each PredictedMetric with spec.capacityBuffer: as many spare pods
// as are needed when a node that is ordered now has started. A node autoscaler, such as cluster-autoscaler or
// Karpenter, has nodes ready for them. Package keep writes the CapacityBuffers.
package capacitybuffer

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/api/v1alpha1"
)

// emptyPeriod is how long a buffer is empty before it is deleted. Karpenter 1.14 releases nodes when a buffer becomes
// empty, and keeps them when it is deleted. It collects changes for at most ten seconds.
const emptyPeriod = 15 * time.Second

// Keeper keeps the CapacityBuffers of PredictedMetrics with spec.capacityBuffer.
type Keeper struct {
	*keep.Keeper[status, memory]
	nodes *Nodes

	// Of Start alone.
	watching bool // nodes are watched
	running  sync.WaitGroup
}

// status is the part of the status of a PredictedMetric about its buffer, nil for none.
type status = *v1alpha1.CapacityBufferStatus

// memory has what a Keeper remembers of a buffer between two checks.
type memory struct {
	hold    hold
	size    int       // the last planned one
	sized   bool      // size is known
	shrunk  time.Time // when it last became smaller
	emptied time.Time // when it was made empty to be deleted
}

// New returns a Keeper, and registers its metrics.
func New(o keep.Options, nodes *Nodes) *Keeper {
	k := &Keeper{nodes: nodes}
	k.Keeper = keep.New(keep.Kind[status, memory]{
		Type: buffers,
		Words: keep.Words{
			Kind: kind, Field: "spec.capacityBuffer", Subject: kind, Action: "KeepCapacity",
			Effect: "has spare pods of", Contested: reasonContested, Conflict: "the spare pods of both add up",
			DryRun: ", with its spare pods", RightsHint: rightsHint,
		},
		Fields: keep.Fields[status]{
			Requested: func(s *v1alpha1.PredictedMetricSpec) bool { return s.CapacityBuffer != nil },
			Status:    func(s *v1alpha1.PredictedMetricStatus) *status { return &s.CapacityBuffer },
			Condition: v1alpha1.ConditionCapacityBufferReady,
		},
		StatusOf: statusOf, Plan: k.plan, Prepare: k.watchNodes, Drain: empty,
	}, o)
	o.Registerer.MustRegister(k)
	return k
}

// Start implements keep.Runner.
func (k *Keeper) Start(ctx context.Context) error {
	k.watching = false
	ctx, cancel := context.WithCancel(ctx)
	defer k.running.Wait()
	defer cancel()
	return k.Keeper.Start(ctx)
}

// watchNodes starts to measure the startup time of nodes if a PredictedMetric needs it.
func (k *Keeper) watchNodes(ctx context.Context, metrics []*v1alpha1.PredictedMetric) {
	for _, pm := range metrics {
		if b := pm.Spec.CapacityBuffer; !k.watching && b != nil && b.NodeStartupTime == nil {
			k.watching = true
			k.running.Go(func() { k.nodes.Watch(ctx) })
		}
	}
}

// statusOf returns what the status has of a buffer without a plan.
func statusOf(name string, spec any) status {
	s := &v1alpha1.CapacityBufferStatus{Name: name}
	if n, ok := replicasIn(spec.(map[string]any)); ok {
		s.Replicas = new(int32(n))
	}
	return s
}

// empty takes all spare pods away before a buffer is deleted, and keeps the empty buffer for a while.
func empty(live client.Object, m *memory, now time.Time) (change client.Object, done bool) {
	if n, ok := replicasIn(specIn(live)); !ok || n > 0 {
		m.emptied = now
		spec := map[string]any{}
		maps.Copy(spec, specIn(live))
		spec["replicas"] = int64(0)
		change = live.DeepCopyObject().(client.Object)
		setSpec(change, spec)
		return change, false
	}
	if m.emptied.IsZero() { // an earlier leader or the forecast emptied it: the autoscaler may not have seen that yet
		m.emptied = now
	}
	return nil, now.Sub(m.emptied) >= emptyPeriod
}

var (
	descReplicas = prometheus.NewDesc("foresail_capacity_buffer_replicas",
		"[ALPHA] Spare pods that the CapacityBuffer of a PredictedMetric asks for.",
		[]string{"namespace", "predictedmetric"}, nil)
	descStartup = prometheus.NewDesc("foresail_capacity_buffer_node_startup_time_seconds",
		"[ALPHA] Time from a pod that waits for a new node until it is scheduled, assumed or measured.", nil, nil)
)

// Describe implements prometheus.Collector.
func (k *Keeper) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descReplicas, descStartup} {
		out <- d
	}
}

// Collect implements prometheus.Collector. Only the leader has values.
func (k *Keeper) Collect(out chan<- prometheus.Metric) {
	for key, s := range k.Statuses() {
		if s != nil && s.Replicas != nil {
			n := float64(*s.Replicas)
			out <- prometheus.MustNewConstMetric(descReplicas, prometheus.GaugeValue, n, key.Namespace, key.Name)
		}
	}
	if s, ok := k.nodes.Startup(); ok {
		out <- prometheus.MustNewConstMetric(descStartup, prometheus.GaugeValue, s.Time.Seconds())
	}
}
