package scaler

import (
	"errors"
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/scaler/hpa"
)

const (
	hpaPeriod = 15 * time.Second // --horizontal-pod-autoscaler-sync-period

	// cpuPerBusy is the CPU that a process uses beside the time that its event loop is busy.
	cpuPerBusy = 1.03
	// cpuRequest is what each pod requests, in milli-units: the one core that an event loop can use.
	cpuRequest = 1000
	// containerStart is how long a new pod is Pending.
	containerStart = 2 * time.Second
)

// autoscaled has an HPA set the replicas, each 15 s.
type autoscaled struct {
	clock
	hpa     *hpa.Autoscaler
	metrics func(*lab.View) []hpa.Metric
	pods    func(*lab.View) []hpa.Pod
}

// Decide implements lab.Scaler. An HPA whose metrics cannot be read leaves the replicas as they are.
func (a *autoscaled) Decide(v *lab.View) int {
	a.tick()
	pods := a.pods(v)
	n, _ := a.hpa.Sync(hpa.State{Now: v.Now, Spec: v.Target, Status: len(pods), Pods: pods}, a.metrics(v)...)
	return n
}

// newKEDA returns an HPA on the utilisation that Prometheus has of the pods that are ready: a
// trigger of KEDA whose target is an AverageValue.
func newKEDA(s Setup, behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) (lab.Scaler, error) {
	h, err := hpa.New(s.Min, s.Max, behavior, hpa.DefaultFlags())
	metrics := func(v *lab.View) []hpa.Metric {
		sum, seen := 0.0, false
		for _, p := range running(v) {
			if value, _, ok := latest(s.Sources.KEDA, p, p.Ready, v.Now); ok {
				sum, seen = sum+value, true
			}
		}
		m := hpa.External{Total: milli(sum), Target: milli(s.Threshold), Average: true}
		if !seen {
			m.Err = errors.New("no pod has been scraped")
		}
		return []hpa.Metric{m}
	}
	return &autoscaled{clock: newClock(s.Seed, "the HPA", hpaPeriod), hpa: h, metrics: metrics, pods: podsOf}, err
}

// newCPU returns an HPA on CPU utilisation.
func newCPU(s Setup, behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) (lab.Scaler, error) {
	h, err := hpa.New(s.Min, s.Max, behavior, hpa.DefaultFlags())
	target := int(math.Round(s.Threshold * 100))
	return &autoscaled{
		clock: newClock(s.Seed, "the HPA", hpaPeriod), hpa: h,
		metrics: func(*lab.View) []hpa.Metric { return []hpa.Metric{hpa.Utilization{Target: target}} },
		pods:    func(v *lab.View) []hpa.Pod { return withUsage(podsOf(v), running(v), s.Sources, v.Now) },
	}, err
}

// podsOf returns the pods as the API server has them.
func podsOf(v *lab.View) []hpa.Pod {
	all := running(v)
	out := make([]hpa.Pod, len(all))
	for i, p := range all {
		started := p.Created + containerStart.Milliseconds()
		x := hpa.Pod{Phase: corev1.PodPending, Started: p.Created, Ready: corev1.ConditionFalse, Changed: p.Created,
			Request: cpuRequest}
		if p.IsReady(v.Now) {
			x.Phase, x.Ready, x.Changed = corev1.PodRunning, corev1.ConditionTrue, p.Ready
		} else if started <= v.Now {
			x.Phase = corev1.PodRunning
		}
		out[i] = x
	}
	return out
}

// withUsage adds what metrics-server has of each pod. What it has is from its last collection, and
// was sampled by the kubelet before that, from the start of the pod's container on.
func withUsage(pods []hpa.Pod, all []*lab.Pod, s Sources, now int64) []hpa.Pod {
	every, at := s.MetricsServer.Milliseconds(), s.MetricsServerPhase.Milliseconds()
	collected := lab.AtOrBefore(now, at, every)
	for i, p := range all {
		started := p.Created + containerStart.Milliseconds()
		if value, t, ok := latest(s.Kubelet, p, started, collected); ok {
			pods[i].Usage = &hpa.Usage{Value: milli(value * cpuPerBusy), T: t, Window: s.Kubelet.Window}
		}
	}
	return pods
}

// milli is a value in milli-units, rounded up as quantities are once the error of binary fractions
// has been taken away.
func milli(v float64) int64 { return int64(math.Ceil(v*1000 - 1e-6)) }
