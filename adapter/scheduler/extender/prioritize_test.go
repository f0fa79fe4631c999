package extender

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

func TestPack(t *testing.T) {
	for _, test := range []struct{ u, target, want float64 }{
		{0, 0.65, 0.65}, {0.325, 0.65, 0.825}, {0.65, 0.65, 1}, {0.825, 0.65, 0.325}, {1, 0.65, 0}, {1.2, 0.65, 0},
		{0, 0.5, 0.5}, {0.5, 0.5, 1}, {0.75, 0.5, 0.25},
	} {
		assert.InDelta(t, test.want, pack(test.u, test.target), 1e-12, "u=%v T=%v", test.u, test.target)
	}
}

// scoreOf scores one node, and returns the verdict.
func scoreOf(v *clusterSnapshot, rules Rules, pod *corev1.Pod, name string) verdict {
	q, out := evaluationOf(v, pod, rules, name)
	q.prioritize(out)
	return out[0]
}

// The pod requests 1 core and 2 GiB, of 4 cores and 16 GiB.
func TestScores(t *testing.T) {
	rules := DefaultRules()
	unpredicted := func(u use) *node {
		n := testNode("n", 9, 99)
		n.cpu, n.memory = snapshot.Use{}, snapshot.Use{}
		n.requested.add(u)
		return n
	}
	for name, test := range map[string]struct {
		node *node
		u    float64
		want int8
		gap  gap
	}{
		"empty: u 0.25":                 {testNode("n", 0, 0), 0.25, 8, noGap},    // 6.5 + 3.5*0.25/0.65 = 7.85
		"half: u 0.5":                   {testNode("n", 1, 1), 0.5, 9, noGap},     // 6.5 + 3.5*0.5/0.65 = 9.19
		"at the target: u 0.65":         {testNode("n", 1.6, 1), 0.65, 10, noGap}, // 10
		"beyond it: u 0.75":             {testNode("n", 2, 1), 0.75, 5, noGap},    // 6.5*0.25/0.35 = 4.64
		"full: u 1":                     {testNode("n", 3, 1), 1, 0, noGap},       // 0
		"overloaded: u 1.25":            {testNode("n", 4, 1), 1.25, 0, noGap},    // 0
		"memory, if it is more: u 0.75": {testNode("n", 0, 10), 0.75, 5, noGap},   // as above
		"requests alone: u 0.5":         {unpredicted(use{1000, gib}), 0.5, 9, gapPrediction},
		"requests of memory: u 0.75":    {unpredicted(use{0, 10 * gib}), 0.75, 5, gapPrediction},
		// 6.5 away from 0
		"nothing allocatable: u 0": {func() *node { n := testNode("n", 1, 1); n.allocatable = use{}; return n }(), 0, 7,
			gapAllocatable},
		"a half of it is known: u 0.5": {func() *node {
			n := testNode("n", 1, 99)
			n.memory = snapshot.Use{}
			return n
		}(), 0.5, 9, gapPrediction},
		"a candidate": {func() *node { n := testNode("n", 1, 1); n.candidate = "workers"; return n }(),
			0.5, 0, noGap},
		"one that is going": {func() *node { n := testNode("n", 1, 1); n.removing = "workers"; return n }(),
			0.5, 0, noGap},
		"what is not a number is nothing": {testNode("n", math.NaN(), 1), math.NaN(), 0, noGap},
		"the assumed counts beside: u 0.75": {func() *node {
			n := testNode("n", 1, 1)
			n.assumed.add(use{cpu: 1000})
			return n
		}(), 0.75, 5, noGap},
		"but not beside requests: u 0.5": {func() *node {
			n := unpredicted(use{1000, gib})
			n.assumed.add(use{cpu: 1000})
			return n
		}(), 0.5, 9, gapPrediction},
		"requests not beside a prediction": {func() *node {
			n := testNode("n", 1, 1)
			n.requested.add(use{cpu: 4000})
			return n
		}(), 0.5, 9, noGap},
		"a prediction that is stale: u 0.75": {func() *node {
			n := testNode("n", 0, 0)
			n.requested.add(use{cpu: 2000})
			n.cpu.Sampled = epoch.Add(-181 * time.Second)
			return n
		}(), 0.75, 5, gapStale},
	} {
		t.Run(name, func(t *testing.T) {
			got := scoreOf(testSnapshot(test.node), rules, testPod(), "n")
			if math.IsNaN(test.u) {
				assert.True(t, math.IsNaN(float64(got.used)))
			} else {
				assert.InDelta(t, test.u, got.used, 1e-6)
			}
			assert.Equal(t, test.want, got.score)
			assert.Equal(t, test.gap, got.gap)
			assert.Equal(t, float32(1), got.warmth)
		})
	}
}

func TestScoresByEstimateWithoutRequests(t *testing.T) {
	pod := testPod()
	pod.Spec.Containers[0].Resources.Requests = nil
	got := scoreOf(testSnapshot(testNode("n", 1, 1)), DefaultRules(), pod, "n")
	assert.InDelta(t, (1000+float64(podRequestOf(pod, nil).estimate.cpu))/4000, got.used, 1e-6)
	assert.Greater(t, got.used, float32(0.25))
}

