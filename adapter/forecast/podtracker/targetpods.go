package podtracker

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/pipeline"
)

// watch is one caller of Watch, identified by its address.
type watch struct{ changed func() }

// TargetPods is the pods of one scale target. It is safe for concurrent use, and empty once it has been forgotten.
type TargetPods struct {
	tracker   *Tracker
	namespace string
	indexed   *label // the label that indexes it; nil: none
	retention time.Duration
	now       func() time.Time
	selector  labels.Selector // changes with the locks of the tracker and of this held

	mu       sync.Mutex
	members  map[types.UID]*member
	ended    []endedInstance // in the order in which their ends were seen
	ready    int
	startups startups
	sorted   []Instance // the active ones by ID, made when asked for; nil after a change

	watches    []*watch
	changed    bool // a call of the watches is due
	delivering bool
}

// member is a pod that is, or was, selected. It is kept while the pod or an instance of it exists,
// so that no two instances get the same ID.
type member struct {
	pod      *pod
	exists   bool
	counted  bool // in TargetPods.ready
	active   bool
	current  Instance  // while active
	readyAt  time.Time // while active: as the pod records it
	started  int       // instances so far
	unready  time.Time // while there was none: since when the pod is not Ready, as it records
	endedAt  time.Time // the end of the newest that has ended
	retained int       // of them in TargetPods.ended
}

type endedInstance struct {
	Instance
	uid  types.UID
	seen time.Time
}

// Instances returns the active instances and those that ended at or after since, sorted by ID. The slice must not be
// changed. Instances that ended longer ago than the tracker's retention are forgotten.
func (f *TargetPods) Instances(since time.Time) []Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expire(f.now())
	active := f.active()
	out := active
	for i := range f.ended {
		if f.ended[i].End.Before(since) {
			continue
		}
		if len(out) == len(active) {
			out = slices.Clone(active)
		}
		out = append(out, f.ended[i].Instance)
	}
	if len(out) > len(active) {
		sortByID(out)
	}
	return out
}

// Active returns the active instances, sorted by ID. The slice must not be changed.
func (f *TargetPods) Active() []Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.active()
}

// PodState returns what is known of a pod of the namespace of the target, whether the target selects it
// or not.
func (f *TargetPods) PodState(name string) PodState { return f.tracker.podState(f.namespace, name) }

// Lost returns since when changes of the pods are not seen, and why; zero while they are seen.
func (f *TargetPods) Lost() (since time.Time, why error) {
	f.tracker.mu.Lock()
	defer f.tracker.mu.Unlock()
	return f.tracker.lost(f.namespace)
}

// Ready returns how many pods the HPA controller counts as ready: those in phase Running whose Ready condition is
// true, terminating ones included.
func (f *TargetPods) Ready() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ready
}

// Watch calls changed after each change of the instances, their addresses or labels, or the number
// of ready pods, until stop is called; one call may still be running then. Changes that arrive
// together, such as those of a new selector, make one call, because every caller reads the whole
// list. Calls do not overlap, come from any goroutine that brings a change, and are made without a
// lock held, so that they may call back.
func (f *TargetPods) Watch(changed func()) (stop func()) {
	w := &watch{changed}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watches = append(f.watches, w)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if i := slices.Index(f.watches, w); i >= 0 {
			f.watches = slices.Delete(slices.Clone(f.watches), i, i+1)
		}
	}
}

// UnreadySince returns the newest time at which a pod stopped being Ready before it was followed,
// as the pod records it; zero without such a pod. Load from before that time belongs to no
// instance.
func (f *TargetPods) UnreadySince() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	var newest time.Time
	for _, m := range f.members {
		if m.exists {
			newest = latest(newest, m.unready)
		}
	}
	return newest
}

// Startups returns the newest start-ups of the fleet's pods (64 at most) in order of readiness.
// Only the first readiness of a pod none of whose containers had restarted is a start-up. The
// readiness of a pod that was Ready when it was first seen counts as its first.
func (f *TargetPods) Startups() []Startup {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.startups.list()
}

// StartupTime estimates T_I as a method does, from an assumed value and Startups. It depends on
// nothing else: neither on when the start-ups were observed nor in which order.
func (f *TargetPods) StartupTime(m pipeline.Method, initial time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.startups.startupTime(estimated{method: m, initial: initial})
}

// StartupTimeOnNode is StartupTime of pods that have a node: without the wait for one of those that had to.
func (f *TargetPods) StartupTimeOnNode(m pipeline.Method, initial time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.startups.startupTime(estimated{method: m, initial: initial, onNode: true})
}

// StartupsMeasured returns how many start-ups StartupTime is estimated from.
func (f *TargetPods) StartupsMeasured() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.startups.sorted)
}

// active is called many times between two changes, so it caches.
func (f *TargetPods) active() []Instance {
	if f.sorted == nil {
		f.sorted = make([]Instance, 0, len(f.members))
		for _, m := range f.members {
			if m.active {
				f.sorted = append(f.sorted, m.current)
			}
		}
		sortByID(f.sorted)
	}
	return f.sorted
}

func sortByID(all []Instance) {
	slices.SortFunc(all, func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
}

// join makes a selected pod a member.
func (f *TargetPods) join(p *pod, now time.Time) {
	p.targets = append(p.targets, f)
	f.observe(p, time.Time{}, now)
}

// reselect changes the selector, and returns the pods that were selected before, or at some time.
func (f *TargetPods) reselect(selector labels.Selector) []*pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.selector = selector
	var pods []*pod
	for _, m := range f.members {
		if m.exists {
			pods = append(pods, m.pod)
		}
	}
	return pods
}

