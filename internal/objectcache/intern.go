package objectcache

import "unique"

// Intern returns s, sharing its memory with all equal strings.
func Intern(s string) string { return unique.Make(s).Value() }

// InternLabels returns a copy of labels whose strings share memory with those of other objects; nil for nil.
func InternLabels(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	out := make(map[string]string, len(labels))
	for name, value := range labels {
		out[Intern(name)] = Intern(value)
	}
	return out
}
