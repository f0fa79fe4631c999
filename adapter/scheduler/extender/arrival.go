package extender

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// A scheduler may ask about a pod that the watch of the extender does not have yet. In a burst an API server
// closes watches that do not keep up, and it takes a second or two until the next one delivers. If the pods of
// that time did not count, they would all go to the same node. So the request waits for a moment, and then the
// pod is read.

const (
	// watchPatience is the time that a request waits for the watch before its pod is read.
	watchPatience = 20 * time.Millisecond
	// arrivalTimeout is the time that a request waits for its pod altogether. A scheduler gives up after 200 ms.
	arrivalTimeout = 100 * time.Millisecond
	// readsPerSecond is the maximum number of pods that are read per second, twice as many at once. Anyone may ask
	// about pods that do not exist.
	readsPerSecond = 50
	// maxAwaiting is the maximum number of requests that wait for their pods. They are decoded, and take memory.
	maxAwaiting = 32
)

// arrivals lets requests wait for pods that the watch does not have yet.
type arrivals struct {
	now      func() time.Time
	snapshot func() *clusterSnapshot
	client   kubernetes.Interface
	assumed  *assumedPods

	awaiting   chan struct{}           // requests that wait
	reads      flowcontrol.RateLimiter // of pods
	readFailed minutely
}

func newArrivals(o *Options, snapshot func() *clusterSnapshot, l *assumedPods) *arrivals {
	return &arrivals{
		now: o.Now, snapshot: snapshot, client: o.Client, assumed: l,
		awaiting: make(chan struct{}, maxAwaiting),
		reads:    flowcontrol.NewTokenBucketRateLimiter(readsPerSecond, 2*readsPerSecond),
	}
}

// seek reports whether a pod is known to be pending or bound. If it is not, and may be waited for, wait must be
// called with the arrival. While the cluster is not known, or no longer, all scores are equal, and nothing is
// waited for. Neither are pods without a UID, which cannot count.
func (e *arrivals) seek(pod *corev1.Pod) (a *arrival, known bool) {
	if pod.UID == "" || e.snapshot().blind(e.now()) {
		return nil, true
	}
	a = e.assumed.seek(idOf(pod.UID))
	if a == nil {
		return nil, true
	}
	select {
	case e.awaiting <- struct{}{}:
		return a, false
	default:
		e.assumed.leave(a)
		return nil, false
	}
}

// wait waits until a pod is known to be pending or bound, for arrivalTimeout at most, and reports whether it is.
func (e *arrivals) wait(ctx context.Context, pod *corev1.Pod, a *arrival) bool {
	defer func() {
		e.assumed.leave(a)
		<-e.awaiting
	}()
	ctx, cancel := context.WithTimeout(ctx, arrivalTimeout)
	defer cancel()
	patience := time.NewTimer(watchPatience)
	defer patience.Stop()
	select {
	case <-a.done:
		return true
	case <-ctx.Done():
		return false
	case <-patience.C:
	}
	if !e.reads.TryAccept() {
		return false
	}
	pending := make(chan bool, 1)
	go func() { pending <- e.isPending(ctx, pod) }()
	select {
	case <-a.done:
		return true
	case is := <-pending:
		return is && e.assumed.found(a, e.now())
	case <-ctx.Done():
		return false
	}
}

// isPending reads a pod, and reports whether it is pending.
func (e *arrivals) isPending(ctx context.Context, pod *corev1.Pod) bool {
	p, err := e.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		if !apierrors.IsNotFound(err) && ctx.Err() == nil && e.readFailed.due(e.now()) {
			klog.FromContext(ctx).Error(err, "A pod that the watch has not delivered yet cannot be read: "+
				"it does not count before it is bound")
		}
		return false
	}
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	return p.UID == pod.UID && p.Spec.NodeName == "" && !ended
}

// minutely limits a log message to one a minute.
type minutely struct{ last atomic.Int64 } // in Unix nanoseconds

// due reports whether the message may be logged again.
func (m *minutely) due(now time.Time) bool {
	last := m.last.Load()
	return now.UnixNano()-last >= int64(time.Minute) && m.last.CompareAndSwap(last, now.UnixNano())
}