// observe takes a new version of a member or former member. If it becomes active, it has carried
// load since its readiness, but not before since.
func (f *TargetPods) observe(p *pod, since, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	selected := f.selects(p)
	m := f.members[p.status.uid]
	if m == nil {
		m = &member{}
		f.members[p.status.uid] = m
	}
	m.pod, m.exists = p, true
	f.expire(now)
	f.count(m, selected && p.status.counted)
	if selected {
		f.startups.add(p.status.uid, p.startup)
	}
	m.unready = time.Time{}
	if selected && m.started == 0 && !p.status.active {
		m.unready = p.status.endedAt
	}
	switch active := selected && p.status.active; {
	case selected && p.status.terminating && m.started == 0 && p.status.endedAt.After(latest(p.status.readyAt, since)):
		// It began to terminate before it was first seen, and carried load until then: it is an instance of the past.
		f.start(m, &p.status, since, now)
		f.end(p.status.uid, m, p.status.endedAt, now)
	case !active && m.active:
		f.end(p.status.uid, m, p.status.endedAt, now)
	case active && !m.active:
		f.start(m, &p.status, since, now)
	case active && !m.readyAt.Equal(p.status.readyAt):
		// It was unready in between, too briefly for the informer to show.
		f.end(p.status.uid, m, p.status.readyAt, now)
		f.start(m, &p.status, since, now)
	case active:
		f.refresh(m, &p.status)
	}
}

func (f *TargetPods) selects(p *pod) bool { return f.selector.Matches(labels.Set(p.status.labels)) }

// drop takes the deletion of a pod.
func (f *TargetPods) drop(p *pod, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[p.status.uid]
	f.count(m, false)
	if m.active {
		f.end(p.status.uid, m, p.status.endedAt, now)
	}
	m.exists = false
	f.startups.drop(p.status.uid)
	f.forgetIfGone(p.status.uid, m)
	f.expire(now)
}

func (f *TargetPods) count(m *member, counted bool) {
	if m.counted == counted {
		return
	}
	m.counted = counted
	if counted {
		f.ready++
	} else {
		f.ready--
	}
	f.changed = true
}

func (f *TargetPods) start(m *member, s *podStatus, since, now time.Time) {
	m.started++
	m.active, m.readyAt = true, s.readyAt
	f.sorted, f.changed = nil, true
	m.current = Instance{
		ID: instanceID(s.uid, m.started), Pod: m.pod.key,
		IP: s.ip, Ports: s.ports, Labels: s.labels,
		// Never before the end of the last one, so that no pod counts twice.
		Start: latest(latest(notAfter(s.readyAt, now), since), m.endedAt),
	}
}

// end ends the current instance at a time (zero: unknown, so now), but not before its start, unless a
// clock that was set back has that ahead.
func (f *TargetPods) end(uid types.UID, m *member, at, now time.Time) {
	ended := m.current
	ended.End = latest(notAfter(at, now), notAfter(ended.Start, now))
	ended.Start = notAfter(ended.Start, ended.End)
	m.active, m.current, m.endedAt = false, Instance{}, ended.End
	f.sorted, f.changed = nil, true
	m.retained++
	f.ended = append(f.ended, endedInstance{Instance: ended, uid: uid, seen: now})
}

// refresh updates the parts of an active instance that may change.
func (f *TargetPods) refresh(m *member, s *podStatus) {
	if m.current.IP == s.ip && maps.Equal(m.current.Ports, s.ports) && maps.Equal(m.current.Labels, s.labels) {
		return
	}
	m.current.IP, m.current.Ports, m.current.Labels = s.ip, s.ports, s.labels
	f.sorted, f.changed = nil, true
}

// expire forgets instances whose end was seen longer ago than the retention.
func (f *TargetPods) expire(now time.Time) {
	oldest := now.Add(-f.retention)
	n := 0
	for n < len(f.ended) && f.ended[n].seen.Before(oldest) {
		uid := f.ended[n].uid
		m := f.members[uid]
		m.retained--
		f.forgetIfGone(uid, m)
		n++
	}
	f.ended = slices.Delete(f.ended, 0, n)
}

func (f *TargetPods) forgetIfGone(uid types.UID, m *member) {
	if !m.exists && m.retained == 0 {
		delete(f.members, uid)
	}
}

// close removes all pods.
func (f *TargetPods) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		m.pod.leave(f)
	}
	f.members, f.ended, f.ready, f.sorted = map[types.UID]*member{}, nil, 0, nil
	f.startups = startups{}
	f.changed = true
}

// deliver calls the watches if there was a change. If another goroutine is doing so, that one also makes the calls for
// this change, so that calls do not overlap and may call back.
func (f *TargetPods) deliver() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.delivering {
		return
	}
	f.delivering = true
	for f.changed {
		f.changed = false
		for _, w := range f.watches {
			if !slices.Contains(f.watches, w) {
				continue // stopped by a call before this
			}
			f.mu.Unlock()
			w.changed()
			f.mu.Lock()
		}
	}
	f.delivering = false
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// notAfter returns at, or now if at is unknown or lies in the future (clocks that disagree). What it
// returns is compared with times that pods record, so it has no monotonic reading.
func notAfter(at, now time.Time) time.Time {
	now = now.Round(0)
	if at.IsZero() || at.After(now) {
		return now
	}
	return at
}
