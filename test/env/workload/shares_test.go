package workload

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestSharesAreThoseOfReadyPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Shares{}
		pod := func(name, app string, ready corev1.ConditionStatus) *corev1.Pod {
			return &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{AppLabel: app}},
				Status: corev1.PodStatus{
					Phase: corev1.PodRunning, PodIP: "127.0.0.1",
					Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
				},
			}
		}
		share := func(name, app string) float64 {
			share, ok := s.share(cache.ObjectName{Namespace: "shop", Name: name}, app, time.Now())
			assert.True(t, ok)
			return share
		}
		s.follow(pod("a", "web", corev1.ConditionTrue))
		pass(time.Second)
		_, ok := s.share(cache.ObjectName{Namespace: "shop", Name: "a"}, "web", time.Now())
		assert.False(t, ok, "it serves requests")

		s.Set("shop", "web", func() float64 { return 1.5 })
		assert.InDelta(t, 1.0, share("a", "web"), 0, "a pod is busy all of its time at most")
		s.follow(pod("b", "web", corev1.ConditionTrue))
		s.follow(pod("c", "web", corev1.ConditionFalse))
		s.follow(pod("d", "other", corev1.ConditionTrue))
		pass(400 * time.Millisecond)
		assert.InDelta(t, 0.9, share("a", "web"), 1e-9, "0.6 s alone, 0.4 s of them with the other")
		assert.InDelta(t, 0.3, share("b", "web"), 1e-9)
		pass(600 * time.Millisecond)
		assert.InDelta(t, 0.75, share("a", "web"), 1e-9)
		assert.InDelta(t, 0.75, share("b", "web"), 1e-9)
		assert.Zero(t, share("c", "web"), "it is not ready")

		s.follow(pod("b", "web", corev1.ConditionFalse))
		s.follow(pod("c", "web", corev1.ConditionTrue))
		s.forget(cache.ObjectName{Namespace: "shop", Name: "a"})
		pass(time.Second)
		assert.InDelta(t, 1.0, share("c", "web"), 1e-9)
		assert.Zero(t, share("b", "web"))

		u := s.usage(pod("c", "web", corev1.ConditionTrue), func() Usage { return Usage{Utilization: 0.1, Length: 7} })
		assert.InDelta(t, 1.0, u().Utilization, 1e-9)
		assert.Equal(t, 7, u().Length)
		pass(2 * time.Second)
		assert.Equal(t, 2*time.Second, u().Busy)
		s.Set("shop", "web", nil)
		assert.InDelta(t, 0.1, u().Utilization, 0)
	})
}
