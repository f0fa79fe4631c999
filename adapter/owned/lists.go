package owned

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lists reads the objects of a kind, in a namespace or in all, for a reflector of package objectcache. It is both its source and its
// client, which has it list by a list, not by a watch.
type Lists[L client.ObjectList] struct {
	Client    client.WithWatch
	Namespace string // "" is all
	Empty     func() L
}

// IsWatchListSemanticsUnSupported is what client-go asks.
func (Lists[L]) IsWatchListSemanticsUnSupported() bool { return true }

func (l Lists[L]) options(o *metav1.ListOptions) *client.ListOptions {
	return &client.ListOptions{Namespace: l.Namespace, Limit: o.Limit, Continue: o.Continue, Raw: o}
}

// List implements objectcache.Source.
func (l Lists[L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	list := l.Empty()
	return list, l.Client.List(ctx, list, l.options(&o))
}

// Watch implements objectcache.Source.
func (l Lists[L]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return l.Client.Watch(ctx, l.Empty(), l.options(&o))
}
