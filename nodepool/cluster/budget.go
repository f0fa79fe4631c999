package cluster

import (
	"cmp"
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/foresail/foresail/internal/objectcache"
)

// budget is the part of a PodDisruptionBudget that decisions need.
type budget struct {
	namespace, name string
	selector        labels.Selector
	allowed         int  // disruptions now
	exhausted       bool // it certainly allows no disruption now
	unreadyMayGo    bool // even then pods that are not ready may be evicted
}

// budgetOf reads a PodDisruptionBudget. One whose status belongs to an older generation does not
// count as exhausted: evictions are refused only for the moment.
func budgetOf(b *policyv1.PodDisruptionBudget) *budget {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil { // the API server admits no such selector; the eviction API would refuse every pod of the namespace
		selector = labels.Everything()
	}
	policy := b.Spec.UnhealthyPodEvictionPolicy
	return &budget{
		namespace: objectcache.Intern(b.Namespace), name: b.Name, selector: selector,
		allowed:   int(b.Status.DisruptionsAllowed),
		exhausted: b.Status.DisruptionsAllowed <= 0 && b.Status.ObservedGeneration >= b.Generation,
		unreadyMayGo: policy != nil && *policy == policyv1.AlwaysAllow ||
			b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy,
	}
}

// budgets indexes PodDisruptionBudgets, so that those covering a pod are found without comparing
// all.
type budgets struct {
	byLabel map[labelled][]*budget // by one label that covered pods must have
	others  map[string][]*budget   // by namespace: those without such a label
	known   map[*Kind][]*budget
}

type labelled struct{ namespace, key, value string }

func newBudgets(all []*budget) *budgets {
	b := &budgets{byLabel: map[labelled][]*budget{}, others: map[string][]*budget{}, known: map[*Kind][]*budget{}}
	for _, x := range all {
		if key, value, ok := requiredLabel(x.selector); ok {
			at := labelled{x.namespace, key, value}
			b.byLabel[at] = append(b.byLabel[at], x)
		} else {
			b.others[x.namespace] = append(b.others[x.namespace], x)
		}
	}
	return b
}

// requiredLabel returns a label without which a selector matches no pod.
func requiredLabel(s labels.Selector) (key, value string, ok bool) {
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.ValuesUnsorted(); len(values) == 1 {
				return r.Key(), values[0], true
			}
		}
	}
	return "", "", false
}

// covering returns the budgets that cover the pods of a kind, ordered by name.
func (b *budgets) covering(k *Kind) []*budget {
	if out, ok := b.known[k]; ok {
		return out
	}
	var out []*budget
	add := func(all []*budget) {
		for _, x := range all {
			if x.selector.Matches(labels.Set(k.Labels)) {
				out = append(out, x)
			}
		}
	}
	for key, value := range k.Labels {
		add(b.byLabel[labelled{k.Namespace, key, value}])
	}
	add(b.others[k.Namespace])
	slices.SortFunc(out, func(x, y *budget) int { return cmp.Compare(x.name, y.name) })
	b.known[k] = out
	return out
}

// allowance returns the disruptions that the budget of the pods of a kind allows, nil if they have
// no budget.
func (b *budgets) allowance(k *Kind) *Budget {
	covering := b.covering(k)
	if len(covering) == 0 {
		return nil
	}
	return &Budget{Name: covering[0].namespace + "/" + covering[0].name, Allowed: covering[0].allowed}
}

// blocks returns why PodDisruptionBudgets prevent the eviction of a pod, "" if they do not.
func (b *budgets) blocks(p *Pod) string {
	if p.unprotected {
		return ""
	}
	covering := b.covering(p.Kind)
	switch {
	case len(covering) > 1:
		return "is covered by more than one PodDisruptionBudget (" + covering[0].name + ", " + covering[1].name +
			"), which the eviction API refuses"
	case len(covering) == 1 && covering[0].exhausted && (p.ready || !covering[0].unreadyMayGo):
		return "is covered by the PodDisruptionBudget " + covering[0].name + ", which allows no disruption now"
	}
	return ""
}

// blocked returns the first reason not to drain a node.
func (b *budgets) blocked(n *Node, now time.Time) string {
	if why := ClassifyNode(n.Object, now); why != "" {
		return "the Node " + why
	}
	for _, p := range n.Pods {
		if p.class == Ignored || p.Leaving {
			continue
		}
		why := cmp.Or(p.why, p.keep.at(now))
		if why == "" {
			why = b.blocks(p)
		}
		if why != "" {
			return "the pod " + p.Namespace + "/" + p.Name + " " + why
		}
	}
	return ""
}
