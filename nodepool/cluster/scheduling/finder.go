package scheduling

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// finder finds the counters of a pod without asking each of them: most want one label to have one value.
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

// requiredLabel returns a label without which a selector matches nothing.
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

// find returns the counters of the pods that have these labels, in no order.
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
