package extender

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/foresail/foresail/api/v1alpha1"
)

// errNodes is the answer to a scheduler that sends whole nodes. Its other plugins would not work either.
var errNodes = errors.New(
	"foresail: the scheduler sent no NodeNames: set nodeCacheCapable: true for this extender in its KubeSchedulerConfiguration")

// errNoPod is the answer to a body without a pod.
var errNoPod = errors.New("foresail: the request has no Pod")

// Limits on one request, so that the memory that it takes is at most a small multiple of its size.
const (
	maxNameBytes = 253 // as in the API
	maxUIDBytes  = 128 // the API server makes UIDs of 36
	// maxValues is the number of JSON values in a request, without the names of nodes. A pod with a thousand
	// containers has fewer.
	maxValues     = 50_000
	maxContainers = 1000
)

var errTooManyValues = fmt.Errorf(
	"foresail: the request has more than %d values in addition to names of nodes: if there are whole nodes in it, set nodeCacheCapable: true for this extender in the KubeSchedulerConfiguration", maxValues)

// filterArgs is an extenderv1.ExtenderArgs with only the fields of the pod that are read.
type filterArgs struct {
	Pod       *podFields
	NodeNames *[]string
}

// podFields lists the fields of a Pod that podRequestOf and the functions it calls read. The rest of a Pod is skipped.
type podFields struct {
	Metadata struct {
		Name, Namespace   string
		UID               types.UID
		Labels            map[string]string
		CreationTimestamp metav1.Time
		OwnerReferences   []metav1.OwnerReference
	}
	Spec struct {
		Containers, InitContainers []containerFields
		Resources                  *corev1.ResourceRequirements
		Overhead                   corev1.ResourceList
		Priority                   *int32
		PreemptionPolicy           *corev1.PreemptionPolicy
		NodeSelector               map[string]string
		Affinity                   *struct{ NodeAffinity *corev1.NodeAffinity }
		Tolerations                []corev1.Toleration
	}
	Status struct {
		Conditions                               []corev1.PodCondition
		NominatedNodeName                        string
		Resources                                *corev1.ResourceRequirements
		AllocatedResources                       corev1.ResourceList
		ContainerStatuses, InitContainerStatuses []statusFields
	}
}

type containerFields struct {
	Name          string
	Resources     corev1.ResourceRequirements
	RestartPolicy *corev1.ContainerRestartPolicy
}

type statusFields struct {
	Name               string
	Resources          *corev1.ResourceRequirements
	AllocatedResources corev1.ResourceList
}

// decode reads the pod and the names of nodes from an extenderv1.ExtenderArgs with at most maxNames names.
// The error is errNodes or errNoPod for valid JSON that lacks one of the two.
func decode(body []byte, maxNames int) (*corev1.Pod, []string, error) {
	if values(body) > maxValues+maxNames {
		return nil, nil, errTooManyValues
	}
	var args filterArgs
	if err := json.Unmarshal(body, &args); err != nil {
		return nil, nil, fmt.Errorf("foresail: the request is not the JSON of ExtenderArgs: %w", err)
	}
	switch {
	case args.Pod == nil:
		return nil, nil, errNoPod
	case args.NodeNames == nil:
		return nil, nil, errNodes
	case len(*args.NodeNames) > maxNames:
		return nil, nil, fmt.Errorf(
			"foresail: the request names %d nodes: want %d or fewer, twice the nodes of the cluster and 1000",
			len(*args.NodeNames), maxNames)
	}
	for _, name := range *args.NodeNames {
		if len(name) > maxNameBytes {
			return nil, nil, errTooLong("the name of a node", len(name), maxNameBytes)
		}
	}
	if err := args.Pod.check(); err != nil {
		return nil, nil, err
	}
	return args.Pod.pod(), *args.NodeNames, nil
}

// values counts the JSON values in b, or somewhat more. It reads no further than the quotes of strings.
func values(b []byte) int {
	count, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '{' || c == '['):
			count++
		}
	}
	return count
}

