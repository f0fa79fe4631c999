package podtracker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/pipeline"
)

var (
	metric = types.NamespacedName{Namespace: "shop", Name: "checkout-elu"}
	epoch  = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
)

// at is the time s seconds into a test.
func at(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }

type change func(*corev1.Pod)

// podWith returns a running pod "a" created at 0 that is not ready yet, changed.
func podWith(changes ...change) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "a", UID: "uid-a", Labels: map[string]string{"app": "checkout"},
			CreationTimestamp: metav1.NewTime(at(0)),
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main",
			Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9090}}}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}},
		},
	}
	for _, c := range changes {
		c(p)
	}
	return p
}

func condition(status corev1.ConditionStatus, s float64) change {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(0))},
			{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(at(s))},
		}
	}
}

func readyAt(s float64) change   { return condition(corev1.ConditionTrue, s) }
func unreadyAt(s float64) change { return condition(corev1.ConditionFalse, s) }

func named(name string) change {
	return func(p *corev1.Pod) { p.Name, p.UID = name, types.UID("uid-"+name) }
}

func uid(uid types.UID) change           { return func(p *corev1.Pod) { p.UID = uid } }
func phase(phase corev1.PodPhase) change { return func(p *corev1.Pod) { p.Status.Phase = phase } }
func ip(ip string) change                { return func(p *corev1.Pod) { p.Status.PodIP = ip } }
func created(s float64) change {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(at(s)) }
}
func app(name string) change {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": name} }
}
func labelled(pairs ...string) change {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{}
		for pair := range slices.Chunk(pairs, 2) {
			p.Labels[pair[0]] = pair[1]
		}
	}
}
func restarts(n int32) change {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = n }
}

// terminating marks deletion as asked for at s, with a grace period.
func terminating(s float64, grace int64) change {
	return func(p *corev1.Pod) {
		t := metav1.NewTime(at(s + float64(grace)))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &t, &grace
	}
}

// recorder writes down how the instances of a target have changed at each call of its watch.
type recorder struct {
	pods *TargetPods

	mu     sync.Mutex
	events []string
	active []string
}

// recorded returns a recorder of the changes of a target from now on.
func recorded(pods *TargetPods) *recorder {
	r := &recorder{pods: pods, events: []string{}, active: activeIDs(pods)}
	r.pods.Watch(r.changed)
	return r
}

func activeIDs(pods *TargetPods) []string {
	ids := []string{}
	for _, i := range pods.Active() {
		ids = append(ids, i.ID)
	}
	return ids
}

func (r *recorder) changed() {
	active := activeIDs(r.pods)
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.events)
	for _, id := range r.active {
		if !slices.Contains(active, id) {
			r.events = append(r.events, "ended "+id)
		}
	}
	for _, id := range active {
		if !slices.Contains(r.active, id) {
			r.events = append(r.events, "started "+id)
		}
	}
	if len(r.events) == before {
		r.events = append(r.events, "changed")
	}
	r.active = active
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func selector(t testing.TB, s string) labels.Selector {
	t.Helper()
	out, err := labels.Parse(s)
	require.NoError(t, err)
	return out
}

// span is the part of an instance that lifecycle tests look at; end 0 = active.
type span struct {
	id         string
	start, end float64
}

func spans(all []Instance) []span {
	out := []span{}
	for _, i := range all {
		s := span{id: i.ID, start: i.Start.Sub(epoch).Seconds()}
		if !i.End.IsZero() {
			s.end = i.End.Sub(epoch).Seconds()
		}
		out = append(out, s)
	}
	return out
}

