package extender

import (
	"container/list"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxTrail is how many verdicts are remembered: some 16 MiB of them.
const maxTrail = 130_000

// findingCost is how many verdicts a finding without any counts as.
const findingCost = 6

// finding is what was found for a pod at one request. It is never changed.
type finding struct {
	at       time.Time
	viewed   time.Time // when the view was made; zero: there was none
	pod      brief
	verdicts []verdict
	room     room
	awaited  string // the pool that is waited for
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
	most int

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

func (f *finding) cost() int { return len(f.verdicts) + findingCost }

// add remembers a finding in place of the last of the verb for the pod.
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
	verbs := t.pods[s.pod.key]
	if delete(verbs, s.verb); len(verbs) == 0 {
		delete(t.pods, s.pod.key)
	}
}

// of returns what was found for a pod last, nil for a verb that was not asked lately.
func (t *trail) of(pod types.NamespacedName) (filter, prioritize *finding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	get := func(verb string) *finding {
		if e := t.pods[pod][verb]; e != nil {
			return e.Value.(*step).finding
		}
		return nil
	}
	return get(verbFilter), get(verbPrioritize)
}
