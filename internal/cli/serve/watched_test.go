package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// watchedAPI serves many nodes and pods to be listed and watched, as protobuf and on loopback. It
// makes each one again, so that it needs no memory for them.
type watchedAPI struct {
	*httptest.Server
	nodes, pods int
	protobuf    runtime.SerializerInfo
	sent        atomic.Int64 // bytes

	mu       sync.Mutex
	requests map[string]int // by method, list or watch, and resource
	watchers map[chan []byte]bool
	version  int
}

func serveWatched(t testing.TB, nodes, pods int) *watchedAPI {
	t.Helper()
	a := &watchedAPI{nodes: nodes, pods: pods, requests: map[string]int{}, watchers: map[chan []byte]bool{},
		version: nodes + pods}
	a.protobuf, _ = runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	a.Server = httptest.NewUnstartedServer(a)
	a.Listener = &countedListener{a.Listener, &a.sent}
	a.Start()
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// countedListener counts the bytes that its connections send.
type countedListener struct {
	net.Listener
	sent *atomic.Int64
}

func (l *countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &countedConn{c, l.sent}, err
}

type countedConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// clientOf returns a client that reads as newObjectClient's does.
func clientOf(host string) (kubernetes.Interface, error) {
	config := &rest.Config{Host: host, QPS: -1}
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	return kubernetes.NewForConfig(config)
}

func (a *watchedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, q := path.Base(r.URL.Path), r.URL.Query()
	what := "list " + kind
	if q.Get("watch") != "" {
		what = "watch " + kind
	}
	a.mu.Lock()
	a.requests[what]++
	a.mu.Unlock()
	if q.Get("watch") == "" {
		a.list(w, kind, q.Get("limit"), q.Get("continue"))
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
	a.watch(r.Context(), w, kind, q.Get("sendInitialEvents") == "true")
}

func (a *watchedAPI) requested(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests[what]
}

// list serves a page; what it continues with is how many have been.
func (a *watchedAPI) list(w http.ResponseWriter, kind, limit, from string) {
	begin, _ := strconv.Atoi(from)
	end, _ := strconv.Atoi(limit)
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(a.nodes + a.pods)}
	page := func(all int) []int {
		if end += begin; end < all {
			meta.Continue = strconv.Itoa(end)
		}
		var out []int
		for i := begin; i < min(end, all); i++ {
			out = append(out, i)
		}
		return out
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	switch kind {
	case "nodes":
		list := &corev1.NodeList{}
		for _, i := range page(a.nodes) {
			list.Items = append(list.Items, *watchedNode(i))
		}
		list.ListMeta = meta
		_ = a.encode(list, w)
	case "pods":
		list := &corev1.PodList{}
		for _, i := range page(a.pods) {
			list.Items = append(list.Items, *watchedPod(i, a.nodes))
		}
		list.ListMeta = meta
		_ = a.encode(list, w)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (a *watchedAPI) watch(ctx context.Context, w http.ResponseWriter, kind string, initial bool) {
	events := make(chan []byte, 1000)
	if kind == "pods" {
		a.mu.Lock()
		a.watchers[events] = true
		a.mu.Unlock()
		defer func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.watchers, events)
		}()
	}
	if initial {
		a.writeInitial(ctx, w, kind)
	}
	for {
		w.(http.Flusher).Flush()
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			_, _ = w.Write(e)
		}
	}
}

func (a *watchedAPI) writeInitial(ctx context.Context, w io.Writer, kind string) {
	switch kind {
	case "nodes":
		for i := range a.nodes {
			_, _ = w.Write(a.event(watch.Added, watchedNode(i)))
		}
	case "pods":
		for i := 0; i < a.pods && ctx.Err() == nil; i++ {
			_, _ = w.Write(a.event(watch.Added, watchedPod(i, a.nodes)))
		}
	}
	end := map[string]runtime.Object{
		"nodes": &corev1.Node{}, "pods": &corev1.Pod{}, "daemonsets": &appsv1.DaemonSet{},
		"poddisruptionbudgets":   &policyv1.PodDisruptionBudget{},
		"persistentvolumeclaims": &corev1.PersistentVolumeClaim{}, "persistentvolumes": &corev1.PersistentVolume{},
		"storageclasses": &storagev1.StorageClass{}, "csinodes": &storagev1.CSINode{},
	}[kind]
	end.(metav1.Object).SetResourceVersion(strconv.Itoa(a.nodes + a.pods))
	end.(metav1.Object).SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	_, _ = w.Write(a.event(watch.Bookmark, end))
}

// change sends another version of a pod to all who watch.
func (a *watchedAPI) change(i int) {
	p := watchedPod(i, a.nodes)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	p.ResourceVersion, p.Status.Conditions[1].LastTransitionTime = strconv.Itoa(a.version), metav1.Now()
	e := a.event(watch.Modified, p)
	for w := range a.watchers {
		w <- e
	}
}

func (a *watchedAPI) event(kind watch.EventType, o runtime.Object) []byte {
	var object, out strings.Builder
	if err := a.encode(o, &object); err != nil {
		panic(err)
	}
	e := &metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: []byte(object.String())}}
	if err := a.protobuf.StreamSerializer.Encode(e, a.protobuf.StreamSerializer.NewFrameWriter(&out)); err != nil {
		panic(err)
	}
	return []byte(out.String())
}

