package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	k8stesting "k8s.io/client-go/testing"
)

// lateWatch is an Extender with a node, whose watch of pods delivers what a test sends.
type lateWatch struct {
	*bubble
	watch *watch.RaceFreeFakeWatcher
	reads int
	fails func() error // what a read returns; nil: the pod
}

func newLateWatch(t *testing.T) *lateWatch {
	t.Helper()
	l := &lateWatch{bubble: newBubble(t, someNode("n", "1")), watch: watch.NewRaceFreeFake()}
	l.api.PrependWatchReactor("pods", func(k8stesting.Action) (bool, watch.Interface,
		error) {
		return true, l.watch, nil
	})
	l.api.PrependReactor("get", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		l.reads++
		if l.fails != nil {
			return true, nil, l.fails()
		}
		return false, nil, nil
	})
	return l
}

// create creates a pod that the watch does not have.
func (l *lateWatch) create(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	pod, err := l.api.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	return pod
}

func (l *lateWatch) await(ctx context.Context, pod *corev1.Pod) bool {
	a, known := l.seek(pod)
	if a != nil {
		known = l.wait(ctx, pod, a)
	}
	return known
}

// awaits returns how long a request waits for a pod, and whether the pod is known then.
func (l *lateWatch) awaits(t *testing.T, pod *corev1.Pod) (time.Duration, bool) {
	t.Helper()
	began := time.Now()
	known := l.await(t.Context(), pod)
	synctest.Wait()
	assert.Empty(t, l.assumed.awaited, "nothing is left of the request")
	return time.Since(began), known
}

func TestRequestsWaitForTheirPod(t *testing.T) {
	after := func(l *lateWatch, d time.Duration, pod *corev1.Pod) {
		time.AfterFunc(d, func() { l.watch.Add(pod) })
	}
	broken := func() error { return errors.New("broken") }
	hangs := func() error { time.Sleep(time.Minute); return nil } // whatever the context says
	for name, test := range map[string]struct {
		setUp func(t *testing.T, l *lateWatch) *corev1.Pod
		waits time.Duration
		known bool
		reads int
	}{
		"the watch has it": {known: true, setUp: func(_ *testing.T, l *lateWatch) *corev1.Pod {
			pod := boundNow("p", "")
			l.watch.Add(pod)
			synctest.Wait()
			return pod
		}},
		"it is bound": {known: true, setUp: func(_ *testing.T, l *lateWatch) *corev1.Pod {
			pod := boundNow("p", "n")
			l.watch.Add(pod)
			synctest.Wait()
			return pod
		}},
		"the watch is a little late": {waits: 5 * time.Millisecond, known: true,
			setUp: func(_ *testing.T, l *lateWatch) *corev1.Pod {
				pod := boundNow("p", "")
				after(l, 5*time.Millisecond, pod)
				return pod
			}},
		"the watch is silent": {waits: watchPatience, known: true, reads: 1,
			setUp: func(t *testing.T, l *lateWatch) *corev1.Pod {
				return l.create(t, boundNow("p", ""))
			}},
		"there is no such pod": {waits: watchPatience, reads: 1, setUp: func(*testing.T, *lateWatch) *corev1.Pod {
			return boundNow("p", "")
		}},
		"another pod has its name": {waits: watchPatience, reads: 1,
			setUp: func(t *testing.T, l *lateWatch) *corev1.Pod {
				pod := l.create(t, boundNow("p", "")).DeepCopy()
				pod.UID = "another"
				return pod
			}},
		"it is bound, and the watch silent": {waits: watchPatience, reads: 1,
			setUp: func(t *testing.T, l *lateWatch) *corev1.Pod {
				return l.create(t, boundNow("p", "n"))
			}},
		"it has ended": {waits: watchPatience, reads: 1, setUp: func(t *testing.T, l *lateWatch) *corev1.Pod {
			pod := boundNow("p", "")
			pod.Status.Phase = corev1.PodFailed
			return l.create(t, pod)
		}},
		"it cannot be read": {waits: watchPatience, reads: 1, setUp: func(t *testing.T, l *lateWatch) *corev1.Pod {
			l.fails = broken
			return l.create(t, boundNow("p", ""))
		}},
		"a read hangs, and the watch is late": {waits: 60 * time.Millisecond, known: true, reads: 1,
			setUp: func(_ *testing.T, l *lateWatch) *corev1.Pod {
				pod := boundNow("p", "")
				l.fails = hangs
				after(l, 60*time.Millisecond, pod)
				return pod
			}},
		"a read hangs, and the watch is silent": {waits: arrivalTimeout, reads: 1,
			setUp: func(t *testing.T, l *lateWatch) *corev1.Pod {
				l.fails = hangs
				return l.create(t, boundNow("p", ""))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLateWatch(t)
				defer l.start(t)()
				pass(2 * time.Second)
				pod := test.setUp(t, l)
				waited, known := l.awaits(t, pod)
				assert.Equal(t, test.waits, waited)
				assert.Equal(t, test.known, known)
				assert.Equal(t, test.reads, l.reads)
				if known {
					again, _ := l.awaits(t, pod)
					assert.Zero(t, again, "what is known is not waited for")
				}
				pass(2 * time.Minute) // reads that hang end
			})
		})
	}
}

