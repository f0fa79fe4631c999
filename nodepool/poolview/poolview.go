// Package poolview serves the WorkerPools of `foresail dashboard`: it reads them from the cluster,
// with the rights of the user, and describes them as `foresail explain workerpool` does.
package poolview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/explain"
	"github.com/foresail/foresail/nodepool/prices"
)

const (
	// maxPools, maxNodes and maxDecisions bound an answer.
	maxPools     = 200
	maxNodes     = 1000
	maxDecisions = 20
	// clusterAge is the age up to which nodes and pods are reused, because reading them means listing
	// the whole cluster. A cluster that takes long to read is read for at most a twentieth of the
	// time.
	clusterAge  = 10 * time.Second
	readingRest = 20
)

// View answers requests of the page. It is safe for concurrent use.
type View struct {
	Objects client.Reader
	Cluster kubernetes.Interface
	Failure error         // why there is no cluster to read
	Prices  prices.Prices // nil: costs are not shown
	Now     func() time.Time

	history history

	mu   sync.Mutex // of seen; held while the cluster is read, so that it is read once
	seen *clusterReading
}

// clusterReading is the result of reading the cluster.
type clusterReading struct {
	at      time.Time
	took    time.Duration // to read it and to evaluate its nodes
	cluster *cluster.Cluster
	err     error
	nodes   map[string][]explain.Node // by pool
}

// trouble returns the rank of a pool in the list, lowest first: pools that cannot act, with pending
// pods, at their maximum.
func trouble(pool *explain.Line) int {
	switch {
	case !pool.Healthy:
		return 0
	case pool.Pending != nil && *pool.Pending > 0:
		return 1
	case pool.Desired != nil && *pool.Desired >= pool.Max && pool.Max > pool.Min:
		return 2
	}
	return 3
}

// List is the answer about all pools, those in trouble first. Problem is the reason if there is
// none.
type List struct {
	Time    time.Time      `json:"time"`
	Problem string         `json:"problem,omitempty"`
	Pools   []explain.Line `json:"pools"`
	More    bool           `json:"more"` // there are more pools
}

// Detail is the answer about one pool. Problem is the reason if there is none.
type Detail struct {
	Time    time.Time     `json:"time"`
	Problem string        `json:"problem,omitempty"`
	Line    explain.Line  `json:"line"` // as in the list
	Pool    *explain.View `json:"pool"`

	AllNodes int       `json:"allNodes"` // number of nodes of the pool; the view has at most maxNodes
	NodesAt  time.Time `json:"nodesAt"`  // when they were read
	Cost     string    `json:"cost"`     // of the nodes, "" without prices

	History []Point `json:"history"` // the last hour, as far as the page has requested it, and before that the decisions
}

// List returns all pools.
func (v *View) List(ctx context.Context) List {
	out := List{Time: v.Now(), Pools: []explain.Line{}}
	if v.Failure != nil {
		out.Problem = problem(v.Failure)
		return out
	}
	var pools v1alpha1.WorkerPoolList
	if err := v.Objects.List(ctx, &pools, client.Limit(maxPools)); err != nil {
		out.Problem = problem(err)
		return out
	}
	for i := range pools.Items {
		v.history.record(&pools.Items[i], out.Time)
		out.Pools = append(out.Pools, explain.LineOf(&pools.Items[i], out.Time))
	}
	// equal ones by name
	slices.SortStableFunc(out.Pools, func(a, b explain.Line) int { return trouble(&a) - trouble(&b) })
	if out.More = pools.Continue != ""; !out.More {
		v.history.keep(pools.Items)
	}
	return out
}

// Detail returns one pool.
func (v *View) Detail(ctx context.Context, name string) Detail {
	out := Detail{Time: v.Now()}
	if v.Failure != nil {
		out.Problem = problem(v.Failure)
		return out
	}
	var pool v1alpha1.WorkerPool
	if err := v.Objects.Get(ctx, client.ObjectKey{Name: name}, &pool); err != nil {
		if apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			err = fmt.Errorf("there is no WorkerPool %s", name)
		}
		out.Problem = problem(err)
		return out
	}
	v.history.record(&pool, out.Time)
	out.Line = explain.LineOf(&pool, out.Time)
	out.History = v.history.lastHour(&pool, out.Time)
	e := explain.OfPool(&pool, maxDecisions, out.Time)
	seen, nodes := v.look(ctx, &pool)
	out.NodesAt = seen.at
	if seen.err != nil {
		e.NodesError = seen.err.Error()
	} else {
		e.AddNodes(nodes)
		e.AddPods(seen.cluster)
	}
	out.AllNodes = len(e.Nodes)
	if v.Prices != nil && seen.err == nil {
		out.Cost = explain.HourlyCost(e.Nodes, v.Prices)
	}
	view := explain.ViewOf(e)
	view.Nodes = view.Nodes[:min(maxNodes, len(view.Nodes))]
	out.Pool = &view
	return out
}

// look returns the last reading of the cluster, and the nodes of a pool, which are read only.
func (v *View) look(ctx context.Context, pool *v1alpha1.WorkerPool) (clusterReading, []explain.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if age := v.ageOfReading(); v.seen == nil || age < 0 || age > max(clusterAge, readingRest*v.seen.took) {
		began := v.Now()
		r := &clusterReading{nodes: map[string][]explain.Node{}}
		r.cluster, r.err = cluster.List(ctx, v.Cluster, began)
		r.at = v.Now()
		r.took = r.at.Sub(began)
		if errors.Is(ctx.Err(), context.Canceled) { // the page shows something else by now
			return *r, nil
		}
		v.seen = r
	}
	r := v.seen
	nodes, known := r.nodes[pool.Name]
	if !known && r.err == nil {
		began := v.Now()
		nodes = explain.NodesOf(r.cluster, pool)
		r.nodes[pool.Name] = nodes
		r.took += v.Now().Sub(began)
	}
	return *r, nodes
}

func (v *View) ageOfReading() time.Duration {
	if v.seen == nil {
		return 0
	}
	return v.Now().Sub(v.seen.at)
}

// problem describes why WorkerPools are not shown.
func problem(err error) string {
	switch {
	case meta.IsNoMatchError(err):
		return "The cluster has no WorkerPools: install them with kubectl apply -k manifests/crds."
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return "You may not read WorkerPools, which requires the rights get and list of workerpools.foresail.dev: " +
			err.Error()
	}
	return "WorkerPools cannot be read: " + err.Error()
}
