package forecaster

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/internal/objectcache"
	"github.com/foresail/foresail/pipeline"
)

// unluckyPod is a pod of a cluster whose events come in unlucky orders.
type unluckyPod struct {
	name              string
	created, ready    time.Time // ready: when it became Ready last; zero: it is not
	leaves, gone      time.Time // zero: not yet
	unready           time.Time // since when it is not, after it was
	failsUntil        time.Time // it cannot be read
	readyIn, leavesIn time.Duration
}

func (p *unluckyPod) serves() bool { return !p.ready.IsZero() && p.leaves.IsZero() }

func (p *unluckyPod) object() *corev1.Pod {
	o := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: p.name, UID: types.UID("uid-" + p.name),
			Labels: map[string]string{"app": "checkout"}, CreationTimestamp: metav1.NewTime(p.created),
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	c := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	c.LastTransitionTime = metav1.NewTime(p.created)
	switch {
	case !p.ready.IsZero():
		c.Status, c.LastTransitionTime = corev1.ConditionTrue, metav1.NewTime(p.ready.Truncate(time.Second))
	case !p.unready.IsZero():
		c.LastTransitionTime = metav1.NewTime(p.unready.Truncate(time.Second))
	}
	o.Status.Conditions = []corev1.PodCondition{c}
	if !p.leaves.IsZero() {
		deleted, grace := metav1.NewTime(p.leaves.Add(30*time.Second)), int64(30)
		o.DeletionTimestamp, o.DeletionGracePeriodSeconds = &deleted, &grace
	}
	return o
}

// unlucky is a forecaster in a cluster in which pods start and end, the watch of them is lost, the
// clock is set, pods cannot be read and the process restarts, all in any order. The API server and the
// kubelets have the right time.
type unlucky struct {
	t    *testing.T
	seed uint64
	r    *rand.Rand

	clock      sourcetest.Clock
	ahead      time.Duration
	clockUntil time.Time // when the clock is set right, zero: it is

	pods       []*unluckyPod
	made       int
	replicas   int
	known      int       // replicas, as the process knows them
	lostUntil  time.Time // zero: the watch is not lost
	loads      []float64 // of each second
	period     float64
	depth      float64
	calmSince  time.Time // when anything was wrong, or changed, last
	blindSince time.Time // when a pod could not be read, or pods were not watched, last
	log        []string
	store      objectcache.Store
	sent       map[string]string // the version of each pod that the store has
	forecaster *Forecaster
	feed       *Feed
	fleet      *podtracker.TargetPods
	stored     []byte // the checkpoint
	valid      int
}

// Subscribe implements podtracker.Feed.
func (w *unlucky) Subscribe(s objectcache.Store) (cancel func()) {
	w.store = s
	return func() {}
}

const unluckyThreshold = 50.0

func newUnlucky(t *testing.T, seed uint64) *unlucky {
	w := &unlucky{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 3535)), calmSince: time.Now()}
	w.period, w.depth = 300+w.r.Float64()*900, w.r.Float64()*0.4
	w.replicas = 4 + w.r.IntN(12)
	for range w.replicas {
		p := w.add(0)
		p.created = time.Now().Add(-time.Duration(1+w.r.IntN(3*3600)) * time.Second)
		p.ready = p.created.Add(20 * time.Second)
		if p.ready.After(time.Now()) {
			p.ready = time.Now()
		}
	}
	w.start()
	return w
}

func (w *unlucky) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%4d ", len(w.loads))+fmt.Sprintf(format, args...))
}

func (w *unlucky) add(readyIn time.Duration) *unluckyPod {
	w.made++
	p := &unluckyPod{name: fmt.Sprintf("pod-%d", w.made), created: time.Now(), readyIn: readyIn}
	w.pods = append(w.pods, p)
	return p
}

// start starts the process.
func (w *unlucky) start() {
	tracker := podtracker.NewTracker(podtracker.Options{Now: w.clock.Now})
	podtracker.NewWatcher(tracker, map[string]podtracker.Feed{metav1.NamespaceAll: w})
	w.forecaster = New(w.clock.Now, prometheus.NewRegistry(), Options{})
	c := config()
	c.Params = pipeline.AdaptiveParams()
	c.Params.Threshold, c.Params.Min, c.Params.Max = unluckyThreshold, 1, 60
	feed, err := w.forecaster.Set(key, c)
	require.NoError(w.t, err)
	w.feed = feed
	w.list()
	w.fleet = tracker.Follow(key, key.Namespace, labels.SelectorFromSet(labels.Set{"app": "checkout"}))
	feed.SetPods(w.fleet)
	feed.SetReplicas(w.replicas)
	if w.stored == nil {
		w.forecaster.Learned().NoCheckpoint(key)
		return
	}
	_, err = w.forecaster.Learned().Restore(key, w.stored, true)
	require.NoError(w.t, err)
}

