package extender

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
)

// arrival is that of a pod in the watch.
type arrival struct {
	done     chan struct{} // closed by it
	requests int           // that wait for it
}

// await waits until a pod is known to be pending or bound, for arrivalTimeout at most, and returns whether it is. While the cluster
// is not known, or no longer, all scores are equal, and nothing is waited for.
func (e *Extender) await(ctx context.Context, pod *corev1.Pod) bool {
	id := idOf(pod.UID)
	if e.snapshot().blind(e.now()) {
		return true
	}
	a := e.assumed.seek(id)
	if a == nil {
		return true
	}
	defer e.assumed.leave(id, a)
	ctx, cancel := context.WithTimeout(ctx, arrivalTimeout)
	defer cancel()
	if a.within(ctx, watchPatience) {
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	read := make(chan *bool, 1)
	go func() { read <- e.read(ctx, pod) }()
	select {
	case <-a.done:
		return true
	case pending := <-read:
		switch {
		case pending == nil:
			return a.within(ctx, arrivalTimeout)
		case *pending:
			e.assumed.found(id, e.now())
		}
		return *pending
	}
}

// read asks the API server whether a pod is pending, nil for no answer.
func (e *Extender) read(ctx context.Context, pod *corev1.Pod) *bool {
	if !e.reads.TryAccept() {
		return nil
	}
	p, err := e.cluster.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return new(false)
	case err != nil:
		return nil
	}
	r, lives := recordOf(p, e.cluster.workloads, e.now())
	return new(p.UID == pod.UID && lives && !r.isBound())
}

// within returns whether the pod arrives in time.
func (a *arrival) within(ctx context.Context, d time.Duration) bool {
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	select {
	case <-a.done:
		return true
	case <-timeout.C:
	case <-ctx.Done():
	}
	return false
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
		a = &arrival{done: make(chan struct{})}
		l.sought[id] = a
	}
	a.requests++
	return a
}

// leave ends what seek began.
func (l *assumedPods) leave(id podID, a *arrival) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.requests--; a.requests == 0 && l.sought[id] == a {
		delete(l.sought, id)
	}
}

// found records a pending pod that was read. It counts as pending until the watch has it.
func (l *assumedPods) found(id podID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bound[id] == nil && !l.isPending(id) {
		l.read[id] = now
	}
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
