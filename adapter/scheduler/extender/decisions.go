package extender

import (
	"container/list"
	"slices"
	"sync"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"
)

// maxVerdicts caps the verdicts that are cached, in some 16 MiB with the names that they hold.
const maxVerdicts = 130_000

// decisionCost is how many verdicts a decision without any counts as.
const decisionCost = 6

// decision is the result of one request.
type decision struct {
	at       time.Time
	cached   time.Time // when the snapshot was made; zero: there was none
	pod      podSummary
	verdicts []verdict
	room     outcome
	awaited  string // the pool that is waited for
	text     int    // bytes that names in it take that are not those of a snapshot
}

// decisionCache keeps the last decision of each verb for pods, for explain. The oldest go first.
type decisionCache struct {
	most  int
	blank sync.Pool // of *decision, which were forgotten

	mu   sync.Mutex
	held int        // verdicts
	ages *list.List // of *cachedDecision, oldest first
	pods map[types.NamespacedName]map[string]*list.Element
}

// cachedDecision is a decision and its verb.
type cachedDecision struct {
	verb string
	*decision
}

func newDecisionCache(most int) *decisionCache {
	return &decisionCache{most: most, ages: list.New(), pods: map[types.NamespacedName]map[string]*list.Element{}}
}

// cost is the size of a decision in verdicts.
func (f *decision) cost() int {
	const size = int(unsafe.Sizeof(verdict{}))
	return cap(f.verdicts) + decisionCost + (f.text+size-1)/size
}

// fresh returns a decision with n empty verdicts. It reuses evicted ones: they are large, and requests are frequent.
func (t *decisionCache) fresh(n int) *decision {
	f, ok := t.blank.Get().(*decision)
	if !ok || cap(f.verdicts) < n || cap(f.verdicts) > 2*n {
		return &decision{verdicts: make([]verdict, n)}
	}
	v := f.verdicts[:n]
	clear(v)
	*f = decision{verdicts: v}
	return f
}

// add caches a decision in place of the last one of the verb and the pod. The cache owns it from then on.
func (t *decisionCache) add(verb string, f *decision) {
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
	verbs[verb] = t.ages.PushBack(&cachedDecision{verb, f})
	t.held += f.cost()
	for t.held > t.most {
		t.forget(t.ages.Front())
	}
}

func (t *decisionCache) forget(e *list.Element) {
	s := t.ages.Remove(e).(*cachedDecision)
	t.held -= s.cost()
	defer t.blank.Put(s.decision)
	verbs := t.pods[s.pod.key]
	if delete(verbs, s.verb); len(verbs) == 0 {
		delete(t.pods, s.pod.key)
	}
}

// of returns copies of the last decisions for a pod, nil for a verb without one.
func (t *decisionCache) of(pod types.NamespacedName) (filter, prioritize *decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	get := func(verb string) *decision {
		if e := t.pods[pod][verb]; e != nil {
			f := *e.Value.(*cachedDecision).decision
			f.verdicts = slices.Clone(f.verdicts)
			return &f
		}
		return nil
	}
	return get(verbFilter), get(verbPrioritize)
}
