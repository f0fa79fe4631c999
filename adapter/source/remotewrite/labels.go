package remotewrite

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const metricName = "__name__"

var errNoMetric = errors.New("a series has no metric name")

type label struct{ name, value string }

// labels of one series, sorted by name, without empty values.
type labels []label

// get returns a label's value; "" if it is absent.
func (l labels) get(name string) string {
	for i := range l {
		if l[i].name == name {
			return l[i].value
		}
	}
	return ""
}

// set returns the labels with one that replaces any of its name.
func (l labels) set(x label) labels {
	for i := range l {
		if l[i].name == x.name {
			l[i] = x
			return l
		}
	}
	return append(l, x)
}

// normal sorts labels by name.
func (l labels) normal() labels {
	byName := func(a, b label) int { return strings.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(l, byName) {
		slices.SortStableFunc(l, byName)
	}
	return l
}

// withoutEmpty removes empty labels, which equal absent ones.
func (l labels) withoutEmpty() labels {
	return slices.DeleteFunc(l, func(x label) bool { return x.value == "" })
}

// check returns what is wrong with normal labels.
func (l labels) check(o *Options) error {
	for i, x := range l {
		switch {
		case x.name == "":
			return errors.New("a label has no name")
		case i > 0 && l[i-1].name == x.name:
			return fmt.Errorf("label %q is there twice", x.name)
		case len(x.name) > o.MaxLabelNameBytes:
			return fmt.Errorf("label %.64q… has a name of %d bytes; at most %d are accepted", x.name, len(x.name), o.MaxLabelNameBytes)
		case len(x.value) > o.MaxLabelValueBytes:
			return fmt.Errorf("label %q has a value of %d bytes; at most %d are accepted", x.name, len(x.value), o.MaxLabelValueBytes)
		case !utf8.ValidString(x.name) || !utf8.ValidString(x.value):
			return fmt.Errorf("label %q is not UTF-8", x.name)
		}
	}
	return nil
}

// separator ends names and values in an identity. It is not valid in UTF-8.
const separator = '\xff'

// appendIdentity appends the labels that distinguish the series of a metric.
func (l labels) appendIdentity(to []byte) []byte {
	for i := range l {
		if l[i].name == metricName {
			continue
		}
		to = append(to, l[i].name...)
		to = append(to, separator)
		to = append(to, l[i].value...)
		to = append(to, separator)
	}
	return to
}

// parseIdentity undoes appendIdentity.
func parseIdentity(identity string) labels {
	var l labels
	parts := strings.Split(identity, string([]byte{separator}))
	for i := 0; i+1 < len(parts); i += 2 {
		l = append(l, label{parts[i], parts[i+1]})
	}
	return l
}

// String writes labels as Prometheus does.
func (l labels) String() string {
	var b strings.Builder
	b.WriteString(l.get(metricName))
	b.WriteByte('{')
	first := true
	for _, x := range l {
		if x.name == metricName {
			continue
		}
		if !first {
			b.WriteString(", ")
		}
		first = false
		b.WriteString(x.name + "=" + strconv.Quote(x.value))
	}
	b.WriteByte('}')
	return b.String()
}

// difference describes how the labels of another series differ from those of the one that is read.
func difference(read, other labels) string {
	var parts []string
	for _, x := range other {
		if was := read.get(x.name); was != x.value {
			parts = append(parts, fmt.Sprintf("%s=%q rather than %q", x.name, x.value, was))
		}
	}
	for _, x := range read {
		if other.get(x.name) == "" {
			parts = append(parts, fmt.Sprintf("%s=%q rather than %q", x.name, "", x.value))
		}
	}
	return strings.Join(parts, ", ")
}
