package serve

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/predictedmetric"
	"github.com/foresail/foresail/internal/objectcache"
)

// feeds are the watches that the parts of a process share. What no part subscribes to is not watched.
type feeds struct {
	client     kubernetes.Interface
	nodes      *objectcache.Feed
	pods       *objectcache.Feed // of all namespaces
	namespaced []*objectcache.Feed
	targets    *predictedmetric.Watches // of the cache of the manager
}

// startFeeds makes the feeds of a manager.
func startFeeds(mgr ctrl.Manager) (*feeds, error) {
	client, err := newObjectClient(mgr)
	if err != nil {
		return nil, err
	}
	return newFeeds(client), nil
}

func newFeeds(client kubernetes.Interface) *feeds {
	return &feeds{client: client, nodes: objectcache.Nodes(client), pods: objectcache.Pods(client, metav1.NamespaceAll)}
}

// podsOf returns the feeds of the pods of namespaces, of all without any. Namespaces have watches
// of their own, for which less has to be granted.
func (f *feeds) podsOf(namespaces []string) map[string]podtracker.Feed {
	if len(namespaces) == 0 {
		return map[string]podtracker.Feed{metav1.NamespaceAll: f.pods}
	}
	out := map[string]podtracker.Feed{}
	for _, namespace := range namespaces {
		if out[namespace] == nil {
			pods := objectcache.Pods(f.client, namespace)
			f.namespaced = append(f.namespaced, pods)
			out[namespace] = pods
		}
	}
	return out
}

// run watches until the context ends. All parts are wired by then, so that they share the first list.
func (f *feeds) run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for _, feed := range append([]*objectcache.Feed{f.nodes, f.pods}, f.namespaced...) {
		running.Go(func() { feed.Run(ctx) })
	}
	return nil
}

// newObjectClient returns a client that reads pods and nodes as protobuf: there may be many.
func newObjectClient(mgr ctrl.Manager) (kubernetes.Interface, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for pods and nodes: %w", err)
	}
	return client, nil
}