// list gives the store all pods.
func (w *unlucky) list() {
	var all []any
	w.sent = map[string]string{}
	for _, p := range w.pods {
		all = append(all, p.object())
		w.sent[p.name] = p.object().String()
	}
	require.NoError(w.t, w.store.Replace(all, "1"))
}

// send gives the store the changes of pods, if they are watched.
func (w *unlucky) send() {
	if !w.lostUntil.IsZero() {
		w.blindSince = time.Now()
		return
	}
	present := map[string]bool{}
	for _, p := range w.pods {
		present[p.name] = true
		if o := p.object(); w.sent[p.name] != o.String() {
			w.sent[p.name] = o.String()
			require.NoError(w.t, w.store.Update(o))
		}
	}
	for name := range w.sent {
		if !present[name] {
			delete(w.sent, name)
			gone := &unluckyPod{name: name, leaves: time.Now()}
			require.NoError(w.t, w.store.Delete(gone.object()))
		}
	}
}

func (w *unlucky) seconds(least, most int) time.Duration {
	return time.Duration(least+w.r.IntN(most-least)) * time.Second
}

// happen has something happen.
func (w *unlucky) happen() {
	now := time.Now()
	w.calmSince = now
	serving := slices.DeleteFunc(w.serving(), func(p *unluckyPod) bool { return p.leavesIn > 0 })
	if len(serving) == 0 {
		return
	}
	switch w.r.IntN(9) {
	case 0:
		n := 1 + w.r.IntN(min(20, len(serving)))
		w.note("scaled up by %d", n)
		w.replicas += n
		for range n {
			w.add(w.seconds(2, 60))
		}
	case 1:
		n := w.r.IntN(max(1, len(serving)/2))
		w.note("scaled down by %d", n)
		for _, p := range serving[:n] {
			w.leave(p, 0)
		}
		w.replicas = max(1, w.replicas-n)
	case 2:
		w.note("rolling update")
		for i, p := range serving {
			w.add(w.seconds(2, 40) + time.Duration(i)*5*time.Second)
			w.leave(p, 45*time.Second+time.Duration(i)*5*time.Second)
		}
	case 3:
		if len(serving) > 2 {
			w.note("%s is not Ready", serving[0].name)
			p := serving[0]
			p.ready, p.unready, p.readyIn = time.Time{}, now, now.Sub(p.created)+w.seconds(5, 60)
		}
	case 4:
		p := serving[w.r.IntN(len(serving))]
		p.failsUntil = now.Add(w.seconds(3, 60))
		w.note("%s cannot be read", p.name)
	case 5:
		for _, p := range serving {
			p.failsUntil = now.Add(w.seconds(3, 90))
		}
		w.note("no pod can be read")
	case 6:
		w.lostUntil = now.Add(w.seconds(3, 120))
		require.NotNil(w.t, w.store)
		w.store.Touch(errors.New("connection refused"))
		w.note("the watch is lost for %s", w.lostUntil.Sub(now))
	case 7:
		if w.clockUntil.IsZero() {
			w.ahead = []time.Duration{time.Minute, 20 * time.Minute, 3 * time.Hour}[w.r.IntN(3)]
			if w.r.IntN(2) == 0 {
				w.ahead = -w.ahead
			}
			w.clock.Set(w.ahead)
			w.clockUntil = now.Add(w.seconds(1, 300))
			w.note("the clock is set by %s", w.ahead)
		}
	case 8:
		if w.lostUntil.IsZero() {
			w.note("restart")
			w.start()
		}
	}
}

func (w *unlucky) leave(p *unluckyPod, in time.Duration) {
	if p.leavesIn == 0 {
		p.leavesIn = time.Since(p.created) + in + time.Nanosecond
	}
}

func (w *unlucky) serving() (all []*unluckyPod) {
	for _, p := range w.pods {
		if p.serves() {
			all = append(all, p)
		}
	}
	return all
}

// pass lets a second go by.
func (w *unlucky) pass() {
	time.Sleep(time.Second) // virtual time
	now := time.Now()
	for _, p := range w.pods {
		age := now.Sub(p.created)
		others := len(w.serving()) > 1
		switch {
		case p.leavesIn > 0 && age >= p.leavesIn && p.leaves.IsZero() && others:
			p.leaves, p.gone = now, now.Add(w.seconds(1, 30))
			w.calmSince = now
		case p.readyIn > 0 && age >= p.readyIn && p.ready.IsZero():
			p.ready, p.readyIn = now, 0
			w.calmSince = now
		}
	}
	w.pods = slices.DeleteFunc(w.pods, func(p *unluckyPod) bool { return !p.gone.IsZero() && !now.Before(p.gone) })
	w.recover(now)
	w.send()
	w.read(now)
	if w.lostUntil.IsZero() {
		w.known = w.replicas
		w.feed.SetReplicas(w.replicas) // as often as it changes would do
	}
	w.forecaster.runAll()
	if len(w.loads)%300 == 0 {
		if c, ok := w.forecaster.Learned().Checkpoint(key); ok {
			w.stored = c.Data
			w.forecaster.Learned().Saved(key, c)
		}
	}
}