func TestLifecycle(t *testing.T) {
	type step struct {
		at      float64
		pod     *corev1.Pod
		deleted bool
	}
	tests := map[string]struct {
		steps  []step
		want   []span
		ready  int
		events []string
	}{
		"ready": {
			steps:  []step{{1, podWith(), false}, {20.4, podWith(readyAt(20)), false}},
			want:   []span{{"uid-a", 20, 0}},
			ready:  1,
			events: []string{"started uid-a"},
		},
		"said again": {
			steps:  []step{{20.4, podWith(readyAt(20)), false}, {30, podWith(readyAt(20)), false}},
			want:   []span{{"uid-a", 20, 0}},
			ready:  1,
			events: []string{"started uid-a"},
		},
		"ready, unready, ready": {
			steps: []step{
				{20, podWith(readyAt(20)), false}, {33, podWith(unreadyAt(32)), false},
				{41, podWith(readyAt(40)), false},
				{51, podWith(unreadyAt(50)), false}, {60, podWith(readyAt(60)), false},
			},
			want:   []span{{"uid-a", 20, 32}, {"uid-a/2", 40, 50}, {"uid-a/3", 60, 0}},
			ready:  1,
			events: []string{"started uid-a", "ended uid-a", "started uid-a/2", "ended uid-a/2", "started uid-a/3"},
		},
		"unready in between, unseen": {
			steps:  []step{{20, podWith(readyAt(20)), false}, {45, podWith(readyAt(40)), false}},
			want:   []span{{"uid-a", 20, 40}, {"uid-a/2", 40, 0}},
			ready:  1,
			events: []string{"started uid-a", "ended uid-a", "started uid-a/2"},
		},
		"unknown is not ready": {
			steps: []step{{20, podWith(readyAt(20)), false},
				{60, podWith(condition(corev1.ConditionUnknown, 55)), false}},
			want:   []span{{"uid-a", 20, 55}},
			events: []string{"started uid-a", "ended uid-a"},
		},
		"condition gone": {
			steps:  []step{{20, podWith(readyAt(20)), false}, {60, podWith(), false}},
			want:   []span{{"uid-a", 20, 60}},
			events: []string{"started uid-a", "ended uid-a"},
		},
		"terminating ends it when deletion was requested, while the HPA still counts it": {
			steps:  []step{{20, podWith(readyAt(20)), false}, {51, podWith(readyAt(20), terminating(50, 30)), false}},
			want:   []span{{"uid-a", 20, 50}},
			ready:  1,
			events: []string{"started uid-a", "ended uid-a"},
		},
		"terminating, unready, deleted": {
			steps: []step{
				{20, podWith(readyAt(20)), false}, {51, podWith(readyAt(20), terminating(50, 30)), false},
				{56, podWith(unreadyAt(55), terminating(50, 30)), false},
				{57, podWith(unreadyAt(55), terminating(50, 30)), true},
			},
			want:   []span{{"uid-a", 20, 50}},
			events: []string{"started uid-a", "ended uid-a", "changed"},
		},
		"terminating and unready seen at once": {
			steps:  []step{{20, podWith(readyAt(20)), false}, {57, podWith(unreadyAt(55), terminating(50, 30)), false}},
			want:   []span{{"uid-a", 20, 50}},
			events: []string{"started uid-a", "ended uid-a"},
		},
		"terminating before it was ready": {
			steps: []step{{5, podWith(terminating(4, 30)), false},
				{20, podWith(readyAt(20), terminating(4, 30)), false}},
			want: []span{}, ready: 1,
			events: []string{"changed"},
		},
		"terminating when it was first seen, but Ready until then": {
			steps: []step{{57, podWith(readyAt(20), terminating(50, 30)), false},
				{58, podWith(unreadyAt(58), terminating(50, 30)), false}},
			want:   []span{{"uid-a", 20, 50}},
			events: []string{"changed", "changed"},
		},
		"deleted without a word": {
			steps:  []step{{20, podWith(readyAt(20)), false}, {70.5, podWith(readyAt(20)), true}},
			want:   []span{{"uid-a", 20, 70.5}},
			events: []string{"started uid-a", "ended uid-a"},
		},
		"deleted while terminating, the deletion alone seen": {
			steps:  []step{{20, podWith(readyAt(20)), false}, {90, podWith(unreadyAt(52), terminating(50, 30)), true}},
			want:   []span{{"uid-a", 20, 50}},
			events: []string{"started uid-a", "ended uid-a"},
		},
		"succeeded": {
			steps: []step{{20, podWith(readyAt(20)), false},
				{61, podWith(unreadyAt(60), phase(corev1.PodSucceeded)), false}},
			want:   []span{{"uid-a", 20, 60}},
			events: []string{"started uid-a", "ended uid-a"},
		},
		"failed, the condition left as it was": {
			steps: []step{{20, podWith(readyAt(20)), false},
				{61.5, podWith(readyAt(20), phase(corev1.PodFailed)), false}},
			want:   []span{{"uid-a", 20, 61.5}},
			events: []string{"started uid-a", "ended uid-a"},
		},
		"pending is not ready whatever its condition": {
			steps:  []step{{20, podWith(readyAt(20), phase(corev1.PodPending)), false}},
			want:   []span{},
			events: []string{},
		},
		"labels change out of the selector": {
			steps:  []step{{20, podWith(readyAt(20)), false}, {70, podWith(readyAt(20), app("other")), false}},
			want:   []span{{"uid-a", 20, 70}},
			events: []string{"started uid-a", "ended uid-a"},
		},
		"labels change out and back": {
			steps: []step{
				{20, podWith(readyAt(20)), false}, {70, podWith(readyAt(20), app("other")), false},
				{80, podWith(readyAt(20)), false},
			},
			want:   []span{{"uid-a", 20, 70}, {"uid-a/2", 70, 0}},
			ready:  1,
			events: []string{"started uid-a", "ended uid-a", "started uid-a/2"},
		},
		"labels change into the selector": {
			steps:  []step{{20, podWith(readyAt(20), app("other")), false}, {70, podWith(readyAt(20)), false}},
			want:   []span{{"uid-a", 20, 0}},
			ready:  1,
			events: []string{"started uid-a"},
		},
		"another pod of the same name": {
			steps:  []step{{20, podWith(readyAt(20)), false}, {90, podWith(uid("uid-b"), readyAt(88)), false}},
			want:   []span{{"uid-a", 20, 90}, {"uid-b", 88, 0}},
			ready:  1,
			events: []string{"started uid-a", "ended uid-a", "started uid-b"},
		},
		"the deletion of the pod before it comes late": {
			steps: []step{
				{20, podWith(readyAt(20)), false}, {90, podWith(uid("uid-b"), readyAt(88)), false},
				{91, podWith(readyAt(20)), true},
			},
			want:   []span{{"uid-a", 20, 90}, {"uid-b", 88, 0}},
			ready:  1,
			events: []string{"started uid-a", "ended uid-a", "started uid-b"},
		},
		"deleted and back under the same UID": {
			steps: []step{
				{20, podWith(readyAt(20)), false}, {30, podWith(readyAt(20)), true}, {40, podWith(readyAt(20)), false},
			},
			want:   []span{{"uid-a", 20, 30}, {"uid-a/2", 30, 0}},
			ready:  1,
			events: []string{"started uid-a", "ended uid-a", "started uid-a/2"},
		},
		"a kubelet clock that is ahead": {
			steps:  []step{{20, podWith(readyAt(25)), false}, {30, podWith(unreadyAt(36)), false}},
			want:   []span{{"uid-a", 20, 30}},
			events: []string{"started uid-a", "ended uid-a"},
		},
		"a kubelet clock that went back": {
			steps:  []step{{20, podWith(readyAt(20)), false}, {30, podWith(unreadyAt(12)), false}},
			want:   []span{{"uid-a", 20, 20}},
			events: []string{"started uid-a", "ended uid-a"},
		},
		"another address while active": {
			steps:  []step{{20, podWith(readyAt(20), ip("")), false}, {21, podWith(readyAt(20)), false}},
			want:   []span{{"uid-a", 20, 0}},
			ready:  1,
			events: []string{"started uid-a", "changed"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := at(0)
			tracker := NewTracker(Options{Now: func() time.Time { return now }})
			fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
			seen := recorded(fleet)
			for i, s := range test.steps {
				now = at(s.at)
				switch {
				case s.deleted:
					tracker.Delete(s.pod)
				case i%2 == 0:
					tracker.Update(s.pod)
				default:
					tracker.Update(s.pod)
				}
			}
			assert.Equal(t, test.want, spans(fleet.Instances(at(0))))
			assert.Equal(t, test.ready, fleet.Ready())
			assert.Equal(t, test.events, seen.all())
		})
	}
}

