//go:build long

package browser

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes/fake"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/adapter/scheduler/extender/podview"
	"github.com/foresail/foresail/adapter/serving/servingtest"
)

// unbound is a cluster in which 12 pods have no node.
func unbound() *podview.Unbound {
	var pods []runtime.Object
	for i := range 12 {
		pod := podOf(fmt.Sprintf("web-%d", i), "")
		pod.CreationTimestamp, pod.Status.Phase = ago(time.Duration(i+1)*time.Minute), corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Message: "0/300 nodes are available: 300 Insufficient memory <b>."}}
		pods = append(pods, pod)
	}
	return &podview.Unbound{Cluster: clientset.NewClientset(pods...), Now: func() time.Time { return servingtest.Now }}
}

// explainPod answers about shop/checkout-7d9c5, which was scheduled, and about shop/web-11, which
// was not. The extender has not been asked about others.
func explainPod(_ context.Context, pod types.NamespacedName) podview.View {
	e, err := podview.New(pod, servingtest.Now)
	if err != nil {
		return podview.ViewOf(e, err)
	}
	switch pod.String() {
	case "shop/checkout-7d9c5":
		scheduled := ago(5 * time.Minute)
		e.Pod = &podview.State{UID: "1", Scheduler: "default-scheduler", Node: nodeName(2), Scheduled: &scheduled}
		e.Take("foresail-extender-x8f2p", decided(24, 40))
		e.Miss("foresail-extender-k4d9w",
			errors.New("ask the pod foresail-system/foresail-extender-k4d9w: dial tcp 10.0.7.9:8081: i/o timeout"))
	case "shop/web-11":
		e.Pod = &podview.State{UID: "1", Scheduler: "default-scheduler"}
		answer := decided(0, 1800)
		answer.Prioritize, answer.Filter.WaitsFor, answer.Filter.Nodes[0].Message = nil, "workers", "filtered <b>&amp;"
		e.Take("foresail-extender-x8f2p", answer)
	default:
		e.PodError = "there is no such pod now"
		e.Take("foresail-extender-x8f2p", extender.Explanation{})
	}
	return podview.ViewOf(e, e.Unanswered())
}

func nodeName(i int) string {
	return fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i/250, i%250)
}

// decided are the decisions of five minutes ago on a pod, of which the third node got the best score.
func decided(scored, filtered int) extender.Explanation {
	const gib = 1 << 30
	about := extender.Decision{
		At: servingtest.Now.Add(-5 * time.Minute), UID: "1",
		Requests: extender.Amounts{CPU: 0.25, Memory: gib / 4}, Estimate: extender.Amounts{CPU: 0.3, Memory: gib / 4},
	}
	e := extender.Explanation{Filter: &extender.FilterDecision{Decision: about, Passed: scored, Filtered: filtered},
		Prioritize: &extender.ScoreDecision{Decision: about}}
	e.Filter.Message = fmt.Sprintf("%d of %d nodes are filtered.", filtered, scored+filtered)
	e.Prioritize.Message = fmt.Sprintf("%d nodes are scored: fuller is better up to 65%%, emptier is better above.",
		scored)
	for i := range scored {
		predicted := 0.6 + 0.1*float64(i)
		node := extender.ScoredNode{
			Name: nodeName(i), Score: max(0,
				8-i), Used: (predicted + 0.5) / 4, Warmth: 1, Message: fmt.Sprintf("%.0f%% used with this pod",
				25*(predicted+0.5)),
			CPU: &extender.Share{Predicted: &predicted, Assumed: 0.25, Pod: 0.25,
				Allocatable: 4}, Memory: &extender.Share{Requested: gib, Pod: gib / 4, Allocatable: 8 * gib},
		}
		if i == 2 {
			node.Score = 9
		}
		e.Prioritize.Nodes = append(e.Prioritize.Nodes, node)
		e.Filter.Nodes = append(e.Filter.Nodes,
			extender.FilterNode{Name: node.Name, Reason: "fits", Message: "passed", CPU: node.CPU, Memory: node.Memory})
	}
	for i := range filtered {
		node := extender.FilterNode{
			Name: nodeName(scored + i), Filtered: true, Reason: "memory",
			Memory: &extender.Share{Predicted: new(6.9 * gib), Upper: new(7.1 * gib), Pod: gib / 4,
				Allocatable: 8 * gib},
			Message: "memory up to 7270Mi predicted, 300Mi of assumed pods and 256Mi of this one would exceed 95% of 8Gi: filtered",
		}
		if i%10 == 0 {
			node.Reason, node.Message = "removing", "filtered: it is being removed (workers)"
		}
		e.Filter.Nodes = append(e.Filter.Nodes, node)
	}
	return e
}