// recover ends what has lasted long enough.
func (w *unlucky) recover(now time.Time) {
	if !w.lostUntil.IsZero() && !now.Before(w.lostUntil) {
		w.lostUntil, w.calmSince = time.Time{}, now
		w.note("the watch is back")
		if w.r.IntN(2) == 0 {
			w.list()
		} else {
			w.store.Touch(nil)
		}
	}
	if !w.clockUntil.IsZero() && !now.Before(w.clockUntil) {
		w.clockUntil, w.calmSince = time.Time{}, now
		w.clock.Set(-w.ahead)
		w.note("the clock is right")
	}
}

// read reads every pod that is known to be active, as the source pods does.
func (w *unlucky) read(now time.Time) {
	second := float64(len(w.loads))
	load := 400 * (1 + w.depth*math.Sin(second/w.period*2*math.Pi))
	w.loads = append(w.loads, load)
	share := load / float64(max(1, len(w.serving())))
	for _, i := range w.fleet.Active() {
		at := slices.IndexFunc(w.pods, func(p *unluckyPod) bool { return p.name == i.Pod.Name })
		if at < 0 || now.Before(w.pods[at].failsUntil) {
			w.feed.Fail(i.ID, errors.New("connection refused"))
			w.calmSince, w.blindSince = now, now
			continue
		}
		value := 0.0
		if w.pods[at].serves() {
			value = share
		}
		w.feed.Append(i.ID, pipeline.Sample{T: w.clock.Now().UnixMilli(), V: value})
	}
}

// check asserts that what is served is within what the load was within the last minute and a half, or
// an error.
func (w *unlucky) check() {
	s, ok := w.forecaster.Get(key)
	require.True(w.t, ok)
	now := w.clock.Now()
	if !s.Usable(now) {
		calm := time.Since(w.calmSince)
		require.Less(w.t, calm, 2*time.Minute, "%s: nothing is wrong, and there is no forecast: %v", w.said(), s.Err)
		return
	}
	w.valid++
	recent := w.loads[max(0, len(w.loads)-90):]
	least, most := slices.Min(recent)*0.75, slices.Max(recent)*2.2+unluckyThreshold
	if time.Since(w.blindSince) < 90*time.Second {
		least = slices.Min(recent) * 0.6
	}
	total, err := serving.Value(serving.LoadTotal, &s)
	require.NoError(w.t, err)
	w.within(serving.LoadTotal, float64(total)/1000, least, most)
	if s.HasDecision() {
		set := unluckyThreshold * float64(w.known) // which cooldowns keep
		w.within(serving.Replicas, float64(s.Combined.Desired)*unluckyThreshold, min(least, set), max(most, set))
	}
	if each, err := serving.Value(serving.Load, &s); err == nil {
		w.within(serving.Load, float64(each)/1000*float64(w.ready()), least*0.9, most*1.1)
	}
}

// ready counts pods as an HPA does.
func (w *unlucky) ready() (n int) {
	for _, p := range w.pods {
		if !p.ready.IsZero() {
			n++
		}
	}
	return n
}

func (w *unlucky) within(what string, value, least, most float64) {
	require.GreaterOrEqual(w.t, value, least, "%s: %s of %.1f", w.said(), what, w.loads[len(w.loads)-1])
	require.LessOrEqual(w.t, value, most, "%s: %s of %.1f", w.said(), what, w.loads[len(w.loads)-1])
}

// said is the seed, the second and what happened last.
func (w *unlucky) said() string {
	return fmt.Sprintf("seed %d, second %d, after %q", w.seed, len(w.loads), w.log[max(0, len(w.log)-8):])
}

// Whatever happens in whatever order, what is served is within the bounds of what the load was, or an
// error, and once nothing is wrong any more there is a forecast.
func TestUnluckyOrdersOfEvents(t *testing.T) { testUnlucky(t, 0, 5) }

func testUnlucky(t *testing.T, from, to uint64) {
	valid := 0
	for seed := from; seed < to; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newUnlucky(t, seed)
				for range 1200 {
					w.pass()
					w.check()
					if len(w.loads) > 60 && w.r.IntN(40) == 0 {
						w.happen()
					}
				}
				valid += w.valid
			})
		})
	}
	require.Greater(t, valid, int(to-from)*1200/3, "most of the time there is a forecast")
}
