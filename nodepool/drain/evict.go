package drain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/nodepool/cluster"
)

// overstay is how long past its grace period a pod is waited for.
const overstay = time.Minute

// Evict makes one pass over the pods of a node: it evicts those that are not yet leaving, several at a time, and does
// not wait for their end. Calls for several nodes may be made at the same time. Pods of DaemonSets, mirror pods,
// finished pods and those that tolerate the taint of a drain are neither touched nor counted.
//
// Without force a pod that blocks a drain is left alone, and so the node never becomes empty. With force every pod is
// deleted, PodDisruptionBudgets or not, and a pod that is leaving more slowly than the limit allows is hurried.
//
// A pod is evicted by its UID, so never another one that has taken its name. An error says that some pods could not be asked
// to leave; the others were, and the Progress tells of all.
func (d *Drainer) Evict(ctx context.Context, node string, l Limits) (Progress, error) {
	if n := d.waitsFor(node, l); n > 0 {
		return Progress{Remaining: n}, nil
	}
	pods, err := d.pods(ctx, node)
	if err != nil {
		return Progress{}, err
	}
	var progress Progress
	pods = d.stillThere(node, pods)
	answers := make([]answer, len(pods))
	var asking sync.WaitGroup
	for i, pod := range pods {
		class, why := cluster.Classify(pod, d.Now())
		if l.skips(pod, class, d.Now()) {
			continue
		}
		progress.Remaining++
		grace := l.grace(d.Now())
		switch {
		case l.deletes(pod, class, d.Now()):
			d.ask(&asking, func() { answers[i].err = d.remove(ctx, pod, grace) })
		case pod.DeletionTimestamp != nil:
		case class == cluster.Blocking:
			progress.Blocked = append(progress.Blocked, name(pod)+" "+why)
		default:
			d.ask(&asking, func() { answers[i].refused, answers[i].err = d.evict(ctx, pod, grace) })
		}
	}
	asking.Wait()
	var errs []error
	for i, a := range answers {
		if a.refused != "" {
			progress.Refused = append(progress.Refused, name(pods[i])+": "+a.refused)
		}
		errs = append(errs, a.err)
	}
	return progress, errors.Join(errs...)
}

// answer is what the API server said to one request to have a pod leave.
type answer struct {
	refused string // why a PodDisruptionBudget refused it
	err     error
}

// maxRequests is how many pods of all nodes together are asked to leave at the same time.
const maxRequests = 50

// ask makes a request in the background once fewer than maxRequests are under way.
func (d *Drainer) ask(asking *sync.WaitGroup, request func()) {
	slots := d.slots()
	slots <- struct{}{}
	asking.Go(func() {
		request()
		<-slots
	})
}

func (d *Drainer) slots() chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.requests == nil {
		d.requests = make(chan struct{}, maxRequests)
	}
	return d.requests
}

// evict asks for the eviction of a pod. It returns why a PodDisruptionBudget refused it, if one did. A pod that is gone, or
// whose name another one has, is no error: the next list tells what is left.
func (d *Drainer) evict(ctx context.Context, pod *corev1.Pod, grace time.Duration) (refused string, err error) {
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: deleteOptions(pod, grace),
	}
	// The client would try again by itself after the time that the server names, for as long as 100 s.
	err = d.Client.CoreV1().RESTClient().Post().MaxRetries(0).
		Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").Body(eviction).Do(ctx).Error()
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return "", nil
	}
	if why := refusal(err); why != "" {
		return why, nil
	}
	return "", fmt.Errorf("evict pod %s: %w", name(pod), err)
}

// refusal returns what a PodDisruptionBudget has against an eviction, or "" if the error is another one.
func refusal(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	s := status.Status()
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok {
		return cause.Message
	}
	// The answer for a pod with several budgets, which no eviction can serve.
	if s.Code == http.StatusInternalServerError {
		return s.Message
	}
	return ""
}

// remove deletes a pod without asking budgets.
func (d *Drainer) remove(ctx context.Context, pod *corev1.Pod, grace time.Duration) error {
	if left := pod.DeletionGracePeriodSeconds; left != nil && (grace == 0 || *left <= seconds(grace)) {
		return nil
	}
	err := d.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *deleteOptions(pod, grace))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return wrap(err, "delete pod %s", name(pod))
}

// deleteOptions are for this very pod, with no longer than grace to end. Zero means what the pod says.
func deleteOptions(pod *corev1.Pod, grace time.Duration) *metav1.DeleteOptions {
	options := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	own := pod.Spec.TerminationGracePeriodSeconds
	if limit := seconds(grace); grace > 0 && (own == nil || *own > limit) {
		options.GracePeriodSeconds = &limit
	}
	return options
}

// seconds rounds up, so that a short grace does not become none: a pod without grace is taken from the API while it runs.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// stillThere returns the pods that are waited for: all but those that overstay.
func (d *Drainer) stillThere(node string, pods []*corev1.Pod) []*corev1.Pod {
	now := d.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	var there []*corev1.Pod
	leaving := map[types.UID]leavingPod{}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			one, ok := d.leaving[node][pod.UID]
			if !ok {
				one = leavingPod{name: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, since: now}
			}
			one.until = one.since.Add(graceOf(pod) + overstay)
			leaving[pod.UID] = one
			if now.After(one.until) {
				continue
			}
		}
		there = append(there, pod)
	}
	if d.leaving == nil {
		d.leaving = map[string]map[types.UID]leavingPod{}
	}
	if d.leaving[node] = leaving; len(leaving) == 0 {
		delete(d.leaving, node)
	}
	return there
}

// waitsFor returns how many pods of a node are still leaving if a watch shows that a pass would find nothing else: all
// of them were seen to be leaving before, and none of them overstays. Otherwise it returns 0.
func (d *Drainer) waitsFor(node string, l Limits) int {
	if d.Leaving == nil || l.Force || !l.Ends.IsZero() {
		return 0
	}
	pods, all := d.Leaving(node)
	if !all {
		return 0
	}
	now := d.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	waiting := map[types.NamespacedName]bool{}
	for _, one := range d.leaving[node] {
		waiting[one.name] = !now.After(one.until)
	}
	if slices.ContainsFunc(pods, func(pod types.NamespacedName) bool { return !waiting[pod] }) {
		return 0
	}
	return len(pods)
}

// graceOf returns how long a pod that is leaving may take to end.
func graceOf(pod *corev1.Pod) time.Duration {
	if pod.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
}

// forget drops what is remembered of the pods of a node.
func (d *Drainer) forget(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.leaving, node)
}
