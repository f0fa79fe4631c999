package extender

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

// errNodes is the answer to a scheduler that sends whole nodes. Its other plugins, too, would not work.
var errNodes = errors.New("foresail: the scheduler sent no NodeNames: set nodeCacheCapable: true for this extender in its KubeSchedulerConfiguration")

// errNoPod is the answer to what is not a question of a scheduler's.
var errNoPod = errors.New("foresail: the request has no Pod")

// Of what one request may make us hold. Memory must not follow from what is sent: it is some hundred bytes for each name,
// and for some values of a pod, which are written in three.
const (
	// mostNameBytes is how long names of objects can be.
	mostNameBytes = 253
	// mostUIDBytes is how long a UID may be. The API gives ones of 36.
	mostUIDBytes = 128
	// mostValues is how many values may be in what is decoded of a pod: that of one with a thousand containers.
	mostValues = 10_000
)

// errIntricate is the answer to what is no pod of a cluster's.
var errIntricate = fmt.Errorf("foresail: the Pod has more than %d values", mostValues)

// errNotPlain is why something is to be decoded as a whole.
var errNotPlain = errors.New("not written as schedulers do")

// asked is what a scheduler asks, an extenderv1.ExtenderArgs with names of nodes.
type asked struct {
	pod   *corev1.Pod // no more of it than keptOfPod says
	names [][]byte    // may be parts of the body
}

// decode reads what a scheduler asks about most nodes or fewer. The error is errNodes or errNoPod if nothing is wrong but
// what it asks. names is filled in place of one that would be made.
//
// Decoding a question by reflection takes ten times as long as answering it: most of a pod is of no interest, and names are
// plain. So what is of interest is cut out first, and that alone is decoded so. What is not as schedulers write it is
// decoded as a whole.
func decode(body []byte, names [][]byte, most int) (asked, error) {
	a, err := decodePlain(body, names[:0], most)
	if errors.Is(err, errNotPlain) {
		a, err = decodeAny(body, names[:0], most)
	}
	if err != nil {
		return asked{}, err
	}
	return a, a.check()
}

// check refuses names that cannot be ones.
func (a *asked) check() error {
	for _, name := range a.names {
		if len(name) > mostNameBytes {
			return errTooLong("the name of a node", len(name), mostNameBytes)
		}
	}
	switch {
	case len(a.pod.Name) > mostNameBytes:
		return errTooLong("the name of the Pod", len(a.pod.Name), mostNameBytes)
	case len(a.pod.Namespace) > mostNameBytes:
		return errTooLong("the namespace of the Pod", len(a.pod.Namespace), mostNameBytes)
	case len(a.pod.UID) > mostUIDBytes:
		return errTooLong("the UID of the Pod", len(a.pod.UID), mostUIDBytes)
	}
	return nil
}

func errTooLong(what string, is, most int) error {
	return fmt.Errorf("foresail: %s has %d bytes: want %d or fewer", what, is, most)
}

func errTooMany(most int) error {
	return fmt.Errorf("foresail: the request names too many nodes: want %d or fewer, by what is known of the cluster", most)
}

// decodeAny reads what a scheduler asks in any way of writing it.
func decodeAny(body []byte, names [][]byte, most int) (asked, error) {
	if valuesIn(body) > mostValues+most {
		return asked{}, errIntricate
	}
	var args struct {
		Pod       *corev1.Pod
		NodeNames *[]string
	}
	if err := json.Unmarshal(body, &args); err != nil {
		return asked{}, fmt.Errorf("foresail: the request is not the JSON of ExtenderArgs: %w", err)
	}
	switch {
	case args.Pod == nil:
		return asked{}, errNoPod
	case args.NodeNames == nil:
		return asked{}, errNodes
	case len(*args.NodeNames) > most:
		return asked{}, errTooMany(most)
	}
	a := asked{args.Pod, names}
	for _, name := range *args.NodeNames {
		a.names = append(a.names, []byte(name))
	}
	return a, nil
}

// valuesIn is how many values there are in JSON, or more: what is in strings counts as well.
func valuesIn(b []byte) int {
	return bytes.Count(b, []byte{','}) + bytes.Count(b, []byte{'{'}) + bytes.Count(b, []byte{'['})
}

// decodePlain reads what a scheduler asks if it is written plainly: no field twice, no escapes in names.
func decodePlain(body []byte, names [][]byte, most int) (asked, error) {
	s := scanner{rest: body}
	var pod []byte
	listed := false
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "Pod":
			if pod != nil {
				return false
			}
			pod = keptOfPod.cut(make([]byte, 0, 2048), &s)
			return pod != nil
		case "NodeNames":
			if listed {
				return false
			}
			listed = true
			names, listed = s.names(names, most)
			return listed
		case "Nodes":
			return bytes.Equal(s.value(), []byte("null"))
		}
		return false
	})
	switch {
	case len(names) > most:
		return asked{}, errTooMany(most)
	case !ok || !s.ended() || pod == nil || !listed:
		return asked{}, errNotPlain
	case valuesIn(pod) > mostValues:
		return asked{}, errIntricate
	}
	a := asked{names: names}
	if json.Unmarshal(pod, &a.pod) != nil || a.pod == nil {
		return asked{}, errNotPlain
	}
	return a, nil
}

// keep says what is of interest of an object, or of each object in a list: fields by their names, each with what is of
// interest of it in turn. nil is all of it.
type keep map[string]keep

