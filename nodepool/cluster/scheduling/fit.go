package scheduling

import (
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// obstacle is the reason why a pod cannot run on a node. The higher its rank, the less is missing.
type obstacle struct {
	rank int
	why  string
}

const whyVolumes = "it uses more volumes than can be attached to a new node of the pool"

// obstacleOn returns why the pods of a group cannot run on a node: its labels, its taints, or the
// places of their volumes.
func obstacleOn(node *corev1.Node, g *group) *obstacle {
	if o := podObstacleOn(node, g.pod, g.affinity); o != nil {
		return o
	}
	for _, v := range g.volumes {
		if ok, err := v.Match(node); !ok || err != nil {
			return &obstacle{3, "its volumes are where no new node of the pool can be"}
		}
	}
	return nil
}

// podObstacleOn returns why the labels or taints of a node exclude a pod, nil if they do not.
func podObstacleOn(node *corev1.Node, pod *corev1.Pod, affinity nodeaffinity.RequiredNodeAffinity) *obstacle {
	if ok, err := affinity.Match(node); !ok || err != nil {
		return &obstacle{1, "its node selector or node affinity requires labels that no new node of the pool has"}
	}
	if taint := untolerated(pod, node); taint != nil {
		return &obstacle{2, "it does not tolerate the taint " + taint.Key + " of the pool's nodes"}
	}
	return nil
}

// untolerated returns a taint of a node that excludes a pod, nil for none.
func untolerated(pod *corev1.Pod, node *corev1.Node) *corev1.Taint {
	taint, found := schedulingv1.FindMatchingUntoleratedTaint(
		logr.Discard(), node.Spec.Taints, pod.Spec.Tolerations, repels, false)
	if !found {
		return nil
	}
	return &taint
}

func repels(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// obstacleIn returns what a request lacks in the free amounts of a new node, nil for nothing.
func obstacleIn(free, request vector, d dimensions) *obstacle {
	for i, r := range request {
		if r > free[i] && strings.HasPrefix(string(d.name(i)), attachable) {
			return &obstacle{5, whyVolumes}
		}
		if r > free[i] {
			return &obstacle{5, "it requests more " + string(d.name(i)) + " than a new node of the pool has"}
		}
	}
	return nil
}

// conflict reports whether two sets of host ports cannot be used on one node.
func conflict(a, b []corev1.ContainerPort) bool {
	for _, x := range a {
		for _, y := range b {
			sameIP := anyIP(x) || anyIP(y) || x.HostIP == y.HostIP
			if x.HostPort == y.HostPort && protocol(x) == protocol(y) && sameIP {
				return true
			}
		}
	}
	return false
}

func protocol(p corev1.ContainerPort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}

func anyIP(p corev1.ContainerPort) bool { return p.HostIP == "" || p.HostIP == "0.0.0.0" }
