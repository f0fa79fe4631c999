package hpacontroller

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	scenariosDrawn = 600
	looksDrawn     = 30
)

// drawing draws scenarios. Amounts are small, so that rare cases happen often: ratios on the edge of a
// tolerance, changes on the edge of a period, pods that are few.
type drawing struct{ *rand.Rand }

func draw(seed uint64) []scenario {
	d := drawing{rand.New(rand.NewPCG(seed, 0))}
	out := make([]scenario, scenariosDrawn)
	for i := range out {
		out[i] = d.scenario()
	}
	return out
}

func (d drawing) chance(p float64) bool { return d.Float64() < p }

// between draws from a range, the bounds included.
func (d drawing) between(low, high int) int { return low + d.IntN(high-low+1) }

func oneOf[T any](d drawing, of ...T) T { return of[d.IntN(len(of))] }

func (d drawing) scenario() scenario {
	s := scenario{
		Min: d.between(1, 6), Period: int64(oneOf(d, 15_000, 15_000, 10_000, 7_300)), Tolerance: oneOf(d, 0.1, 0.1, 0,
			0.25),
		Downscale: int64(oneOf(d, 300_000, 60_000, 0)), CPUInit: int64(oneOf(d, 300_000,
			60_000)), InitialRead: int64(oneOf(d, 30_000, 10_000)),
	}
	s.Max = s.Min + d.between(3, 40)
	s.Replicas = d.between(s.Min, s.Max)
	if d.chance(0.7) {
		s.Behavior = d.behavior()
	}
	kinds := d.kinds()
	level := d.between(1, 30)
	for i := range looksDrawn {
		if d.chance(0.3) {
			level = max(0, level+d.between(-8, 8))
		}
		s.Looks = append(s.Looks, d.look(kinds, level, int64(i+1)*s.Period, s.Max))
	}
	return s
}

// kinds draws which metrics an HPA has, and their targets; CPU is one of them at most once.
func (d drawing) kinds() []metric {
	var out []metric
	for range oneOf(d, 1, 1, 1, 2, 3) {
		m := metric{Kind: oneOf(d, value, average), Target: int64(oneOf(d, 700, 1000, 100, 333))}
		out = append(out, m)
	}
	if d.chance(0.5) {
		out[0] = metric{Kind: utilization, Target: int64(oneOf(d, 70, 50, 100, 130))}
	}
	return out
}

func (d drawing) look(kinds []metric, level int, now int64, most int) look {
	var l look
	l.Status = max(1, level+d.between(-2, 2))
	if d.chance(0.05) {
		set := oneOf(d, 0, 1, d.between(1, most), most, most+5)
		l.Set = &set
	}
	for range d.between(0, 1) + d.between(0, level) {
		l.Pods = append(l.Pods, d.pod(now))
	}
	for _, m := range kinds {
		m.Fails = d.chance(0.05)
		m.Items = d.items(m, level, len(l.Pods))
		l.Metrics = append(l.Metrics, m)
	}
	return l
}

// items are about what pods of a level carry, on the edge of a tolerance at times.
func (d drawing) items(m metric, level, pods int) []int64 {
	share := oneOf(d, 0.9, 0.899, 1, 1.1, 1.101, 1.25, 0.75, 0.5+d.Float64())
	carried := float64(m.Target) * share
	if m.Kind == average {
		carried *= float64(level)
	}
	if pods > 0 && d.chance(0.1) {
		return []int64{int64(carried), int64(d.IntN(500))}
	}
	return []int64{int64(carried)}
}

func (d drawing) pod(now int64) pod {
	ago := func(most int) int64 { return now - int64(d.IntN(most)) }
	request, started := int64(oneOf(d, 1000, 1000, 500, 333)), ago(oneOf(d, 60_000, 400_000))
	p := pod{Phase: corev1.PodRunning, Ready: corev1.ConditionTrue, Request: &request, Started: &started}
	p.Changed = started + d.Int64N(now-started+1)
	switch {
	case d.chance(0.05):
		p.Phase = oneOf(d, corev1.PodPending, corev1.PodFailed, corev1.PodSucceeded, corev1.PodUnknown)
	case d.chance(0.05):
		p.Terminating = true
	case d.chance(0.1):
		p.Ready = oneOf(d, corev1.ConditionFalse, corev1.ConditionFalse, corev1.ConditionUnknown, "")
	case d.chance(0.01):
		p.Started = nil
	case d.chance(0.002):
		p.Request = nil
	}
	if d.chance(0.95) {
		p.Usage = &usage{Value: int64(float64(request) * d.Float64() * 1.5), T: ago(20_000), Window: 10_000}
	}
	return p
}

func (d drawing) behavior() *autoscalingv2.HorizontalPodAutoscalerBehavior {
	b := &autoscalingv2.HorizontalPodAutoscalerBehavior{}
	if d.chance(0.8) {
		b.ScaleUp = d.rules()
	}
	if d.chance(0.8) {
		b.ScaleDown = d.rules()
	}
	return b
}

// rules are often so wide that what the metrics ask for is what is set.
func (d drawing) rules() *autoscalingv2.HPAScalingRules {
	r := &autoscalingv2.HPAScalingRules{}
	if d.chance(0.8) {
		window := int32(oneOf(d, 0, 0, 15, 30, 60, 300))
		r.StabilizationWindowSeconds = &window
	}
	if d.chance(0.4) {
		tolerance := resource.MustParse(oneOf(d, "0", "0.05", "0.25"))
		r.Tolerance = &tolerance
	}
	if d.chance(0.3) {
		choice := oneOf(d, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect,
			autoscalingv2.DisabledPolicySelect)
		r.SelectPolicy = &choice
	}
	switch {
	case d.chance(0.4):
		r.Policies = []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1000,
			PeriodSeconds: 1}}
	case d.chance(0.6):
		for range d.between(1, 3) {
			p := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: int32(d.between(1, 5)),
				PeriodSeconds: int32(oneOf(d, 15, 30, 60, 100))}
			if d.chance(0.5) {
				p.Type, p.Value = autoscalingv2.PercentScalingPolicy, int32(oneOf(d, 10, 33, 50, 100))
			}
			r.Policies = append(r.Policies, p)
		}
	}
	return r
}

// assertVaried keeps the scenarios from being such that nothing happens in them.
func assertVaried(t *testing.T, scenarios []scenario, answers [][]int) {
	t.Helper()
	up, down, held := map[string]int{}, map[string]int{}, map[string]int{}
	for i, s := range scenarios {
		before := s.Replicas
		for j, after := range answers[i] {
			if set := s.Looks[j].Set; set != nil {
				before = *set
			}
			kind := "several"
			if metrics := s.Looks[j].Metrics; len(metrics) == 1 {
				kind = metrics[0].Kind
			}
			switch {
			case after > before:
				up[kind]++
			case after < before:
				down[kind]++
			default:
				held[kind]++
			}
			before = after
		}
	}
	for _, kind := range []string{utilization, value, average, "several"} {
		for what, counts := range map[string]map[string]int{"scaled up": up, "scaled down": down, "held": held} {
			assert.Greater(t, counts[kind], 30, "%s by %s", what, kind)
		}
	}
	t.Log("up", up, "down", down, "held", held)
}
