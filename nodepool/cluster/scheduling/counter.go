package scheduling

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// counter counts, by domain of a topology, the pods that all of its matchers match, or those that
// own a rule.
type counter struct {
	key      int // the number of the topology
	matchers []matcher
	lasting  bool // pods that are being deleted do not count
	total    int
	in       []int32 // by domain
}

// matcher selects pods like a term of a rule.
type matcher struct {
	namespaces map[string]bool // nil = all
	selector   labels.Selector
}

func (m matcher) matches(namespace string, l map[string]string) bool {
	return (m.namespaces == nil || m.namespaces[namespace]) && m.selector.Matches(labels.Set(l))
}

func (c *counter) matches(namespace string, l map[string]string) bool {
	return !slices.ContainsFunc(c.matchers, func(m matcher) bool { return !m.matches(namespace, l) })
}

func (c *counter) at(domain int32) int {
	if domain < 0 || int(domain) >= len(c.in) {
		return 0
	}
	return int(c.in[domain])
}

// add counts n more pods on a node in these domains.
func (c *counter) add(domains []int32, n int) {
	domain := domains[c.key]
	if domain < 0 {
		return
	}
	for int(domain) >= len(c.in) {
		c.in = append(c.in, 0)
	}
	c.in[domain] += int32(n)
	c.total += n
}

// finder finds the counters of a pod without trying each of them: most selectors require one value
// of one label.
type finder struct {
	byLabel map[[2]string][]*counter
	others  []*counter
}

func newFinder(all map[string]*counter) *finder {
	f := &finder{byLabel: map[[2]string][]*counter{}}
	for _, c := range all {
		if label, ok := requiredLabel(c.matchers[0].selector); ok {
			f.byLabel[label] = append(f.byLabel[label], c)
		} else {
			f.others = append(f.others, c)
		}
	}
	return f
}

// requiredLabel returns a label without which a selector matches no pod.
func requiredLabel(s labels.Selector) ([2]string, bool) {
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.ValuesUnsorted(); len(values) == 1 {
				return [2]string{r.Key(), values[0]}, true
			}
		}
	}
	return [2]string{}, false
}

// find returns the counters of pods with these labels, in no order.
func (f *finder) find(namespace string, l map[string]string) []*counter {
	var out []*counter
	add := func(all []*counter) {
		for _, c := range all {
			if c.matches(namespace, l) {
				out = append(out, c)
			}
		}
	}
	for key, value := range l {
		add(f.byLabel[[2]string{key, value}])
	}
	add(f.others)
	return out
}
