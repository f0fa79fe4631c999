package nodepool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// latency is the duration of each request in these tests.
const latency = 20 * time.Millisecond

// fakeAPI is an API server for the nodes and pods of a world.
type fakeAPI struct {
	world *fakeWorld
	mu    sync.Mutex
	lists int                  // requests for the pods of a node
	asked map[string]time.Time // pods, by when they were asked to leave
}

// drainer is a real one that talks to the API at the rate that processes are limited to.
func (a *fakeAPI) drainer(t *testing.T, now func() time.Time) *drain.Drainer {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", Transport: a, QPS: 200, Burst: 300})
	require.NoError(t, err)
	return &drain.Drainer{Client: client, Now: now, Leaving: a.leaving}
}

// leaving holds the pods that a watch shows.
func (a *fakeAPI) leaving(node string) (pods []types.NamespacedName, all bool) {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	a.world.settle()
	for _, p := range a.world.nodes[node].pods {
		if p.leaves.IsZero() {
			return nil, false
		}
		pods = append(pods, types.NamespacedName{Namespace: "shop", Name: p.name})
	}
	return pods, len(pods) > 0
}

// RoundTrip implements http.RoundTripper.
func (a *fakeAPI) RoundTrip(request *http.Request) (*http.Response, error) {
	time.Sleep(latency)
	var body []byte
	if request.Body != nil {
		body, _ = io.ReadAll(request.Body)
	}
	answer := a.answer(request, strings.Split(strings.Trim(request.URL.Path, "/"), "/"), body)
	data, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)),
	}, nil
}

func (a *fakeAPI) answer(request *http.Request, path []string, body []byte) any {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	a.world.settle()
	switch name := path[len(path)-1]; {
	case name == "eviction":
		a.evict(path[len(path)-2])
		return metav1.Status{Status: metav1.StatusSuccess}
	case name == "pods":
		return a.pods(strings.TrimPrefix(request.URL.Query().Get("fieldSelector"), "spec.nodeName="))
	case name == "volumeattachments":
		return storagev1.VolumeAttachmentList{}
	case request.Method == http.MethodDelete:
		delete(a.world.nodes, name)
		return metav1.Status{Status: metav1.StatusSuccess}
	default:
		return a.node(name, body)
	}
}

// node returns a Node, after a patch if there is one.
func (a *fakeAPI) node(name string, patch []byte) corev1.Node {
	n := a.world.nodes[name]
	if bytes.Contains(patch, []byte(drain.Mark)) {
		n.mark = "removal"
	}
	n.cordon = n.cordon || bytes.Contains(patch, []byte(`"unschedulable":true`))
	out := *n.object.DeepCopy()
	if n.mark != "" {
		out.Spec.Taints = []corev1.Taint{{Key: drain.Mark, Value: n.mark, Effect: corev1.TaintEffectNoSchedule}}
	}
	out.Spec.Unschedulable = n.cordon
	return out
}

func (a *fakeAPI) pods(node string) (list corev1.PodList) {
	a.mu.Lock()
	a.lists++
	a.mu.Unlock()
	for _, p := range a.world.nodes[node].pods {
		pod := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: p.name, UID: types.UID(p.name),
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet",
					Name: "cart", Controller: new(true)}},
			},
			Spec:   corev1.PodSpec{NodeName: node},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		if !p.leaves.IsZero() {
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: p.leaves}, new(int64(30))
		}
		list.Items = append(list.Items, pod)
	}
	return list
}

func (a *fakeAPI) evict(pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[pod] = a.world.clock.now()
	for _, p := range a.world.nodes[pod[:strings.LastIndex(pod, "-pod")]].pods {
		if p.name == pod {
			p.leaves = a.world.clock.now().Add(a.world.podGrace)
		}
	}
}

// slowly adds the latency to all requests of the pool.
func (r *rig) slowly(api *fakeAPI) {
	r.change(func(o *Options) {
		o.Store, o.Provider, o.Notices = lateStore{r.store}, lateCloud{r.world}, lateNotices{r.notices}
		o.Drainer = api.drainer(r.T, r.clock.now)
	})
}

type lateStore struct{ state.Store }

func (s lateStore) Load(ctx context.Context, pool string) (state.Record, error) {
	time.Sleep(latency)
	return s.Store.Load(ctx, pool)
}

func (s lateStore) Save(ctx context.Context, pool string, r state.Record) (state.Record, error) {
	time.Sleep(latency)
	return s.Store.Save(ctx, pool, r)
}

type lateCloud struct{ *fakeWorld }

func (c lateCloud) Launch(ctx context.Context, l provider.Launch) (provider.Launched, error) {
	time.Sleep(latency)
	return c.fakeWorld.Launch(ctx, l)
}

func (c lateCloud) List(ctx context.Context) ([]fleet.Instance, error) {
	time.Sleep(latency)
	return c.fakeWorld.List(ctx)
}