func TestInstanceSaysWhereItIs(t *testing.T) {
	tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	tracker.Update(podWith(readyAt(20), ip("fd00::1")))
	assert.Equal(t, []Instance{{
		ID: "uid-a", Pod: types.NamespacedName{Namespace: "shop", Name: "a"}, IP: "fd00::1",
		Ports: map[string]int32{"metrics": 9090}, Labels: map[string]string{"app": "checkout"}, Start: at(20),
	}}, fleet.Active())
}

func TestNamedPorts(t *testing.T) {
	p := podWith(func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{
			{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP},
				{ContainerPort: 81}}},
			{Ports: []corev1.ContainerPort{{Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP},
				{Name: "http", ContainerPort: 82}}},
		}
		p.Spec.InitContainers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "sidecar",
			ContainerPort: 90}}}}
	})
	assert.Equal(t, map[string]int32{"http": 80, "sidecar": 90}, namedPorts(p))
}

// The state of a pod is that of any pod of the namespace, whether the target selects it or not.
func TestPodState(t *testing.T) {
	tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
	f := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	state := func() PodState { return f.PodState("a") }
	assert.Equal(t, PodAbsent, state())
	tracker.Update(podWith(app("gateway")))
	assert.Equal(t, PodStarting, state())
	tracker.Update(podWith(app("gateway"), readyAt(20)))
	assert.Equal(t, PodReady, state())
	tracker.Update(podWith(app("gateway"), unreadyAt(30)))
	assert.Equal(t, PodStarting, state())
	tracker.Update(podWith(app("gateway"), readyAt(20), terminating(40, 30)))
	assert.Equal(t, PodLeaving, state())
	tracker.Delete(podWith(app("gateway"), terminating(40, 30)))
	assert.Equal(t, PodAbsent, state())
	tracker.Update(podWith(app("gateway"), phase(corev1.PodFailed)))
	assert.Equal(t, PodLeaving, state())
}

