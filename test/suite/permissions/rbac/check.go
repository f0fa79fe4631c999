package rbac

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// check compares what was asked for with what is granted. It looks for rights that nothing used
// only after a whole run.
func (s Suite) check(proven, others []Right, requests []Request, whole bool) error {
	var problems []error
	used := map[string]bool{}
	for _, r := range requests {
		if s.Namespace != nil {
			r.Namespace = s.Namespace(r.Namespace)
		}
		allowed := false
		for _, right := range slices.Concat(proven, others) {
			if right.Covers(r) {
				allowed = true
				used[right.String()] = used[right.String()] || !r.Forbidden
			}
		}
		if r.Forbidden && !allowed {
			problems = append(problems, fmt.Errorf("forbidden: %s; no role grants it", r))
		}
	}
	if whole {
		problems = append(problems, s.unused(proven, used)...)
	}
	return errors.Join(problems...)
}

// unused returns what is wrong with rights that were not used, and with those of Unused that were.
func (s Suite) unused(proven []Right, used map[string]bool) []error {
	var problems []error
	for _, right := range proven {
		reason, expected := s.Unused[right.String()]
		_, rare := s.Rare[right.String()]
		switch {
		case rare:
		case used[right.String()] && expected:
			problems = append(problems, fmt.Errorf("%s is expected to be unused (%s), and was used", right, reason))
		case !used[right.String()] && !expected:
			problems = append(problems, fmt.Errorf("no test uses %s: take it out of the manifests, or give a reason",
				right))
		}
	}
	return append(problems, s.stale(proven)...)
}

// stale returns the entries of Unused and Rare that are no rights.
func (s Suite) stale(proven []Right) []error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(s.Unused)) {
		if _, twice := s.Rare[name]; twice {
			problems = append(problems, fmt.Errorf("%s is expected to be unused, and to be used at times", name))
		}
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(s.Unused)), slices.Sorted(maps.Keys(s.Rare))) {
		if !slices.ContainsFunc(proven, func(r Right) bool { return r.String() == name }) {
			problems = append(problems, fmt.Errorf("%s has a reason to be unused, and is no right of %s", name,
				strings.Join(s.Proves, ", ")))
		}
	}
	return problems
}
