package keep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/internal/objectcache"
)

const (
	// absentPeriod is the time between two discoveries of a kind that is not served, or cannot be listed.
	absentPeriod = 30 * time.Second
	// versionPeriod is the time between two discoveries of the version of a kind that is served.
	versionPeriod = 5 * time.Minute
)

// errNotServed is the error of a kind that the API server does not have.
var errNotServed = errors.New("not served")

// Discovery returns the resources of a group and version.
type Discovery interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// Found has the fields of an object that a Keeper reads.
type Found struct {
	Name    string
	Created time.Time
	Target  Target

	owner  types.UID // the PredictedMetric that it was created for
	origin string    // its owner in messages, such as " of ScaledObject x"

	// Of an object that was created for a PredictedMetric, as the kind returns them.
	Spec       any
	Conditions []metav1.Condition
}

type table = objectcache.Table[types.NamespacedName, client.Object, Found]

// watcher has all objects of a kind. It watches them from its first use on.
type watcher struct {
	kind       *Type
	client     client.WithWatch
	discovery  Discovery
	namespaces []string
	now        func() time.Time

	version string    // that is watched, "" for none
	asked   time.Time // of the last discovery
	end     context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex // of the tables
	tables  []*table   // one for each namespace
}

func newWatcher(kind *Type, o *Options) *watcher {
	return &watcher{kind: kind, client: o.Client, discovery: o.Discovery, namespaces: o.Scopes(), now: o.Now}
}

// stop ends all watches.
func (w *watcher) stop() {
	if w.end != nil {
		w.end()
	}
	w.running.Wait()
	w.end, w.tables, w.version = nil, nil, ""
}

// observe returns all objects, nil while they are being listed. It fails while they are out of reach, with errNotServed
// if there is no such kind.
func (w *watcher) observe(ctx context.Context) (map[types.NamespacedName]Found, error) {
	version, err := w.preferred(ctx)
	if err != nil {
		return nil, err
	}
	if version == "" {
		w.stop()
		return nil, errNotServed
	}
	if version != w.version {
		w.stop()
		w.watch(ctx, version)
		return nil, nil
	}
	if err := w.state(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	objects := map[types.NamespacedName]Found{}
	for _, t := range w.tables {
		maps.Copy(objects, t.Rows())
	}
	return objects, nil
}

// preferred returns the version to watch, "" if none is served.
func (w *watcher) preferred(ctx context.Context) (string, error) {
	if w.kind.builtIn() {
		return w.kind.Versions[0], nil
	}
	period := versionPeriod
	if w.version == "" || w.state() != nil {
		period = absentPeriod
	}
	if !w.asked.IsZero() && w.now().Sub(w.asked) < period {
		return w.version, nil
	}
	version, err := w.kind.served(ctx, w.discovery)
	if err != nil {
		return "", err
	}
	w.asked = w.now()
	return version, nil
}

// watch starts to watch a version.
func (w *watcher) watch(ctx context.Context, version string) {
	w.version = version
	ctx, w.end = context.WithCancel(ctx)
	for _, namespace := range w.namespaces {
		t := objectcache.New(objectcache.Options[types.NamespacedName, client.Object, Found]{
			What: w.kind.Resource.Resource, Lock: &w.mu, Now: w.now,
			Keep: w.kind.found, Key: objectcache.NameOf[client.Object],
		})
		w.tables = append(w.tables, t)
		empty := func() client.ObjectList { return w.kind.NewList(version) }
		all := lists{client: w.client, namespace: namespace, empty: empty}
		w.running.Go(func() { objectcache.Reflect(ctx, all, t, w.kind.New(version), all) })
	}
}

func (w *watcher) state() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tables {
		if err := t.State(w.now()); err != nil {
			return err
		}
	}
	return nil
}

// served returns the preferred version that is served, "" if none is. The group may have other kinds in other versions.
func (t *Type) served(ctx context.Context, d Discovery) (string, error) {
	for _, version := range t.Versions {
		groupVersion := t.Resource.Group + "/" + version
		list, err := d.ServerResourcesForGroupVersionWithContext(ctx, groupVersion)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("ask which resources %s has: %w", groupVersion, err)
		}
		for i := range list.APIResources {
			if list.APIResources[i].Name == t.Resource.Resource {
				return version, nil
			}
		}
	}
	return "", nil
}

// found implements Keep of objectcache.
func (t *Type) found(o client.Object) (Found, bool) {
	f := Found{Name: o.GetName(), Created: o.GetCreationTimestamp().Time, Target: t.Target(o), owner: OwnerOf(o)}
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		f.origin = fmt.Sprintf(" of %s %s", owner.Kind, owner.Name)
	}
	if f.owner != "" {
		f.Spec, f.Conditions = t.Spec(o), t.Conditions(o)
	}
	return f, true
}

// lists reads the objects of a kind, in a namespace or in all. It is both the source and the client of a reflector.
type lists struct {
	client    client.WithWatch
	namespace string // "" is all
	empty     func() client.ObjectList
}

// IsWatchListSemanticsUnSupported has client-go list by a list, not by a watch.
func (lists) IsWatchListSemanticsUnSupported() bool { return true }

func (l lists) options(o *metav1.ListOptions) *client.ListOptions {
	return &client.ListOptions{Namespace: l.namespace, Limit: o.Limit, Continue: o.Continue, Raw: o}
}

// List implements objectcache.Source.
func (l lists) List(ctx context.Context, o metav1.ListOptions) (client.ObjectList, error) {
	list := l.empty()
	return list, l.client.List(ctx, list, l.options(&o))
}

// Watch implements objectcache.Source.
func (l lists) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return l.client.Watch(ctx, l.empty(), l.options(&o))
}