func (c lateCloud) Terminate(ctx context.Context, id string) error {
	time.Sleep(latency)
	return c.fakeWorld.Terminate(ctx, id)
}

// lateNotices gives ten messages at once, as SQS does.
type lateNotices struct{ *fakeNotices }

func (q lateNotices) Receive(ctx context.Context) ([]provider.Message, error) {
	time.Sleep(latency)
	q.mu.Lock()
	n := min(10, len(q.messages))
	out := q.messages[:n]
	q.messages = q.messages[n:]
	q.mu.Unlock()
	if n > 0 {
		return out, nil
	}
	return q.fakeNotices.Receive(ctx)
}

func (q lateNotices) Done(ctx context.Context, m provider.Message) error {
	time.Sleep(latency)
	return q.fakeNotices.Done(ctx, m)
}

// Half of 400 Spot nodes with 30 pods each are reclaimed at the same moment. Every pod is evicted while there is
// time for most of them to end, and replacements are launched meanwhile.
func TestHalfOfThePoolIsTakenBack(t *testing.T) {
	const nodes, taken, pods = 400, 200, 30
	var api *fakeAPI
	inBubble(t, func(r *rig) {
		r.world.add(nodes)
		r.spec.Plan.Min, r.spec.Plan.Max, r.spec.Plan.MaxBatchUp, r.spec.Plan.SpotRatio = nodes, 2*nodes, 0, 1
		for id, i := range r.world.instances {
			i.Market = fleet.Spot
			for k := range pods {
				name := "node-" + id
				r.load(name, &fakePod{name: fmt.Sprintf("%s-pod%d", name, k)})
			}
		}
		r.world.podGrace = 20 * time.Second
		api = &fakeAPI{world: r.world, asked: map[string]time.Time{}}
		r.slowly(api)
	}, func(r *rig) {
		r.sleepFor(20 * time.Second)
		began := r.clock.now()
		deadline := began.Add(2 * time.Minute)
		r.notices.mu.Lock()
		for k := range taken {
			r.notices.messages = append(r.notices.messages, provider.Message{
				InstanceID: fmt.Sprintf("i-old%d", k), Kind: provider.MessageInterruption, Deadline: deadline,
			})
		}
		r.notices.mu.Unlock()
		r.sleepFor(15 * time.Second)
		require.Equal(t, taken, r.world.launches, "replacements do not wait for drains")
		r.sleepFor(104 * time.Second)
		last := time.Duration(0)
		for _, at := range api.asked {
			last = max(last, at.Sub(began))
		}
		t.Logf("%d of %d pods were asked to leave, the last one after %s; %d launches; %d lists of pods", len(api.asked),
			taken*pods, last, r.world.launches, api.lists)
		require.Equal(t, taken*pods, len(api.asked))
		require.Less(t, last, 90*time.Second)
		require.Equal(t, taken, r.world.launches)
	})
}

// While pods end, they are not read from the API server again and again, but their end is.
func TestDrainDoesNotListWhatItWatches(t *testing.T) {
	var api *fakeAPI
	inBubble(t, func(r *rig) {
		r.world.add(1)
		r.world.podGrace = 80 * time.Second
		r.load("node-i-old0", &fakePod{name: "node-i-old0-pod0"}, &fakePod{name: "node-i-old0-pod1"})
		api = &fakeAPI{world: r.world, asked: map[string]time.Time{}}
		r.slowly(api)
	}, func(r *rig) {
		r.sleepFor(time.Minute)
		r.take("i-old0")
		r.sleepFor(70 * time.Second)
		require.Len(t, api.asked, 2)
		require.LessOrEqual(t, api.lists, 3)
	})
}

// busyCloud takes as long for a launch as EC2 does, and takes as many calls as half of EC2's rate allows.
type busyCloud struct {
	*fakeWorld
	limit *rate.Limiter
}

func (c busyCloud) Launch(ctx context.Context, l provider.Launch) (provider.Launched, error) {
	if err := c.limit.Wait(ctx); err != nil {
		return provider.Launched{}, &provider.Error{Class: provider.Throttled, Op: "Launch", Err: err}
	}
	time.Sleep(2 * time.Second)
	return c.fakeWorld.Launch(ctx, l)
}

// 500 instances are requested in a minute, at the rate of calls that EC2 documents.
func TestFiveHundredInAMinute(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.spec.Plan.Max, r.spec.Plan.MaxBatchUp = 1000, 0
		r.change(func(o *Options) { o.Provider = busyCloud{r.world, rate.NewLimiter(1, 2)} })
	}, func(r *rig) {
		r.sleepFor(time.Second)
		r.setSpec(func(s *config.Spec) { s.Plan.Min = 500 })
		r.sleepFor(time.Minute)
		require.Equal(t, 500, r.world.launches)
		require.LessOrEqual(t, r.world.calls, 20)
		r.sleepFor(2 * time.Minute)
		require.Equal(t, 500, r.count(journal.EventJoined))
	})
}
