package extender

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// A scheduler may ask about a pod that the watch of the extender does not have yet. In a burst an API server closes watches that do
// not keep up, and it takes a second or two until the next one delivers. If the pods of that time did not count, they would all go
// to the same node. So the request waits for a moment, and then the pod is read.

const (
	// watchPatience is how long a request waits for the watch before its pod is read.
	watchPatience = 20 * time.Millisecond
	// arrivalTimeout is how long a request waits for its pod altogether. A scheduler gives up after 200 ms.
	arrivalTimeout = 100 * time.Millisecond
	// readsPerSecond is the maximum number of pods that are read per second, twice as many at once. Anyone may ask about pods that
	// do not exist.
	readsPerSecond = 50
	// maxAwaiting is the maximum number of requests that wait for their pods. They are decoded, and take memory.
	maxAwaiting = 32
)

// arrival is that of a pod in the watch.
type arrival struct {
	id       podID
	done     chan struct{} // closed by it
	requests int           // that wait for it
}

// seek returns whether a pod is known to be pending or bound. If it is not, and may be waited for, wait must be called with the
// arrival. While the cluster is not known, or no longer, all scores are equal, and nothing is waited for. Neither are pods without
// a UID, which cannot count.
func (e *Extender) seek(pod *corev1.Pod) (a *arrival, known bool) {
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

// wait waits until a pod is known to be pending or bound, for arrivalTimeout at most, and returns whether it is.
func (e *Extender) wait(ctx context.Context, pod *corev1.Pod, a *arrival) bool {
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

// isPending reads a pod.
func (e *Extender) isPending(ctx context.Context, pod *corev1.Pod) bool {
	p, err := e.cluster.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		if !apierrors.IsNotFound(err) && ctx.Err() == nil && e.readFailed.due(e.now()) {
			klog.FromContext(ctx).Error(err, "A pod that the watch has not delivered yet cannot be read: it does not count before it is bound")
		}
		return false
	}
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	return p.UID == pod.UID && p.Spec.NodeName == "" && !ended
}

// seek returns the arrival of a pod, nil if it is known. leave must be called.
func (l *assumedPods) seek(id podID) *arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.off || l.isPending(id) || l.bound[id] != nil {
		return nil
	}
	a := l.sought[id]
	if a == nil {
		a = &arrival{id: id, done: make(chan struct{})}
		l.sought[id] = a
	}
	a.requests++
	return a
}

// leave ends what seek began.
func (l *assumedPods) leave(a *arrival) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.requests--; a.requests == 0 && l.sought[a.id] == a {
		delete(l.sought, a.id)
	}
}

// found records a pending pod that was read. It counts as pending until the watch has it, for assumeTimeout at most: a pod that
// ends before that is never in the watch. If the watch has had the pod since, found returns whether it still lives.
func (l *assumedPods) found(a *arrival, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sought[a.id] == a {
		l.read[a.id] = now
	}
	return l.isPending(a.id) || l.bound[a.id] != nil
}

// isPending is called under the lock.
func (l *assumedPods) isPending(id podID) bool {
	_, watched := l.pending[id]
	_, read := l.read[id]
	return watched || read
}

// arrived is called under the lock, when the watch has a pod.
func (l *assumedPods) arrived(id podID) {
	delete(l.read, id)
	if a := l.sought[id]; a != nil {
		delete(l.sought, id)
		close(a.done)
	}
}