func (a *watchedAPI) encode(o runtime.Object, w io.Writer) error {
	return scheme.Codecs.EncoderForVersion(a.protobuf.Serializer,
		schema.GroupVersions(scheme.Scheme.PrioritizedVersionsAllGroups())).Encode(o, w)
}

func watchedNode(i int) *corev1.Node {
	name := fmt.Sprintf("n-%05d", i)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(i + 1),
		CreationTimestamp: metav1.NewTime(time.Unix(1.8e9, 0)),
		Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: string(rune('a' + i%3)),
			corev1.LabelInstanceTypeStable: "m5.xlarge"},
	}}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP,
		Address: fmt.Sprintf("10.%d.%d.1", i/250, i%250)}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(time.Unix(1.8e9+60, 0))}}
	for j := range 50 {
		n.Status.Images = append(n.Status.Images,
			corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/team/app-%d@sha256:%064d", j, j)},
				SizeBytes: 1e8})
	}
	return n
}

// watchedPod is one of the application i%300, with what nobody here needs.
func watchedPod(i, nodes int) *corev1.Pod {
	app, team, at := fmt.Sprintf("app-%d", i%300), fmt.Sprintf("team-%d", i%300%40), metav1.NewTime(time.Unix(1.8e9, 0))
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-6d4cf56db6-%05d", app, i), Namespace: team,
		UID:             types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)),
		ResourceVersion: strconv.Itoa(nodes + i + 1), CreationTimestamp: at,
		Labels: map[string]string{"app.kubernetes.io/name": app, "app.kubernetes.io/instance": app,
			"pod-template-hash": "6d4cf56db6", "team": team},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-6d4cf56db6",
			UID: types.UID("owner-of-" + app), Controller: new(true)}},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet",
			Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsV1:  metav1.NewFieldsV1(`{"f:status":{"f:x":"` + strings.Repeat("x", 2000) + `"}}`)}},
	}}
	c := corev1.Container{Name: "main", Image: "registry.example.com/team/" + app,
		Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9090, Protocol: corev1.ProtocolTCP}}}
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"),
		corev1.ResourceMemory: resource.MustParse("128Mi")}
	for j := range 20 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("NAME_%d", j), Value: fmt.Sprintf("value-%d-%d", i, j)})
	}
	p.Spec = corev1.PodSpec{NodeName: fmt.Sprintf("n-%05d", i%nodes), Containers: []corev1.Container{c},
		NodeSelector: map[string]string{"pool": "default"}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255),
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at},
		}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}}
	return p
}
