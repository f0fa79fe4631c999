package nodepool

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replicas plays a ReplicaSet, the scheduler and the garbage collection of pods, in the namespace of a stage.
type replicas struct {
	stage *stage
	count int
	// perNode is how many of them a node holds: of its 2 CPU each requests an equal share of what
	// DaemonSets leave.
	perNode int
	made    int
}

// step brings the pods to where controllers and the scheduler would.
func (r *replicas) step(ctx context.Context, nodes map[string]*corev1.Node) error {
	pods, err := r.stage.client.CoreV1().Pods(r.stage.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	on := map[string]int{}
	var pending []*corev1.Pod
	there := 0
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch node := pod.Spec.NodeName; {
		case pod.DeletionTimestamp != nil:
		case node == "":
			pending = append(pending, pod)
			there++
		case nodes[node] == nil:
			if err := r.collect(ctx, pod); err != nil {
				return err
			}
		default:
			on[node]++
			there++
		}
	}
	for ; there < r.count; there++ {
		pod, err := r.create(ctx)
		if err != nil {
			return err
		}
		pending = append(pending, pod)
	}
	for _, pod := range pending {
		if err := r.schedule(ctx, pod, nodes, on); err != nil {
			return err
		}
	}
	return nil
}

// schedule binds a pod to the free node that has the fewest pods.
func (r *replicas) schedule(ctx context.Context, pod *corev1.Pod, nodes map[string]*corev1.Node,
	on map[string]int) error {
	best := ""
	for name, node := range nodes {
		free := isReady(node) && !node.Spec.Unschedulable && len(node.Spec.Taints) == 0 && on[name] < r.perNode
		if free && (best == "" || on[name] < on[best] || on[name] == on[best] && name < best) {
			best = name
		}
	}
	if best == "" {
		return nil
	}
	on[best]++
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Target: corev1.ObjectReference{Kind: "Node", Name: best}}
	if err := r.stage.client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	return r.setStatus(ctx, pod.Name, corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}})
}

func (r *replicas) setStatus(ctx context.Context, name string, status corev1.PodStatus) error {
	pods := r.stage.client.CoreV1().Pods(r.stage.name)
	pod, err := pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod.Status = status
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// create adds a pod that no node has been found for, since now.
func (r *replicas) create(ctx context.Context) (*corev1.Pod, error) {
	r.made++
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("app-%d", r.made), Labels: map[string]string{"app": "app"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "app",
				UID: "app", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64), // no kubelet confirms the end of a pod
			AutomountServiceAccountToken:  new(bool),
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(2000/r.perNode),
					resource.DecimalSI)},
			}}},
		},
	}
	pod, err := r.stage.client.CoreV1().Pods(r.stage.name).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return pod, r.setStatus(ctx, pod.Name, corev1.PodStatus{Phase: corev1.PodPending,
		Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			LastTransitionTime: metav1.NewTime(r.stage.clock.Now()),
		}}})
}

// collect removes a pod whose node has gone.
func (r *replicas) collect(ctx context.Context, pod *corev1.Pod) error {
	err := r.stage.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
