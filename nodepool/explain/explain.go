// Package explain explains the state of a pool of workers. It reads only the cluster: the WorkerPool with its
// decisions and its journal, and the nodes.
package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"
)

// Explanation has the facts about a pool.
type Explanation struct {
	At         time.Time                 `json:"at"`
	Name       string                    `json:"name"`
	Generation int64                     `json:"generation"`
	Created    metav1.Time               `json:"created"`
	Spec       v1alpha1.WorkerPoolSpec   `json:"spec"`
	Status     v1alpha1.WorkerPoolStatus `json:"status"` // without the journal

	Journal *state.Record `json:"journal,omitempty"` // nil: none, or see JournalError and JournalAt
	// JournalError is why the journal cannot be read.
	JournalError string `json:"journalError,omitempty"`
	JournalAt    string `json:"journalAt,omitempty"` // where it is stored, if not in the status

	Nodes      []Node `json:"nodes,omitempty"` // of the pool, by name
	NodesError string `json:"nodesError,omitempty"`

	Unschedulable *int  `json:"unschedulablePods,omitempty"` // of the whole cluster; nil: unknown
	Pods          []Pod `json:"pendingPods,omitempty"`       // those that have waited longest
}

// Node is a node of the pool.
type Node struct {
	Name         string       `json:"name"`
	Zone         string       `json:"zone,omitempty"`
	InstanceType string       `json:"instanceType,omitempty"`
	Market       fleet.Market `json:"market,omitempty"` // "" = unknown
	Created      metav1.Time  `json:"created"`
	Ready        bool         `json:"ready"`
	State        string       `json:"state"` // Ready or not, cordoned, and the state of its removal
	Pods         int          `json:"pods"`  // that have not ended
	Movable      int          `json:"movablePods"`
	Blocked      string       `json:"blocked,omitempty"` // why it cannot be removed
}

// Pod is an unschedulable pod.
type Pod struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Since     time.Time `json:"since"`
	Reason    string    `json:"reason,omitempty"` // if known
}

// maxPods bounds the pods of an Explanation.
const maxPods = 100

// Of explains a pool with its last decisions; 0 keeps all. Read errors are part of the Explanation.
func Of(
	ctx context.Context, client kubernetes.Interface, pool *v1alpha1.WorkerPool, last int, now time.Time,
) Explanation {
	e := OfPool(pool, last, now)
	seen, err := cluster.List(ctx, client, now)
	if err != nil {
		e.NodesError = err.Error()
		return e
	}
	e.AddNodes(NodesOf(seen, pool))
	e.AddPods(seen)
	return e
}

// OfPool explains a pool from its object alone.
func OfPool(pool *v1alpha1.WorkerPool, last int, now time.Time) Explanation {
	e := Explanation{
		At: now, Name: pool.Name, Generation: pool.Generation, Created: pool.CreationTimestamp,
		Spec: pool.Spec, Status: *pool.Status.DeepCopy(),
	}
	e.readJournal(pool)
	e.Status.Journal = nil
	if last > 0 {
		e.Status.Decisions = e.Status.Decisions[:min(last, len(e.Status.Decisions))]
	}
	return e
}

// NodesOf returns the nodes of a pool by name. For each it searches other nodes for its pods, which costs one packing.
func NodesOf(seen *cluster.Cluster, pool *v1alpha1.WorkerPool) []Node {
	var nodes []Node
	simulator := scheduling.NewSimulator(seen, scheduling.Input{})
	deleted := !pool.DeletionTimestamp.IsZero() // then nodes are drained even if their pods fit on no other
	for i := range seen.Nodes {
		n := &seen.Nodes[i]
		labels := n.Object.Labels
		if labels[cluster.LabelPool] != pool.Name {
			continue
		}
		blocked := n.Blocked
		if blocked == "" && !deleted {
			blocked = simulator.Without([]string{n.Object.Name}, false)
		}
		nodes = append(nodes, Node{
			Name: n.Object.Name, Zone: labels[corev1.LabelTopologyZone],
			InstanceType: labels[corev1.LabelInstanceTypeStable], Market: marketOfNode(labels),
			Created: n.Object.CreationTimestamp, Ready: n.Ready, State: stateOf(n),
			Pods: len(n.Pods), Movable: n.Movable, Blocked: blocked,
		})
	}
	return nodes
}

func stateOf(n *cluster.Node) string {
	text := "NotReady"
	if n.Ready {
		text = "Ready"
	}
	if n.Object.Spec.Unschedulable {
		text += ", cordoned"
	}
	return text
}

// marketOfNode reads the market from labels of others: Foresail sets none.
func marketOfNode(labels map[string]string) fleet.Market {
	for _, key := range []string{
		"eks.amazonaws.com/capacityType", "karpenter.sh/capacity-type", "node.kubernetes.io/lifecycle",
	} {
		switch strings.ToLower(labels[key]) {
		case "spot":
			return fleet.Spot
		case "on_demand", "on-demand", "ondemand", "normal":
			return fleet.OnDemand
		}
	}
	return ""
}

// AddNodes adds the nodes of the pool, with their removals and markets in the journal.
func (e *Explanation) AddNodes(nodes []Node) {
	e.Nodes = slices.Clone(nodes)
	if e.Journal == nil {
		return
	}
	removals := slices.Concat(e.Journal.Interruptions, e.Journal.Repairs, e.Journal.Endings)
	var slots []state.Slot
	if open := e.Journal.Action; open != nil {
		removals, slots = append(removals, open.Targets...), open.Slots
	}
	for i := range e.Nodes {
		n := &e.Nodes[i]
		for _, r := range removals {
			if r.Node == n.Name {
				n.State += ", " + string(r.State)
				break
			}
		}
		for _, s := range slots {
			if s.Node == n.Name {
				n.Market = s.Market
			}
		}
	}
}

// AddPods adds the unschedulable pods of the cluster.
func (e *Explanation) AddPods(seen *cluster.Cluster) {
	e.Unschedulable = new(len(seen.Pending))
	for _, p := range seen.Pending[:min(maxPods, len(seen.Pending))] {
		reason := ""
		switch {
		case p.Stuck != "":
			reason = "no node could run it, as " + p.Stuck
		case p.Filtered:
			reason = "the scheduler extender filters all nodes by their predicted use"
		}
		e.Pods = append(e.Pods, Pod{Namespace: p.Pod.Namespace, Name: p.Pod.Name, Since: p.Since, Reason: reason})
	}
}

func (e *Explanation) readJournal(pool *v1alpha1.WorkerPool) {
	if dynamo := pool.Spec.State.DynamoDB; dynamo != nil {
		e.JournalAt = fmt.Sprintf("table %s of DynamoDB", dynamo.Table)
		return
	}
	if pool.Status.Journal == nil {
		return
	}
	record, err := state.Decode(pool.Status.Journal.Raw)
	if err != nil {
		e.JournalError = err.Error()
		return
	}
	e.Journal = &record
}