// Of a node at u = 0.65 the score is 10*w.
func TestWarmUp(t *testing.T) {
	for name, test := range map[string]struct {
		created, ready time.Duration // before now
		notReady       bool
		warmUp         time.Duration
		want           int8
	}{
		"warm":                          {time.Hour, time.Hour, false, 180 * time.Second, 10},
		"just warm":                     {time.Hour, 180 * time.Second, false, 180 * time.Second, 10},
		"half":                          {time.Hour, 90 * time.Second, false, 180 * time.Second, 5},
		"just Ready":                    {time.Hour, 0, false, 180 * time.Second, 2},
		"Ready in the future":           {time.Hour, -time.Minute, false, 180 * time.Second, 2},
		"a fifth":                       {time.Hour, 36 * time.Second, false, 180 * time.Second, 2},
		"not Ready":                     {time.Hour, 0, true, 180 * time.Second, 2},
		"it came after the pod":         {0, 0, false, 180 * time.Second, 10},
		"it came with the pod":          {time.Second, 0, false, 180 * time.Second, 2},
		"nodes need no time to warm up": {time.Hour, 0, false, 0, 10},
	} {
		t.Run(name, func(t *testing.T) {
			n := testNode("n", 1.6, 1)
			n.created, n.readySince = epoch.Add(-test.created), epoch.Add(-test.ready)
			if test.notReady {
				n.readySince = time.Time{}
			}
			rules := DefaultRules()
			rules.WarmUp = test.warmUp
			assert.Equal(t, test.want, scoreOf(testSnapshot(n), rules, testPod(), "n").score)
		})
	}
}

func TestScoreOfAnUnknownNode(t *testing.T) {
	waited, newer := testPod(), testPod()
	newer.CreationTimestamp = metav1.NewTime(epoch)
	for _, test := range []struct {
		pod  *corev1.Pod
		want int8
	}{{waited, 7}, {newer, 1}} {
		got := scoreOf(testSnapshot(), DefaultRules(), test.pod, "n")
		assert.Equal(t, test.want, got.score)
		assert.Equal(t, gapNode, got.gap)
	}
}

func TestScoresWithoutASnapshot(t *testing.T) {
	old := testSnapshot(testNode("a", 0, 0), testNode("b", 1.6, 1))
	old.at = epoch.Add(-maxSnapshotAge - 1)
	for _, v := range []*clusterSnapshot{old, {}} {
		q, out := evaluationOf(v, testPod(), DefaultRules(), "a", "b", "c")
		q.prioritize(out)
		for _, got := range out {
			assert.Equal(t, out[0].score, got.score)
			assert.Equal(t, gapSnapshot, got.gap)
		}
		assert.Empty(t, q.best(out))
	}
}

func TestBestNode(t *testing.T) {
	best, alike, less, none := testNode("best", 1.6, 1), testNode("alike", 1.58, 1),
		testNode("less", 1, 1), testNode("none", 4, 1)
	twin := testNode("twin", 1.6, 1)
	v := testSnapshot(best, alike, less, none, twin)
	for name, test := range map[string]struct {
		names []string
		want  *node
	}{
		"the best":                        {[]string{"less", "best", "none"}, best},
		"one of two alike":                {[]string{"less", "alike", "none", "best", "stranger"}, best},
		"the first of two that are equal": {[]string{"less", "twin", "best"}, twin},
		"none of score 0":                 {[]string{"none"}, nil},
		"one of none":                     {nil, nil},
		"not a stranger":                  {[]string{"stranger"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			q, out := evaluationOf(v, testPod(), DefaultRules(), test.names...)
			q.prioritize(out)
			assert.Equal(t, test.want, q.best(out))
		})
	}
	full, gone := testNode("full", 1, 16), testNode("gone", 1, 1)
	gone.removing = "workers"
	v = testSnapshot(best, less, full, gone)
	for name, test := range map[string]struct {
		names []string
		want  *node
	}{
		"one is left":      {[]string{"full", "gone", "best"}, best},
		"two are":          {[]string{"full", "less", "gone", "best"}, nil},
		"none is":          {[]string{"gone"}, nil},
		"one that is full": {[]string{"full"}, full}, // it passed, as no pool can grow
		"with a stranger":  {[]string{"best", "stranger"}, nil},
		"a stranger is":    {[]string{"gone", "stranger"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			q, out := evaluationOf(v, testPod(), DefaultRules(), test.names...)
			r, _ := q.filter(out)
			assert.Equal(t, test.want, q.left(out, r))
		})
	}
}

// The fuller of two nodes is better up to the target, and the emptier beyond.
func FuzzScore(f *testing.F) {
	f.Add(1.0, 2.0, 0.65, int64(0), int64(90))
	f.Add(0.0, 5.0, 0.3, int64(-5), int64(0))
	f.Add(math.Inf(1), math.NaN(), 0.99, int64(math.MaxInt64), int64(-1))
	f.Fuzz(func(t *testing.T, a, b, target float64, assumed, ready int64) {
		if !(target > 0 && target < 1) {
			return
		}
		rules := DefaultRules()
		rules.Target = target
		one, two := testNode("one", a, 0), testNode("two", b, 0)
		for _, n := range []*node{one, two} {
			n.assumed.add(use{cpu: assumed})
			n.readySince = epoch.Add(-time.Duration(ready))
		}
		q, out := evaluationOf(testSnapshot(one, two), testPod(), rules, "one", "two")
		q.prioritize(out)
		for _, v := range out {
			assert.GreaterOrEqual(t, v.score, int8(0))
			assert.LessOrEqual(t, v.score, int8(10))
		}
		if u, w := float64(out[0].used), float64(out[1].used); 0 <= u && u < w && w <= target {
			assert.LessOrEqual(t, out[0].score, out[1].score)
		} else if target <= u && u < w {
			assert.GreaterOrEqual(t, out[0].score, out[1].score)
		}
	})
}