func TestInstancesSince(t *testing.T) {
	now := at(0)
	tracker := NewTracker(Options{Retention: time.Minute, Now: func() time.Time { return now }})
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	tracker.Update(podWith(readyAt(0)))
	now = at(31)
	tracker.Update(podWith(unreadyAt(30)))
	now = at(41)
	tracker.Update(podWith(readyAt(40)))

	both := []span{{"uid-a", 0, 30}, {"uid-a/2", 40, 0}}
	assert.Equal(t, both, spans(fleet.Instances(at(30))), "ended at since")
	assert.Equal(t, both[1:], spans(fleet.Instances(at(30.001))), "ended before since")
	assert.Equal(t, both[1:], spans(fleet.Active()))
	now = at(91)
	assert.Equal(t, both, spans(fleet.Instances(at(0))), "within the retention")
	now = at(91.001)
	assert.Equal(t, both[1:], spans(fleet.Instances(at(0))), "past the retention")
}

func TestEndedInstancesDoNotPileUp(t *testing.T) {
	now := at(0)
	tracker := NewTracker(Options{Retention: time.Minute, Now: func() time.Time { return now }})
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	for i := range 10_000 {
		now = at(float64(i))
		p := podWith(named(fmt.Sprint("p", i)), readyAt(float64(i)))
		tracker.Update(p)
		tracker.Delete(p)
	}
	assert.Len(t, fleet.ended, 61)
	assert.Len(t, fleet.members, 61)
	assert.Empty(t, tracker.namespaces["shop"].pods)
	assert.Empty(t, tracker.namespaces["shop"].byLabel)
	assert.Empty(t, fleet.Startups(), "of pods that are no more")

	now = now.Add(2 * time.Minute)
	assert.Empty(t, fleet.Instances(at(0)))
	assert.Empty(t, fleet.members)
	tracker.Forget(metric)
	assert.Empty(t, tracker.namespaces)
	assert.Empty(t, tracker.targets)
}

