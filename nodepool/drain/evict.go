package drain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// maxRequests bounds the concurrent evictions and deletions of pods, of all nodes together.
const maxRequests = 50

// requestLimit bounds concurrent requests. Its zero value has no request in progress.
type requestLimit struct {
	once  sync.Once
	slots chan struct{}
}

// start makes a request in the background once fewer than maxRequests are in progress.
func (l *requestLimit) start(group *sync.WaitGroup, request func()) {
	l.once.Do(func() { l.slots = make(chan struct{}, maxRequests) })
	l.slots <- struct{}{}
	group.Go(func() {
		request()
		<-l.slots
	})
}

// answer is the answer of the API server to an eviction or deletion.
type answer struct {
	refused string // why a PodDisruptionBudget refused it
	err     error
}

// evict evicts a pod. It succeeds for a pod that is gone, and if another pod has its name: the next pass lists what is
// left.
func evict(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, grace time.Duration) answer {
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: deleteOptions(pod, grace),
	}
	// The client would retry by itself after the time that the server names, for as long as 100 s.
	err := client.CoreV1().RESTClient().Post().MaxRetries(0).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		SubResource("eviction").Body(eviction).Do(ctx).Error()
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return answer{}
	}
	if why := refusal(err); why != "" {
		return answer{refused: why}
	}
	return answer{err: fmt.Errorf("evict pod %s: %w", name(pod), err)}
}

// refusal returns why a PodDisruptionBudget refuses an eviction, "" for other errors.
func refusal(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	s := status.Status()
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok {
		return cause.Message
	}
	// The answer for a pod with several budgets, which cannot be evicted.
	if s.Code == http.StatusInternalServerError {
		return s.Message
	}
	return ""
}

// remove deletes a pod regardless of budgets.
func remove(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, grace time.Duration) answer {
	if left := pod.DeletionGracePeriodSeconds; left != nil && (grace == 0 || *left <= seconds(grace)) {
		return answer{}
	}
	err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *deleteOptions(pod, grace))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return answer{}
	}
	return answer{err: wrap(err, "delete pod %s", name(pod))}
}

// deleteOptions return options for exactly this pod, with at most a grace period; 0 = the pod's own.
func deleteOptions(pod *corev1.Pod, grace time.Duration) *metav1.DeleteOptions {
	options := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	own := pod.Spec.TerminationGracePeriodSeconds
	if limit := seconds(grace); grace > 0 && (own == nil || *own > limit) {
		options.GracePeriodSeconds = &limit
	}
	return options
}

// seconds rounds up: a pod with a grace period of 0 is deleted from the API while its containers run.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
