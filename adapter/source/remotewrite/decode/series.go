package decode

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Sample is a sample as pushed.
type Sample struct {
	T     int64 // ms
	Start int64 // ms: since when a counter counts; 0: unknown
	V     float64
	Kind  Kind
}

// Kind is the type of a series according to its sender.
type Kind uint8

// The kinds of series.
const (
	Unknown Kind = iota // as of all series of remote write 1.0, and of recording rules
	Gauge
	Counter
)

// MetricName is the name of the label that holds the name of the metric.
const MetricName = "__name__"

var errNoMetric = errors.New("a series has no metric name")

// Label is a label of a series.
type Label struct{ Name, Value string }

// Labels are the labels of one series, sorted by name, without empty values.
type Labels []Label

// Get returns a label's value; "" if it is absent.
func (l Labels) Get(name string) string {
	for i := range l {
		if l[i].Name == name {
			return l[i].Value
		}
	}
	return ""
}

// set returns the labels with one that replaces any of its name.
func (l Labels) set(x Label) Labels {
	for i := range l {
		if l[i].Name == x.Name {
			l[i] = x
			return l
		}
	}
	return append(l, x)
}

// normal sorts labels by name.
func (l Labels) normal() Labels {
	byName := func(a, b Label) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(l, byName) {
		slices.SortStableFunc(l, byName)
	}
	return l
}

// withoutEmpty removes empty labels, which equal absent ones.
func (l Labels) withoutEmpty() Labels {
	return slices.DeleteFunc(l, func(x Label) bool { return x.Value == "" })
}

// check returns what is wrong with normal labels.
func (l Labels) check(o *Limits) error {
	for i, x := range l {
		switch {
		case x.Name == "":
			return errors.New("a label has no name")
		case i > 0 && l[i-1].Name == x.Name:
			return fmt.Errorf("label %q is there twice", x.Name)
		case len(x.Name) > o.LabelNameBytes:
			return fmt.Errorf("label %.64q… has a name of %d bytes; at most %d are accepted",
				x.Name, len(x.Name), o.LabelNameBytes)
		case len(x.Value) > o.LabelValueBytes:
			return fmt.Errorf("label %q has a value of %d bytes; at most %d are accepted",
				x.Name, len(x.Value), o.LabelValueBytes)
		case !utf8.ValidString(x.Name) || !utf8.ValidString(x.Value):
			return fmt.Errorf("label %q is not UTF-8", x.Name)
		}
	}
	return nil
}

// separator ends names and values in an identity. It is not valid in UTF-8.
const separator = '\xff'

// AppendIdentity appends the labels that distinguish the series of a metric.
func (l Labels) AppendIdentity(to []byte) []byte {
	for i := range l {
		if l[i].Name == MetricName {
			continue
		}
		to = append(to, l[i].Name...)
		to = append(to, separator)
		to = append(to, l[i].Value...)
		to = append(to, separator)
	}
	return to
}

// ParseIdentity undoes AppendIdentity. The labels lack the name of the metric.
func ParseIdentity(identity string) Labels {
	var l Labels
	parts := strings.Split(identity, string([]byte{separator}))
	for i := 0; i+1 < len(parts); i += 2 {
		l = append(l, Label{parts[i], parts[i+1]})
	}
	return l
}

// String writes labels as Prometheus does.
func (l Labels) String() string {
	var b strings.Builder
	b.WriteString(l.Get(MetricName))
	b.WriteByte('{')
	first := true
	for _, x := range l {
		if x.Name == MetricName {
			continue
		}
		if !first {
			b.WriteString(", ")
		}
		first = false
		b.WriteString(x.Name + "=" + strconv.Quote(x.Value))
	}
	b.WriteByte('}')
	return b.String()
}

// Difference describes how the labels of another series differ from those of the one that is read.
func Difference(read, other Labels) string {
	var parts []string
	for _, x := range other {
		if was := read.Get(x.Name); was != x.Value {
			parts = append(parts, fmt.Sprintf("%s=%q rather than %q", x.Name, x.Value, was))
		}
	}
	for _, x := range read {
		if other.Get(x.Name) == "" {
			parts = append(parts, fmt.Sprintf("%s=%q rather than %q", x.Name, "", x.Value))
		}
	}
	return strings.Join(parts, ", ")
}