func TestFollowReplaysInOrderOfReadiness(t *testing.T) {
	tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
	for _, p := range []*corev1.Pod{
		podWith(named("c"), readyAt(30)), podWith(named("a"), readyAt(50)), podWith(named("b"), readyAt(40)),
		podWith(named("d")), podWith(named("e"), readyAt(20), app("other")),
	} {
		tracker.Update(p)
	}
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	assert.Equal(t, []span{{"uid-a", 50, 0}, {"uid-b", 40, 0}, {"uid-c", 30, 0}}, spans(fleet.Active()))
	assert.Equal(t, 3, fleet.Ready())
}

func TestFollowAgain(t *testing.T) {
	tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
	tracker.Update(podWith(readyAt(20)))
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	seen := recorded(fleet)
	assert.Same(t, fleet, tracker.Follow(metric, "shop", selector(t, "app = checkout")), "the same")
	tracker.Forget(metric)
	tracker.Forget(metric)
	assert.Empty(t, fleet.Instances(at(0)))
	assert.Zero(t, fleet.Ready())
	tracker.Update(podWith(unreadyAt(90)))
	assert.Equal(t, []string{"ended uid-a"}, seen.all(), "it is empty, and nothing more is reported")
	assert.NotSame(t, fleet, tracker.Follow(metric, "shop", selector(t, "app=checkout")))
}

// A target whose selector moves, as that of a blue-green rollout does, has other pods from then on.
func TestSelectorMoves(t *testing.T) {
	now := at(100)
	tracker := NewTracker(Options{Now: func() time.Time { return now }})
	tracker.Update(podWith(readyAt(20)))
	tracker.Update(podWith(named("both"), readyAt(30), labelled("app", "checkout", "track", "green")))
	tracker.Update(podWith(named("b"), readyAt(40), labelled("track", "green")))
	tracker.Update(podWith(named("late"), unreadyAt(50), labelled("track", "green")))
	tracker.Update(podWith(named("past"), readyAt(10), terminating(60, 30), labelled("track", "green")))
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	seen := recorded(fleet)
	assert.Equal(t, 2, fleet.Ready())

	now = at(110)
	assert.Same(t, fleet, tracker.Follow(metric, "shop", selector(t, "track=green")))
	assert.Equal(t, []span{{"uid-a", 20, 110}, {"uid-b", 110, 0}, {"uid-both", 30, 0}}, spans(fleet.Instances(at(0))),
		"a pod is an instance while it is selected")
	assert.Equal(t, 3, fleet.Ready(), "as the HPA counts, with the one that terminates")
	tracker.Update(podWith(named("late"), readyAt(109), labelled("track", "green")))
	assert.Contains(t, spans(fleet.Active()), span{"uid-late", 109, 0}, "it became ready before, and was seen to after")
	tracker.Update(podWith(readyAt(20)))
	assert.Len(t, fleet.Active(), 3, "events of a former member do not bring it back")

	now = at(120)
	tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	assert.Equal(t, []span{{"uid-a", 20, 110}, {"uid-a/2", 120, 0}, {"uid-b", 110, 120},
		{"uid-both", 30, 0}, {"uid-late", 109, 120}},
		spans(fleet.Instances(at(0))), "and back")
	tracker.Delete(podWith(readyAt(20)))
	assert.Equal(t, []span{{"uid-both", 30, 0}}, spans(fleet.Active()))
	assert.Equal(t, []string{
		"ended uid-a", "started uid-b", "started uid-late", "ended uid-b", "ended uid-late",
		"started uid-a/2", "ended uid-a/2",
	}, seen.all())
}

