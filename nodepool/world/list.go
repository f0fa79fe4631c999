package world

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
)

// List reads a cluster as it is now. It is exact and costs the API server a list of everything: for tests, checks and
// commands. Nodes are read before pods, so that no pod is bound to a node that was read without it.
func List(ctx context.Context, client kubernetes.Interface, now time.Time) (*Cluster, error) {
	var p parts
	var pods []*record
	for _, one := range []struct {
		what string
		list pager.ListPageFunc
		keep func(runtime.Object)
	}{
		{"nodes", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Nodes().List(ctx, o)
		},
			func(o runtime.Object) { p.nodes = append(p.nodes, trimmedNode(o.(*corev1.Node))) }},
		{"daemonsets", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.AppsV1().DaemonSets("").List(ctx, o)
		}, func(o runtime.Object) { p.daemonSets = append(p.daemonSets, trimmedDaemonSet(o.(*appsv1.DaemonSet))) }},
		{"poddisruptionbudgets", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.PolicyV1().PodDisruptionBudgets("").List(ctx, o)
		}, func(o runtime.Object) { p.budgets = append(p.budgets, budgetOf(o.(*policyv1.PodDisruptionBudget))) }},
		{"pods", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Pods("").List(ctx, o)
		},
			func(o runtime.Object) {
				if r := recordOf(o.(*corev1.Pod)); r != nil {
					pods = append(pods, r)
				}
			}},
	} {
		err := pager.New(one.list).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
			one.keep(o)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", one.what, err)
		}
	}
	p.load, p.waiting = sorted(pods)
	return build(now, p), nil
}
