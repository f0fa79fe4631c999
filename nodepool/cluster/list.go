package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/foresail/foresail/internal/objectcache"
)

// List reads a cluster as it is now. It is exact, but makes the API server list everything: for
// tests, checks and commands. Nodes are read before pods, so that no pod is bound to a node that
// was read without it; claims and volumes after pods, so that those which pods and claims refer to
// exist.
func List(ctx context.Context, client kubernetes.Interface, now time.Time) (*Cluster, error) {
	p := parts{limits: map[string]map[string]int{}}
	var pods []*record
	shared := kinds{}
	s := newStorage()
	core := client.CoreV1()
	for _, read := range []func() error{
		func() error {
			return each(ctx, "nodes", core.Nodes(), func(n *corev1.Node) { p.nodes = append(p.nodes, trimmedNode(n)) })
		},
		func() error {
			return each(ctx, "daemonsets", client.AppsV1().DaemonSets(""), func(d *appsv1.DaemonSet) {
				p.daemonSets = append(p.daemonSets, trimmedDaemonSet(d))
			})
		},
		func() error {
			return each(ctx, "poddisruptionbudgets", client.PolicyV1().PodDisruptionBudgets(""),
				func(b *policyv1.PodDisruptionBudget) {
					p.budgets = append(p.budgets, budgetOf(b))
				})
		},
		func() error {
			return each(ctx, "pods", core.Pods(""), func(pod *corev1.Pod) {
				if r := recordOf(pod); r != nil {
					shared.share(r)
					pods = append(pods, r)
				}
			})
		},
		func() error {
			return each(ctx, "persistentvolumeclaims", core.PersistentVolumeClaims(""), func(c *corev1.PersistentVolumeClaim) {
				s.claims[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] = claimOf(c)
			})
		},
		func() error {
			return each(ctx, "persistentvolumes", core.PersistentVolumes(), func(v *corev1.PersistentVolume) {
				s.volumes[types.NamespacedName{Name: v.Name}] = volumeOf(v)
			})
		},
		func() error {
			return each(ctx, "storageclasses", client.StorageV1().StorageClasses(), func(c *storagev1.StorageClass) {
				s.classes[types.NamespacedName{Name: c.Name}] = classOf(c)
			})
		},
		func() error {
			return each(ctx, "csinodes", client.StorageV1().CSINodes(), func(n *storagev1.CSINode) {
				p.limits[n.Name] = limitsOf(n)
			})
		},
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	load, unschedulable := splitPods(pods)
	p.load, p.waiting = load, s.demands(unschedulable)
	p.volumes, p.attached = s.volumeRulesOfBound(slices.Values(pods))
	return build(now, p), nil
}

// each calls a function with every object of a kind.
func each[O, L runtime.Object](ctx context.Context, what string, of objectcache.Source[L], keep func(O)) error {
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return of.List(ctx, o) }
	err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		object, ok := o.(O)
		if !ok {
			return fmt.Errorf("got a %T", o)
		}
		keep(object)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", what, err)
	}
	return nil
}