// A selector that selects hundreds of other pods makes one call, because every caller reads the whole list.
func TestOneCallForChangesThatArriveTogether(t *testing.T) {
	tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
	for i := range 300 {
		tracker.Update(podWith(named(fmt.Sprint("a", i)), readyAt(20)))
		tracker.Update(podWith(named(fmt.Sprint("b", i)), readyAt(20), app("other")))
	}
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	calls := 0
	fleet.Watch(func() { calls++ })
	tracker.Follow(metric, "shop", selector(t, "app=other"))
	assert.Equal(t, 1, calls)
	assert.Len(t, fleet.Active(), 300)
}

func TestWatch(t *testing.T) {
	tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	tracker.Update(podWith(readyAt(20)))
	var one, two int
	stop := fleet.Watch(func() { one++ })
	fleet.Watch(func() { two++ })
	tracker.Update(podWith(named("b"), readyAt(30)))
	stop()
	stop()
	tracker.Delete(podWith(named("b"), readyAt(30)))
	assert.Equal(t, []int{1, 2}, []int{one, two})
}

func TestWatchStoppedFromWithinACall(t *testing.T) {
	tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	var stop func()
	fleet.Watch(func() { stop() })
	stop = fleet.Watch(func() { assert.Fail(t, "it was stopped before its call") })
	tracker.Update(podWith(readyAt(20)))
}

func TestSelectors(t *testing.T) {
	tests := map[string]struct {
		selector string
		labels   map[string]string
		want     bool
	}{
		"equal":            {"app=checkout", map[string]string{"app": "checkout", "x": "y"}, true},
		"other value":      {"app=checkout", map[string]string{"app": "cart"}, false},
		"no labels":        {"app=checkout", nil, false},
		"all of several":   {"app=checkout,tier=web", map[string]string{"app": "checkout", "tier": "web"}, true},
		"one of several":   {"app=checkout,tier=web", map[string]string{"app": "checkout"}, false},
		"in one":           {"app in (checkout)", map[string]string{"app": "checkout"}, true},
		"in":               {"app in (cart,checkout)", map[string]string{"app": "checkout"}, true},
		"not in":           {"app notin (cart)", map[string]string{"app": "checkout"}, true},
		"exists":           {"app", map[string]string{"app": ""}, true},
		"does not exist":   {"!app", map[string]string{"app": ""}, false},
		"everything":       {"", map[string]string{"any": "thing"}, true},
		"everything, bare": {"", nil, true},
		"empty value":      {"app=", map[string]string{"app": ""}, true},
		"mixed requirements": {"app=checkout,tier notin (db)", map[string]string{"app": "checkout", "tier": "db"},
			false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
			p := podWith(readyAt(20), func(p *corev1.Pod) { p.Labels = test.labels })
			before := tracker.Follow(metric, "shop", selector(t, test.selector))
			elsewhere := tracker.Follow(types.NamespacedName{Name: "x"}, "other", selector(t, test.selector))
			tracker.Update(p)
			after := tracker.Follow(types.NamespacedName{Name: "y"}, "shop", selector(t, test.selector))
			assert.Equal(t, test.want, len(before.Active()) == 1)
			assert.Equal(t, test.want, len(after.Active()) == 1)
			assert.Empty(t, elsewhere.Active())
		})
	}
	t.Run("nothing", func(t *testing.T) {
		tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
		fleet := tracker.Follow(metric, "shop", labels.Nothing())
		tracker.Update(podWith(readyAt(20)))
		assert.Empty(t, fleet.Active())
	})
}

