package workload

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// AppLabel names the application of a pod.
const AppLabel = "app"

// Shares has the ready pods of applications carry known loads, in equal parts and exactly. They
// take the place of requests, which a busy machine delays and then delivers at once: a rise that is
// real. The zero value has none. It is safe for concurrent use.
type Shares struct {
	mu   sync.Mutex
	apps map[application]*carriers
	of   map[cache.ObjectName]application // of pods
}

type application struct{ namespace, name string }

// carriers are the ready pods of an application, now and over the last second, oldest first. They
// never change once they are there.
type carriers struct {
	load func() float64 // nil: its pods serve requests
	past []carrying
}

// carrying is the pods that were ready from a time on.
type carrying struct {
	from time.Time
	pods map[cache.ObjectName]bool
}

// Set gives an application a load, in units of utilization of all its pods together. nil: its pods
// serve requests again.
func (s *Shares) Set(namespace, app string, load func() float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app(application{namespace, app}).load = load
}

func (s *Shares) app(name application) *carriers {
	if s.apps == nil {
		s.apps, s.of = map[application]*carriers{}, map[cache.ObjectName]application{}
	}
	c := s.apps[name]
	if c == nil {
		c = &carriers{past: []carrying{{}}}
		s.apps[name] = c
	}
	return c
}

// follow notes whether a pod is ready.
func (s *Shares) follow(pod *corev1.Pod) {
	name := cache.MetaObjectToName(pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.app(application{pod.Namespace, pod.Labels[AppLabel]})
	s.of[name] = application{pod.Namespace, pod.Labels[AppLabel]}
	c.set(name, Ready(pod), time.Now())
}

func (s *Shares) forget(pod cache.ObjectName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if app, ok := s.of[pod]; ok {
		s.app(app).set(pod, false, time.Now())
		delete(s.of, pod)
	}
}

func (c *carriers) set(pod cache.ObjectName, ready bool, now time.Time) {
	newest := c.past[len(c.past)-1].pods
	if newest[pod] == ready {
		return
	}
	pods := map[cache.ObjectName]bool{}
	maps.Copy(pods, newest)
	if pods[pod] = true; !ready {
		delete(pods, pod)
	}
	c.past = append(c.past, carrying{now, pods})
	for len(c.past) > 1 && now.Sub(c.past[1].from) > utilizationWindow {
		c.past = c.past[1:]
	}
}

// share returns for what share of the last second a pod was busy, and false if its application has
// no load of its own.
func (s *Shares) share(pod cache.ObjectName, app string, now time.Time) (share float64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.app(application{pod.Namespace, app})
	if c.load == nil {
		return 0, false
	}
	load, end := c.load(), now
	for _, x := range slices.Backward(c.past) {
		from := x.from
		if earliest := now.Add(-utilizationWindow); from.Before(earliest) {
			from = earliest
		}
		if !from.Before(end) {
			continue // it was before the last second, or no time at all
		}
		if x.pods[pod] {
			share += min(1, load/float64(len(x.pods))) * float64(end.Sub(from)) / float64(utilizationWindow)
		}
		end = from
	}
	return share, true
}

// usage replaces the utilization of a pod by its share, and the time for which it has been busy by
// the sum of that. Requests that it serves meanwhile count for neither.
func (s *Shares) usage(pod *corev1.Pod, of func() Usage) func() Usage {
	name, app := cache.MetaObjectToName(pod), pod.Labels[AppLabel]
	var mu sync.Mutex
	var busy, served time.Duration
	before := time.Now()
	return func() Usage {
		mu.Lock()
		defer mu.Unlock()
		u, now := of(), time.Now()
		if share, ok := s.share(name, app, now); ok {
			u.Utilization = share
			busy += time.Duration(share * float64(now.Sub(before)))
		} else {
			busy += u.Busy - served
		}
		before, served = now, u.Busy
		u.Busy = busy
		return u
	}
}

// Ready returns whether a pod gets requests.
func Ready(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || pod.Status.PodIP == "" {
		return false
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
