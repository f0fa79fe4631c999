package podtracker

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/internal/objectcache"
)

// pod is the state of one pod.
type pod struct {
	key    types.NamespacedName
	status podStatus

	startup Startup       // its first readiness, if that was a start-up; zero otherwise
	started bool          // it has been Ready before
	targets []*TargetPods // those that it is, or has been, a member of
}

// update takes a new version of the pod, and how long it waited for its node.
func (p *pod) update(s podStatus, wait *Wait) {
	p.status = s
	if !s.active || p.started {
		return
	}
	p.started = true
	if !s.restarted && !s.created.IsZero() && !s.recordedReady.IsZero() {
		p.startup = Startup{Created: s.created, Ready: s.recordedReady}
		if wait != nil {
			p.startup.Scheduled = wait.Scheduled
		}
	}
}

// drop removes the pod from its targets, which it returns.
func (p *pod) drop(now time.Time) []*TargetPods {
	for _, f := range p.targets {
		f.drop(p, now)
	}
	return slices.Clone(p.targets)
}

func (p *pod) leave(f *TargetPods) {
	if i := slices.Index(p.targets, f); i >= 0 {
		p.targets = slices.Delete(p.targets, i, i+1)
	}
}

// podStatus is the content of one version of a pod.
type podStatus struct {
	uid     types.UID
	created time.Time
	labels  map[string]string
	ip      string
	ports   map[string]int32

	active      bool      // Ready, and not terminating
	terminating bool      // still Ready, and terminating
	leaving     bool      // it is being deleted, or its containers have ended
	readyAt     time.Time // while active or terminating: when it became Ready; zero if the pod does not record it
	endedAt     time.Time // while not active: since when; zero if the pod does not record it
	// recordedReady and recordedEnd are readyAt and endedAt as the pod records them, by another clock.
	recordedReady, recordedEnd time.Time

	counted   bool // the HPA counts it as ready
	restarted bool // one of its containers has restarted
}

// rebase keeps the times of fields that have not changed since the previous version. It gives those that have, if that
// is seen at once, times of the clock of this process, if they are of another one.
func (s *podStatus) rebase(before *podStatus, live bool, now time.Time) {
	rebased := func(recorded, recordedBefore, was time.Time) time.Time {
		switch {
		case recorded.Equal(recordedBefore):
			return was
		case live:
			return seenAt(recorded, now)
		}
		return recorded
	}
	s.readyAt = rebased(s.recordedReady, before.recordedReady, before.readyAt)
	s.endedAt = rebased(s.recordedEnd, before.recordedEnd, before.endedAt)
}

func statusOf(p *corev1.Pod) podStatus {
	s := podStatus{
		uid:       p.UID,
		created:   p.CreationTimestamp.Time,
		labels:    objectcache.InternLabels(p.Labels),
		ip:        p.Status.PodIP,
		ports:     namedPorts(p),
		restarted: restarted(p),
	}
	ready, changed := readiness(p)
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	s.leaving = over || p.DeletionTimestamp != nil
	s.counted = ready && p.Status.Phase == corev1.PodRunning
	s.active = s.counted && p.DeletionTimestamp == nil
	s.terminating = s.counted && p.DeletionTimestamp != nil
	if s.counted {
		s.readyAt = changed
	}
	s.recordedReady = s.readyAt
	if s.active {
		return s
	}
	if !ready {
		s.endedAt = changed
	}
	if p.DeletionTimestamp != nil {
		s.endedAt = earliest(s.endedAt, terminationBegan(p))
	}
	s.recordedEnd = s.endedAt
	return s
}

// readiness returns whether the Ready condition is true, and when it last changed.
func readiness(p *corev1.Pod) (ready bool, changed time.Time) {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return false, time.Time{}
}

// terminationBegan returns when deletion was requested: the deletionTimestamp is a grace period later.
func terminationBegan(p *corev1.Pod) time.Time {
	began := p.DeletionTimestamp.Time
	if grace := p.DeletionGracePeriodSeconds; grace != nil {
		began = began.Add(-time.Duration(*grace) * time.Second)
	}
	return began
}

// namedPorts returns the TCP ports that have names, the first where two containers use the same name.
func namedPorts(p *corev1.Pod) map[string]int32 {
	var ports map[string]int32
	for _, containers := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range containers {
			for _, port := range containers[i].Ports {
				if port.Name == "" || (port.Protocol != "" && port.Protocol != corev1.ProtocolTCP) {
					continue
				}
				if ports == nil {
					ports = map[string]int32{}
				}
				if _, taken := ports[port.Name]; !taken {
					ports[objectcache.Intern(port.Name)] = port.ContainerPort
				}
			}
		}
	}
	return ports
}

func restarted(p *corev1.Pod) bool {
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].RestartCount > 0 {
				return true
			}
		}
	}
	return false
}

// earliest returns the earlier of two times of which zero means unknown.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// record is the part of a pod that this package reads, much smaller than even an empty corev1.Pod: a cluster may have a
// hundred thousand.
type record struct {
	key    types.NamespacedName
	status podStatus
	wait   *Wait // nil: it did not wait for its node
}

func recordOf(p *corev1.Pod) *record {
	return &record{key: types.NamespacedName{Namespace: objectcache.Intern(p.Namespace), Name: p.Name},
		status: statusOf(p), wait: waitOf(p)}
}

// GetObjectMeta implements metav1.ObjectMetaAccessor, by which client-go finds the key.
func (r *record) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.key.Namespace, Name: r.key.Name}
}
