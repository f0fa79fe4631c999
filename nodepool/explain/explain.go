// Package explain shows why a pool of workers is as it is. It reads only the cluster: the WorkerPool with its decisions and its
// journal, and the nodes. It changes nothing.
package explain

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/binpack"
	"github.com/foresail/foresail/nodepool/clusterstate"
	"github.com/foresail/foresail/nodepool/state"
)

// Explanation is what is shown of a pool.
type Explanation struct {
	At         time.Time                 `json:"at"`
	Name       string                    `json:"name"`
	Generation int64                     `json:"generation"`
	Created    metav1.Time               `json:"created"`
	Spec       v1alpha1.WorkerPoolSpec   `json:"spec"`
	Status     v1alpha1.WorkerPoolStatus `json:"status"` // without the journal

	Journal *state.Record `json:"journal,omitempty"` // nil: there is none, or JournalError or JournalAt says where it is
	// JournalError is why the journal cannot be read.
	JournalError string `json:"journalError,omitempty"`
	JournalAt    string `json:"journalAt,omitempty"` // where it is kept, if not in the status

	Nodes      []Node `json:"nodes,omitempty"` // of the pool, by name
	NodesError string `json:"nodesError,omitempty"`
}

// Node is a node of the pool.
type Node struct {
	Name    string `json:"name"`
	Zone    string `json:"zone,omitempty"`
	Ready   bool   `json:"ready"`
	Movable int    `json:"movablePods"`
	Blocked string `json:"blocked,omitempty"` // why a removal of it would be refused
}

// Of explains a pool, with its newest decisions, as many as last says; 0 keeps all. The Explanation names what could not be
// read.
func Of(ctx context.Context, client kubernetes.Interface, pool *v1alpha1.WorkerPool, last int, now time.Time) Explanation {
	e := Explanation{
		At: now, Name: pool.Name, Generation: pool.Generation, Created: pool.CreationTimestamp,
		Spec: pool.Spec, Status: *pool.Status.DeepCopy(),
	}
	e.readJournal(pool)
	e.Status.Journal = nil
	if last > 0 {
		e.Status.Decisions = e.Status.Decisions[:min(last, len(e.Status.Decisions))]
	}
	cluster, err := clusterstate.List(ctx, client, now)
	if err != nil {
		e.NodesError = err.Error()
		return e
	}
	homes := binpack.NewHomes(cluster, binpack.Input{})
	deleted := !pool.DeletionTimestamp.IsZero() // then nobody asks whether its pods have another node
	for _, n := range cluster.Nodes {
		if n.Object.Labels[nodepool.LabelPool] == pool.Name {
			zone := n.Object.Labels["topology.kubernetes.io/zone"]
			blocked := n.Blocked
			if blocked == "" && !deleted {
				blocked = homes.Without([]string{n.Object.Name})
			}
			e.Nodes = append(e.Nodes, Node{Name: n.Object.Name, Zone: zone, Ready: n.Ready, Movable: n.Movable, Blocked: blocked})
		}
	}
	return e
}

func (e *Explanation) readJournal(pool *v1alpha1.WorkerPool) {
	if table := pool.Spec.State.DynamoDB; table != nil {
		e.JournalAt = fmt.Sprintf("table %s of DynamoDB", table.Table)
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