// The index spreads fleets over the label that distinguishes them, so that an event tries few of them.
func TestIndexPrefersDistinctiveLabels(t *testing.T) {
	tracker := NewTracker(Options{})
	for i := range 100 {
		s := labels.SelectorFromSet(labels.Set{"app": fmt.Sprint("app-", i), "managed-by": "helm"})
		tracker.Follow(types.NamespacedName{Name: fmt.Sprint(i)}, "shop", s)
	}
	largest := 0
	for _, bucket := range tracker.namespaces["shop"].targets.byLabel {
		largest = max(largest, len(bucket))
	}
	assert.LessOrEqual(t, largest, 1)
}

func TestStartups(t *testing.T) {
	tests := map[string]struct {
		versions []*corev1.Pod
		want     []Startup
	}{
		"first readiness": {
			[]*corev1.Pod{podWith(), podWith(readyAt(20))}, []Startup{{Created: at(0), Ready: at(20)}},
		},
		"found ready": {
			[]*corev1.Pod{podWith(readyAt(20))}, []Startup{{Created: at(0), Ready: at(20)}},
		},
		"not the second": {
			[]*corev1.Pod{podWith(readyAt(20)), podWith(unreadyAt(50)), podWith(readyAt(80))},
			[]Startup{{Created: at(0), Ready: at(20)}},
		},
		"not after a restart": {
			[]*corev1.Pod{podWith(), podWith(readyAt(60), restarts(1))}, []Startup{},
		},
		"not without a time": {
			[]*corev1.Pod{podWith(func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			})},
			[]Startup{},
		},
		"not of others": {
			[]*corev1.Pod{podWith(readyAt(20), app("other"))}, []Startup{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
			fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
			for _, p := range test.versions {
				tracker.Update(p)
			}
			late := tracker.Follow(types.NamespacedName{Name: "late"}, "shop", selector(t, "app=checkout"))
			assert.Equal(t, test.want, fleet.Startups())
			assert.Equal(t, test.want, late.Startups(), "followed later")
		})
	}
}

func TestStartupTimeFollowsStartups(t *testing.T) {
	tracker := NewTracker(Options{Now: func() time.Time { return at(1000) }})
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	assert.Equal(t, 25*time.Second, fleet.StartupTime(pipeline.Holt, 25*time.Second), "nothing learnt")
	tracker.Update(podWith(readyAt(40)))
	assert.Equal(t, 28750*time.Millisecond, fleet.StartupTime(pipeline.Holt, 25*time.Second), "25 s + 15%")
	assert.Equal(t, 11500*time.Millisecond, fleet.StartupTime(pipeline.Holt, 10*time.Second), "another start")
	for i := range 100 {
		tracker.Update(podWith(named(fmt.Sprint("p", i)), created(float64(i)), readyAt(float64(i+40))))
	}
	assert.Equal(t, 40*time.Second, fleet.StartupTime(pipeline.Holt, 25*time.Second))
}

// The wait for a node is part of the way from creation to readiness, and no part of that on the node.
func TestStartupTimeOnNodeLeavesTheWaitOut(t *testing.T) {
	tracker := NewTracker(Options{Now: func() time.Time { return at(1000) }})
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	for i := range 100 {
		tracker.Update(podWith(named(fmt.Sprint("p", i)), created(float64(i)), readyAt(float64(i+120)),
			scheduledAt(float64(i+90), "node")))
	}
	assert.Equal(t, 120*time.Second, fleet.StartupTime(pipeline.Holt, 25*time.Second))
	assert.Equal(t, 30*time.Second, fleet.StartupTimeOnNode(pipeline.Holt, 25*time.Second))
	for i := range 100 {
		tracker.Update(podWith(named(fmt.Sprint("q", i)), created(float64(200+i)), readyAt(float64(200+i+40)),
			scheduledAt(float64(200+i), "node")))
	}
	assert.Equal(t, 40*time.Second, fleet.StartupTimeOnNode(pipeline.Holt, 25*time.Second),
		"of pods that found a node the whole way")
}

