package objectcache

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Source reads the objects of one kind.
type Source[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// Reflect fills a table until the context ends, from a watch of its own. like is an object of the
// kind. The client, which may be nil, says whether it can list by watching.
func Reflect[K comparable, O interface {
	metav1.Object
	runtime.Object
}, T any, L runtime.Object](ctx context.Context, client any, t *Table[K, O, T], like O, of Source[L]) {
	f := NewFeed(client, t.What, t.Now, like, of)
	defer f.Subscribe(t)()
	f.Run(ctx)
}