// check rejects what no pod of a cluster can have.
func (p *podFields) check() error {
	switch n := len(p.Spec.Containers) + len(p.Spec.InitContainers); {
	case len(p.Metadata.Name) > maxNameBytes:
		return errTooLong("the name of the Pod", len(p.Metadata.Name), maxNameBytes)
	case len(p.Metadata.Namespace) > maxNameBytes:
		return errTooLong("the namespace of the Pod", len(p.Metadata.Namespace), maxNameBytes)
	case len(p.Metadata.UID) > maxUIDBytes:
		return errTooLong("the UID of the Pod", len(p.Metadata.UID), maxUIDBytes)
	case n > maxContainers:
		return fmt.Errorf("foresail: the Pod has %d containers: want %d or fewer", n, maxContainers)
	}
	return nil
}

func errTooLong(what string, is, most int) error {
	return fmt.Errorf("foresail: %s has %d bytes: want %d or fewer", what, is, most)
}

// pod returns a Pod with these fields.
func (p *podFields) pod() *corev1.Pod {
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Metadata.Name, Namespace: p.Metadata.Namespace, UID: p.Metadata.UID, Labels: p.Metadata.Labels,
			CreationTimestamp: p.Metadata.CreationTimestamp, OwnerReferences: p.Metadata.OwnerReferences,
		},
		Spec: corev1.PodSpec{
			Containers: containersOf(p.Spec.Containers), InitContainers: containersOf(p.Spec.InitContainers),
			Resources: p.Spec.Resources, Overhead: p.Spec.Overhead, Priority: p.Spec.Priority,
			PreemptionPolicy: p.Spec.PreemptionPolicy,
			NodeSelector:     p.Spec.NodeSelector, Tolerations: p.Spec.Tolerations,
		},
		Status: corev1.PodStatus{
			Conditions: p.Status.Conditions, NominatedNodeName: p.Status.NominatedNodeName,
			Resources: p.Status.Resources, AllocatedResources: p.Status.AllocatedResources,
			ContainerStatuses:     statusesOf(p.Status.ContainerStatuses),
			InitContainerStatuses: statusesOf(p.Status.InitContainerStatuses),
		},
	}
	if p.Spec.Affinity != nil {
		out.Spec.Affinity = &corev1.Affinity{NodeAffinity: p.Spec.Affinity.NodeAffinity}
	}
	return out
}

func containersOf(fields []containerFields) []corev1.Container {
	out := make([]corev1.Container, len(fields))
	for i, c := range fields {
		out[i] = corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	return out
}

func statusesOf(fields []statusFields) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, len(fields))
	for i, c := range fields {
		out[i] = corev1.ContainerStatus{Name: c.Name, Resources: c.Resources, AllocatedResources: c.AllocatedResources}
	}
	return out
}

// maxScore is the best score of a node; the scheduler multiplies scores by the weight of the extender, and by ten.
const maxScore = extenderv1.MaxExtenderPriority

// messageOf returns the reason that the scheduler shows for a filtered node. It is the same for all nodes of a
// reason, since events are aggregated by text. A WorkerPool takes FilteredForLoad to hold for every node.
func messageOf(r outcome, found reason) string {
	switch {
	case found == removing:
		return v1alpha1.FilteredForRemoval
	case r == waits:
		return v1alpha1.FilteredForLoad
	}
	return v1alpha1.FilteredElsewhere
}

// filterResult lists every node of a request, as one that passed or as one that was filtered. Nodes are filtered as
// unresolvable, so that the scheduler does not preempt pods on them.
func filterResult(verdicts []verdict, r outcome) *extenderv1.ExtenderFilterResult {
	passed, filtered := make([]string, 0, len(verdicts)), extenderv1.FailedNodesMap{}
	for i := range verdicts {
		if v := &verdicts[i]; r.filters(v) {
			filtered[v.name] = messageOf(r, v.reason)
		} else {
			passed = append(passed, v.name)
		}
	}
	return &extenderv1.ExtenderFilterResult{NodeNames: &passed, FailedAndUnresolvableNodes: filtered}
}

// scores returns a score for every node of a request.
func scores(verdicts []verdict) extenderv1.HostPriorityList {
	out := make(extenderv1.HostPriorityList, len(verdicts))
	for i := range verdicts {
		out[i] = extenderv1.HostPriority{Host: verdicts[i].name, Score: int64(verdicts[i].score)}
	}
	return out
}
