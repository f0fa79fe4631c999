package extender

import (
	"container/list"
	"slices"
	"sync"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"
)

// maxTrail is how many verdicts are remembered: some 16 MiB of them, with the names that they hold.
const maxTrail = 130_000

// findingCost is how many verdicts a finding without any counts as.
const findingCost = 6

// finding is what was found for a pod at one request.
type finding struct {
	at       time.Time
	viewed   time.Time // when the view was made; zero: there was none
	pod      brief
	verdicts []verdict
	room     room
	awaited  string // the pool that is waited for
	text     int    // bytes that names in it take that are not those of a view
}

// brief is what is remembered of a subject.
type brief struct {
	key                 types.NamespacedName
	uid                 types.UID
	exempt              bool
	requests            use
	estimate, scheduled use
}

func (s *subject) brief() brief {
	return brief{s.key, s.uid, s.exempt, s.requests, s.estimate, s.scheduled}
}

// trail remembers the last finding of each verb for pods, so that it can be told why. What is oldest is forgotten first.
type trail struct {
	most  int
	blank sync.Pool // of *finding, which were forgotten

	mu   sync.Mutex
	held int        // verdicts
	ages *list.List // of *step, oldest first
	pods map[types.NamespacedName]map[string]*list.Element
}

// step is a finding with where it is found.
type step struct {
	verb string
	*finding
}

func newTrail(most int) *trail {
	return &trail{most: most, ages: list.New(), pods: map[types.NamespacedName]map[string]*list.Element{}}
}

// cost is in verdicts, of the size of which text is taken to be.
func (f *finding) cost() int {
	const size = int(unsafe.Sizeof(verdict{}))
	return cap(f.verdicts) + findingCost + (f.text+size-1)/size
}

// fresh returns a finding with n blank verdicts. They are of those that were forgotten if there are such, as they are large:
// a scheduler that asks about thousands of nodes would have garbage collected all the time.
func (t *trail) fresh(n int) *finding {
	f, ok := t.blank.Get().(*finding)
	if !ok || cap(f.verdicts) < n || cap(f.verdicts) > 2*n {
		return &finding{verdicts: make([]verdict, n)}
	}
	v := f.verdicts[:n]
	clear(v)
	*f = finding{verdicts: v}
	return f
}

// add remembers a finding in place of the last of the verb for the pod. It is the trail's from then on.
func (t *trail) add(verb string, f *finding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.pods[f.pod.key][verb]; old != nil {
		t.forget(old)
	}
	verbs := t.pods[f.pod.key]
	if verbs == nil {
		verbs = make(map[string]*list.Element, 2)
		t.pods[f.pod.key] = verbs
	}
	verbs[verb] = t.ages.PushBack(&step{verb, f})
	t.held += f.cost()
	for t.held > t.most {
		t.forget(t.ages.Front())
	}
}

func (t *trail) forget(e *list.Element) {
	s := t.ages.Remove(e).(*step)
	t.held -= s.cost()
	defer t.blank.Put(s.finding)
	verbs := t.pods[s.pod.key]
	if delete(verbs, s.verb); len(verbs) == 0 {
		delete(t.pods, s.pod.key)
	}
}

// of returns copies of what was found for a pod last, nil for a verb that was not asked lately.
func (t *trail) of(pod types.NamespacedName) (filter, prioritize *finding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	get := func(verb string) *finding {
		if e := t.pods[pod][verb]; e != nil {
			f := *e.Value.(*step).finding
			f.verdicts = slices.Clone(f.verdicts)
			return &f
		}
		return nil
	}
	return get(verbFilter), get(verbPrioritize)
}