// keptOfPod is what questions are answered by: what subjectOf and what it calls read.
var keptOfPod = keep{
	"metadata": {"name": nil, "namespace": nil, "uid": nil, "labels": nil, "creationTimestamp": nil, "ownerReferences": nil},
	"spec": {
		"containers": keptOfContainer, "initContainers": keptOfContainer, "resources": nil, "overhead": nil,
		"priority": nil, "preemptionPolicy": nil, "nodeSelector": nil, "affinity": {"nodeAffinity": nil}, "tolerations": nil,
	},
	"status": {
		"conditions": nil, "nominatedNodeName": nil, "resources": nil, "allocatedResources": nil, "resize": nil,
		"containerStatuses": keptOfStatus, "initContainerStatuses": keptOfStatus,
	},
}

var (
	keptOfContainer = keep{"name": nil, "resources": nil, "restartPolicy": nil}
	keptOfStatus    = keep{"name": nil, "resources": nil, "allocatedResources": nil}
)

// cut appends the next value with no more of it than is of interest, nil if it is not plain. What is left out may be no JSON.
// It calls itself no deeper than k is.
func (k keep) cut(b []byte, s *scanner) []byte {
	switch s.next() {
	case '{':
		return k.cutObject(b, s)
	case '[':
		return k.cutList(b, s)
	}
	v := s.value()
	if v == nil {
		return nil
	}
	return append(b, v...)
}

func (k keep) cutObject(b []byte, s *scanner) []byte {
	b = append(b, '{')
	comma := false
	ok := s.object(func(key []byte) bool {
		of, kept := k[string(key)]
		if !kept {
			return k.unlike(key) && s.value() != nil
		}
		b = appendComma(b, &comma)
		b = append(b, '"')
		b = append(b, key...)
		b = append(b, '"', ':')
		if of == nil {
			v := s.value()
			b = append(b, v...)
			return v != nil
		}
		b = of.cut(b, s)
		return b != nil
	})
	if !ok {
		return nil
	}
	return append(b, '}')
}

func (k keep) cutList(b []byte, s *scanner) []byte {
	b = append(b, '[')
	comma := false
	ok := s.list(func() bool {
		if s.next() == '[' {
			return false // there are no lists of lists in a pod, but in what is to fill the stack
		}
		b = appendComma(b, &comma)
		b = k.cut(b, s)
		return b != nil
	})
	if !ok {
		return nil
	}
	return append(b, ']')
}

// unlike tells whether a name is that of no field of interest even if capitals do not matter, as they do not to
// encoding/json.
func (k keep) unlike(key []byte) bool {
	for name := range k {
		if len(name) == len(key) && bytes.EqualFold(key, []byte(name)) {
			return false
		}
	}
	return true
}

// scanner goes through JSON without decoding it, and without noticing all that may be wrong with it.
type scanner struct{ rest []byte }

// next returns the first character of the next value, 0 if there is none.
func (s *scanner) next() byte {
	for i, c := range s.rest {
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			s.rest = s.rest[i:]
			return c
		}
	}
	s.rest = nil
	return 0
}

// skip goes past a character, if it is the next.
func (s *scanner) skip(c byte) bool {
	if s.next() != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *scanner) ended() bool { return s.next() == 0 && len(s.rest) == 0 }

// object goes through an object: member is called with the name of each field and goes past its value. It ends early with
// the first false, which is also returned if the object is not plain.
func (s *scanner) object(member func(key []byte) bool) bool {
	if !s.skip('{') {
		return false
	}
	if s.skip('}') {
		return true
	}
	for {
		key, ok := s.text()
		if !ok || !s.skip(':') || !member(key) {
			return false
		}
		if !s.skip(',') {
			return s.skip('}')
		}
	}
}

// list goes through a list in the same way.
func (s *scanner) list(item func() bool) bool {
	if !s.skip('[') {
		return false
	}
	if s.skip(']') {
		return true
	}
	for {
		if !item() {
			return false
		}
		if !s.skip(',') {
			return s.skip(']')
		}
	}
}

// names appends a list of texts, but for what is more than one too many.
func (s *scanner) names(to [][]byte, most int) ([][]byte, bool) {
	ok := s.list(func() bool {
		name, ok := s.text()
		to = append(to, name)
		return ok && len(to) <= most
	})
	return to, ok
}

// text goes past a string, and returns what is in it if that is written as it is.
func (s *scanner) text() ([]byte, bool) {
	if !s.skip('"') {
		return nil, false
	}
	for i, c := range s.rest {
		switch {
		case c == '"':
			text := s.rest[:i]
			s.rest = s.rest[i+1:]
			return text, true
		case c == '\\' || c < ' ' || c >= utf8.RuneSelf:
			return nil, false
		}
	}
	return nil, false
}

// value goes past a value of any kind and returns it as it is written, nil if it does not end.
func (s *scanner) value() []byte {
	switch s.next() {
	case '"', '{', '[':
	default:
		return s.word()
	}
	from, depth := s.rest, 0
	for i := 0; i < len(from); i++ {
		switch from[i] {
		case '"':
			end := closing(from[i+1:])
			if end < 0 {
				return nil
			}
			i += 1 + end
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			continue
		}
		if depth == 0 {
			s.rest = from[i+1:]
			return from[:i+1]
		}
	}
	return nil
}

// closing returns where a string ends that has begun, -1 if it does not.
func closing(b []byte) int {
	for from := 0; ; {
		quote := bytes.IndexByte(b[from:], '"')
		if quote < 0 {
			return -1
		}
		quote += from
		escapes := 0
		for escapes < quote && b[quote-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return quote
		}
		from = quote + 1
	}
}

// word goes past a number or a name, and returns it.
func (s *scanner) word() []byte {
	for i, c := range s.rest {
		switch c {
		case ',', '}', ']', ' ', '\n', '\t', '\r', '"', '{', '[', ':':
			if i == 0 {
				return nil
			}
			word := s.rest[:i]
			s.rest = s.rest[i:]
			return word
		}
	}
	return nil // a question is an object, so that none is at its end
}
