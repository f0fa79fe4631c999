package hpa

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

// target is one that an HPA sets the replicas of, all of them ready at once.
type target struct {
	t        *testing.T
	hpa      *Autoscaler
	now      int64
	replicas int
}

func newTarget(t *testing.T, replicas, lowest, highest int, b *autoscalingv2.HorizontalPodAutoscalerBehavior) *target {
	t.Helper()
	a, err := New(lowest, highest, b, DefaultFlags())
	require.NoError(t, err)
	return &target{t: t, hpa: a, replicas: replicas}
}

// want looks after some seconds, with a metric that asks for so many replicas.
func (x *target) want(after int64, replicas int) int {
	x.t.Helper()
	x.now += after * 1000
	s := found(x.replicas, x.replicas, x.replicas)
	s.Now = x.now
	var err error
	x.replicas, err = x.hpa.Sync(s, External{Total: int64(replicas) * 1000, Target: 1000, Average: true})
	require.NoError(x.t, err)
	return x.replicas
}

func TestWithoutBehavior(t *testing.T) {
	x := newTarget(t, 1, 1, 30, nil)
	assert.Equal(t, 4, x.want(15, 30), "to 4")
	assert.Equal(t, 8, x.want(15, 30), "to twice as many")
	assert.Equal(t, 16, x.want(15, 30))
	assert.Equal(t, 30, x.want(15, 90), "to the maximum")
	for range 20 {
		assert.Equal(t, 30, x.want(15, 2), "five minutes long the highest counts, the bounds of the window included")
	}
	assert.Equal(t, 2, x.want(15, 2), "then all goes at once")
	assert.Equal(t, 1, x.want(315, 0), "not below the minimum")
}

func TestDefaultsOfABehavior(t *testing.T) {
	x := newTarget(t, 1, 1, 100, &autoscalingv2.HorizontalPodAutoscalerBehavior{})
	assert.Equal(t, 5, x.want(15, 100), "4 pods or as many as there are, whichever is more")
	assert.Equal(t, 10, x.want(15, 100))
	assert.Equal(t, 10, x.want(5, 100), "in 15 s")
	assert.Equal(t, 20, x.want(10, 100))
	assert.Equal(t, 20, x.want(270, 3))
	assert.Equal(t, 3, x.want(30, 3), "the window is five minutes")
}

// The example of "Scaling policies" in the documentation: 4 pods or 10% in a minute, whichever is more.
func TestPoliciesOfTheDocumentation(t *testing.T) {
	x := newTarget(t, 80, 1, 100,
		&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
			StabilizationWindowSeconds: new(int32),
			Policies: []autoscalingv2.HPAScalingPolicy{
				{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 60},
				{Type: autoscalingv2.PercentScalingPolicy, Value: 10, PeriodSeconds: 60},
			},
		}})
	assert.Equal(t, 72, x.want(60, 10), "10% of 80")
	assert.Equal(t, 72, x.want(30, 10), "not twice in a minute")
	assert.Equal(t, 64, x.want(30, 10), "10% of 72 are 7.2, rounded up to 8")
	for x.replicas > 40 {
		x.want(60, 10)
	}
	before := x.replicas
	assert.Equal(t, before-4, x.want(60, 10), "4 pods are more than 10% of less than 40")
}

func TestSelectPolicy(t *testing.T) {
	for choice, want := range map[autoscalingv2.ScalingPolicySelect]int{
		autoscalingv2.MaxChangePolicySelect:   20,
		autoscalingv2.MinChangePolicySelect:   12,
		autoscalingv2.DisabledPolicySelect:    10,
		autoscalingv2.ScalingPolicySelect(""): 20,
	} {
		rules := &autoscalingv2.HPAScalingRules{Policies: []autoscalingv2.HPAScalingPolicy{
			{Type: autoscalingv2.PodsScalingPolicy, Value: 2, PeriodSeconds: 60},
			{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 60},
		}}
		if choice != "" {
			rules.SelectPolicy = &choice
		}
		x := newTarget(t, 10, 1, 100, &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules})
		assert.Equal(t, want, x.want(15, 100), "%q", choice)
	}
}

func TestWindowUpwards(t *testing.T) {
	window := int32(60)
	x := newTarget(t, 5, 1, 100, &autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &window},
	})
	assert.Equal(t, 5, x.want(15, 5))
	assert.Equal(t, 5, x.want(15, 9))
	assert.Equal(t, 5, x.want(15, 8))
	assert.Equal(t, 5, x.want(15, 9))
	assert.Equal(t, 8, x.want(15, 9), "the least that was desired in a minute")
}

// A fall that no policy of scale-down looks back to any more is forgotten with the next one, though
// a policy of scale-up counts with it: so the controller does it.
func TestForgetsChangesByTheirOwnDirection(t *testing.T) {
	x := newTarget(t, 20, 1, 100, &autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleUp: &autoscalingv2.HPAScalingRules{
			Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1,
				PeriodSeconds: 100}},
		},
		ScaleDown: &autoscalingv2.HPAScalingRules{
			StabilizationWindowSeconds: new(int32),
			Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy,
				Value: 5, PeriodSeconds: 10}},
		},
	})
	x.want(15, 10)
	x.want(15, 10)
	assert.Equal(t, 10, x.replicas)
	assert.Equal(t, 16, x.want(15, 50), "10 and the 5 that went last, and one more")
}

func TestToleranceOfABehavior(t *testing.T) {
	none := resource.MustParse("0")
	x := newTarget(t, 10, 1, 100,
		&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{Tolerance: &none}})
	assert.Equal(t, 11, x.want(15, 11))
	x = newTarget(t, 10, 1, 100, nil)
	assert.Equal(t, 10, x.want(15, 11))
}

func TestSeveralMetrics(t *testing.T) {
	average := func(n int) External { return External{Total: int64(n) * 1000, Target: 1000, Average: true} }
	fails := External{Err: errors.New("no answer")}
	for _, c := range []struct {
		rule    string
		metrics []Metric
		want    int
		fails   bool
	}{
		{"the largest wins", []Metric{average(4), average(15), average(12)}, 15, false},
		{"one that fails does not stop scale-up", []Metric{fails, average(15)}, 15, true},
		{"one that fails stops scale-down", []Metric{average(4), fails}, 10, true},
		{"all failing change nothing", []Metric{fails, fails}, 10, true},
		{"none changes nothing", nil, 10, true},
	} {
		a, err := New(1, 100, &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32)},
		}, DefaultFlags())
		require.NoError(t, err)
		got, err := a.Sync(found(10, 10, 10), c.metrics...)
		assert.Equal(t, c.want, got, c.rule)
		assert.Equal(t, c.fails, err != nil, c.rule)
	}
}

func TestReplicasBeyondTheLimits(t *testing.T) {
	for _, c := range []struct{ spec, want int }{{0, 0}, {1, 3}, {25, 20}} {
		a, err := New(3, 20, nil, DefaultFlags())
		require.NoError(t, err)
		got, err := a.Sync(found(c.spec, c.spec, c.spec), External{Err: errors.New("not asked")})
		require.NoError(t, err, "metrics do not matter")
		assert.Equal(t, c.want, got)
	}
}

func TestRejectsLimits(t *testing.T) {
	_, err := New(0, 5, nil, DefaultFlags())
	assert.EqualError(t, err, "minReplicas: 0: must be at least 1")
	_, err = New(6, 5, nil, DefaultFlags())
	assert.ErrorContains(t, err, "maxReplicas: 5: must be at least minReplicas (6)")
}