// Pods that a scheduler places while no watch delivers anything count as others do, on a node each.
func TestPodsCountBeforeTheWatchHasThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLateWatch(t)
		defer l.start(t)()
		pass(2 * time.Second)
		n := l.snapshot().nodes["n"]
		var pods []*corev1.Pod
		for _, name := range []string{"a", "b", "c"} {
			pod := l.create(t, boundNow(name, ""))
			l.awaits(t, pod)
			l.assume(pod.UID, n, use{5, 6}, use{7, 8})
			pods = append(pods, pod)
		}
		assert.Equal(t, use{21, 24}, n.assumed.load())

		l.watch.Add(pods[0])
		synctest.Wait()
		assert.Equal(t, use{21, 24}, n.assumed.load(), "the watch has one")
		l.watch.Modify(boundNow("a", "n"))
		synctest.Wait()
		assert.Equal(t, boundEstimate().plus(use{14, 16}), n.assumed.load(), "it is bound")
		l.watch.Add(pods[1])
		l.watch.Delete(pods[1])
		synctest.Wait()
		assert.Equal(t, boundEstimate().plus(use{7, 8}), n.assumed.load(), "another is gone")
		pass(testRules().AssumeTimeout + Period)
		assert.Equal(t, boundEstimate(), n.assumed.load(), "no one has heard of the third again")
		assert.Empty(t, l.assumed.read)
		l.assume(pods[2].UID, n, use{5, 6}, use{7, 8})
		assert.Equal(t, boundEstimate(), n.assumed.load())
	})
}

// A pod that came and went while it was read does not count.
func TestPodsThatEndWhileTheyAreReadDoNotCount(t *testing.T) {
	l, id := newAssumedPods(testRules()), idOf("pod")
	a := l.seek(id)
	l.markPending(id)
	l.end(id)
	assert.False(t, l.found(a, noon))
	l.leave(a)
	assert.Empty(t, l.read)

	a = l.seek(id)
	assert.True(t, l.found(a, noon))
	l.leave(a)
	assert.Nil(t, l.seek(id), "it is known")
	earlier := noon.Add(-time.Hour)
	l.recount(earlier, nil)
	l.recount(earlier.Add(testRules().AssumeTimeout), nil)
	assert.Empty(t, l.read, "a clock that is set back does not extend its life")
}

// A user who asks about pods that do not exist cannot have the API server asked all the time.
func TestReadsOfPodsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLateWatch(t)
		defer l.start(t)()
		pass(2 * time.Second)
		asked := func(requests int) {
			for range requests {
				go l.await(t.Context(), boundNow("unknown", ""))
			}
			pass(watchPatience)
		}
		asked(10 * maxAwaiting)
		assert.Equal(t, maxAwaiting, l.reads, "the others do not wait")
		for range 10 {
			asked(maxAwaiting)
		}
		assert.InDelta(t, 2*readsPerSecond, l.reads, 11*readsPerSecond*watchPatience.Seconds())
		assert.Empty(t, l.assumed.awaited)
		assert.Empty(t, l.awaiting)
		pass(time.Second)
		reads := l.reads
		for range 10 {
			asked(maxAwaiting)
		}
		assert.InDelta(t, readsPerSecond, l.reads-reads, 11*readsPerSecond*watchPatience.Seconds())
	})
}

func TestNothingIsAwaitedWhileTheClusterIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLateWatch(t)
		waited, known := l.awaits(t, boundNow("p", ""))
		assert.Zero(t, waited, "nothing has been listed")
		assert.True(t, known)
		stop := l.start(t)
		pass(2 * time.Second)
		waited, _ = l.awaits(t, boundNow("p", ""))
		assert.Equal(t, watchPatience, waited)
		anonymous := boundNow("p", "")
		anonymous.UID = ""
		waited, _ = l.awaits(t, anonymous)
		assert.Zero(t, waited, "a pod without a UID cannot count")
		stop()
		pass(maxSnapshotAge + time.Second)
		waited, _ = l.awaits(t, boundNow("p", ""))
		assert.Zero(t, waited, "the snapshot is too old")
	})
}

func TestSchedulersThatGiveUpDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLateWatch(t)
		defer l.start(t)()
		pass(2 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began := time.Now()
		l.await(ctx, boundNow("p", ""))
		assert.Equal(t, time.Millisecond, time.Since(began))
		assert.Zero(t, l.reads)
	})
}

// unhurried is an assumer whose pods come when a test lets them.
type unhurried struct {
	assumer
	asked chan struct{}
	known chan bool
}

func (u unhurried) seek(*corev1.Pod) (*arrival, bool) { return &arrival{}, false }

func (u unhurried) wait(context.Context, *corev1.Pod, *arrival) bool {
	u.asked <- struct{}{}
	return <-u.known
}

// Requests that wait for their pods do not keep others from being answered.
func TestRequestsThatWaitForTheirPodTakeNoSlot(t *testing.T) {
	r := newRig(DefaultRules(), testSnapshot(testNode("a", 1, 1)))
	u := unhurried{assumer: r, asked: make(chan struct{}), known: make(chan bool)}
	r.handler.assumed = u
	body, err := json.Marshal(argsOf(testPod(), "a"))
	require.NoError(t, err)
	answered := make(chan int)
	for range 2 * maxWorking {
		go func() { answered <- r.ask(verbPrioritize, bytes.NewReader(body)).Code }()
		<-u.asked
	}
	assert.Empty(t, r.handler.working)
	for i := range 2 * maxWorking {
		u.known <- i%2 == 0
		assert.Equal(t, http.StatusOK, <-answered)
	}
	assert.Empty(t, r.handler.working)
	assert.InDelta(t, maxWorking, testutil.ToFloat64(r.handler.telemetry.unknown), 0)
}
