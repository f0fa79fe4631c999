package inspect

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/scheduler/extender/podview"
	"github.com/foresail/foresail/internal/cli"
)

// podPage is what the page shows of pods: those without a node, and what explain pod prints of each.
type podPage struct {
	unbound   *podview.Unbound
	explainer *podExplainer
	failure   error // why there is no cluster to ask
}

// newPodPage reads with the rights of the user, and asks the replicas that explain pod would ask.
func newPodPage(k *cli.Connection, access *replicaAccess, now func() time.Time) *podPage {
	config, client, err := k.Clientset()
	replicas := *access
	replicas.account = explainAccount
	p := &podPage{
		unbound:   &podview.Unbound{Cluster: client, Failure: err, Now: now},
		explainer: &podExplainer{replicaAccess: &replicas, config: config, client: client, now: now},
	}
	if !access.anonymous() {
		p.failure = err
	}
	return p
}

// extenderRuns returns whether a pod runs the extender. A single --server does not tell.
func (p *podPage) extenderRuns(ctx context.Context) bool {
	if p.failure != nil || p.explainer.server != "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_, err := p.explainer.replicas(ctx)
	return err == nil
}

// list answers with the pods that are not bound to a node.
func (p *podPage) list(ctx context.Context) any { return p.unbound.List(ctx) }

// explain answers about one pod.
func (p *podPage) explain(ctx context.Context, pod types.NamespacedName) any {
	if p.failure != nil {
		e, _ := podview.New(pod, p.explainer.now())
		return podview.ViewOf(e, p.failure)
	}
	return podview.ViewOf(p.explainer.explain(ctx, pod))
}