// However an informer lists the pods, and whether a fleet is followed before, amid or after, the answers are the same.
func TestOrderOfReplayChangesNothing(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 30 {
		s := float64(i)
		p := podWith(named(fmt.Sprint("p", i)), created(s), readyAt(s+10+float64(i*7%13)))
		switch i % 6 {
		case 1:
			unreadyAt(s + 30)(p)
		case 2:
			terminating(50, 30)(p)
		case 3:
			restarts(2)(p)
		case 4:
			readyAt(20)(p) // several at the same second
		}
		pods = append(pods, p)
	}
	type answers struct {
		instances   []Instance
		ready       int
		startups    []Startup
		startupTime time.Duration
	}
	random := rand.New(rand.NewPCG(1, 2))
	var want *answers
	for range 50 {
		random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		followed := random.IntN(len(pods) + 1)
		tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
		for i, p := range pods {
			if i == followed {
				tracker.Follow(metric, "shop", selector(t, "app=checkout"))
			}
			tracker.Update(p)
		}
		f := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
		got := &answers{f.Instances(at(0)), f.Ready(), f.Startups(), f.StartupTime(pipeline.Holt, 25*time.Second)}
		if want == nil {
			want = got
			require.Len(t, want.instances, 25) // five of them terminating
		}
		require.Equal(t, want, got)
	}
}

func TestDeletionOfAStranger(t *testing.T) {
	tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	tracker.Update(podWith(readyAt(20)))
	tracker.Delete(podWith(named("zzz")))
	tracker.Delete(podWith(uid("another")))
	assert.Len(t, fleet.Active(), 1)
	tracker.Delete(podWith(readyAt(20)))
	assert.Empty(t, fleet.Active())
	assert.Equal(t, []span{{"uid-a", 20, 100}}, spans(fleet.Instances(at(0))))
}

func TestWatchMayCallBack(t *testing.T) {
	tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	seen := recorded(fleet)
	fleet.Watch(func() {
		f := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
		if len(f.Active()) == 1 && f.Ready() == 1 {
			tracker.Delete(podWith(readyAt(20)))
		}
	})
	tracker.Update(podWith(readyAt(20)))
	assert.Equal(t, []string{"started uid-a", "ended uid-a"}, seen.all())
}

// Calls do not overlap, and the last one sees the last change, no matter which goroutine brings it.
func TestConcurrentUse(t *testing.T) {
	tracker := NewTracker(Options{Retention: time.Millisecond})
	seen := make([]*recorder, 4)
	var group sync.WaitGroup
	for worker := range 4 {
		key := types.NamespacedName{Name: fmt.Sprint(worker)}
		seen[worker] = recorded(tracker.Follow(key, "shop", selector(t, "app=checkout")))
		group.Go(func() {
			for i := range 200 {
				p := podWith(named(fmt.Sprint(worker, "-", i%7)), readyAt(float64(i)))
				tracker.Update(p)
				tracker.Update(podWith(named(p.Name), unreadyAt(float64(i))))
				tracker.Delete(p)
			}
		})
		group.Go(func() {
			for range 200 {
				f := tracker.Follow(key, "shop", selector(t, "app=checkout"))
				f.Instances(at(0))
				f.Ready()
				f.StartupTime(pipeline.Holt, time.Second)
			}
		})
		group.Go(func() {
			other := types.NamespacedName{Name: fmt.Sprint("other-", worker)}
			for range 200 {
				tracker.Follow(other, "shop", selector(t, "app in (checkout,cart)"))
				tracker.Forget(other)
			}
		})
	}
	group.Wait()
	for _, r := range seen {
		assert.NotEmpty(t, r.all())
		assert.Empty(t, r.active)
	}
	for key, f := range tracker.targets {
		assert.Empty(t, f.Active(), key)
		assert.Zero(t, f.Ready(), key)
	}
}
