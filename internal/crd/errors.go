package crd

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Check fills in the defaults of an object in place, and returns all its errors, joined: unknown
// fields, and what [Definition.Validate] returns. Each has the path of a field, its value unless
// that is an object or a list, and what would be accepted: "spec.holt.levelUp: 2: must be a
// quantity between 0 and 1, such as 200m".
func (d *Definition) Check(object map[string]any) error {
	var lines []string
	for _, path := range d.UnknownFields(object) {
		lines = append(lines, d.unknown(path)...)
	}
	d.Default(object)
	var consequences []string
	for _, e := range d.Validate(object) {
		switch {
		case strings.HasSuffix(e.Detail, allOf):
		case strings.Contains(e.Detail, failed) && valueAt(object, e.Field) == "":
			consequences = append(consequences, d.describe(e, object))
		default:
			lines = append(lines, d.describe(e, object))
		}
	}
	if len(lines) == 0 {
		lines = consequences
	}
	slices.Sort(lines) // the schema validates fields in no order
	var errs []error
	for _, line := range slices.Compact(lines) {
		errs = append(errs, errors.New(line))
	}
	return errors.Join(errs...)
}

const (
	// allOf ends an error that only says that a field has another error.
	allOf = " must validate all the schemas (allOf)"
	// failed precedes the message of a rule that cannot be evaluated, as one of its functions
	// rejects a value. That of an object is a consequence of an error of the field with the value.
	failed = " evaluating rule: "
)

// unknown describes a field that its object does not have; there is nothing to describe if it is no object.
func (d *Definition) unknown(path string) []string {
	parent := d.structural
	if i := strings.LastIndex(path, "."); i >= 0 {
		parent = d.at(path[:i])
	}
	if parent == nil || len(parent.Properties) == 0 {
		return nil
	}
	known := strings.Join(slices.Sorted(maps.Keys(parent.Properties)), ", ")
	return []string{fmt.Sprintf("%s: no such field: must be one of %s", path, known)}
}

// describe returns an error of the schema in the words of Foresail's other errors.
func (d *Definition) describe(e *field.Error, object map[string]any) string {
	e = placed(e)
	accept := d.accepted(e)
	switch {
	case accept == "":
		return e.Error()
	case e.Field == "<nil>": // a rule about metadata, which no rule can name
		return e.Detail
	}
	value := valueAt(object, e.Field)
	if value != "" {
		value += ": "
	}
	return fmt.Sprintf("%s: %smust %s", e.Field, value, accept)
}

// placed returns an error with its field, which that of a number of too many bits has in its text alone.
func placed(e *field.Error) *field.Error {
	const text = "Checked value must be of type "
	before, path, ok := strings.Cut(e.Detail, " in ")
	if !ok || !strings.HasPrefix(before, text) {
		return e
	}
	return &field.Error{Type: field.ErrorTypeTypeInvalid, Field: path, Detail: before}
}

// accepted returns what follows "must" in an error; "" for errors that no value in a file leads to.
func (d *Definition) accepted(e *field.Error) string {
	switch e.Type {
	case field.ErrorTypeRequired:
		return "be given"
	case field.ErrorTypeDuplicate:
		return "be the only one with " + keyOf(e.BadValue)
	case field.ErrorTypeNotSupported:
		_, values, _ := strings.Cut(e.Detail, ": ")
		return "be " + strings.ReplaceAll(strings.ReplaceAll(values, `"`, ""), ", ", " or ")
	case field.ErrorTypeTooLong, field.ErrorTypeTooMany:
		return "be shorter: it " + e.Detail
	case field.ErrorTypeTypeInvalid:
		return d.ofType(e)
	}
	rule := e.Detail
	if _, message, ok := strings.Cut(rule, failed); ok {
		rule = message
	}
	if _, accept, ok := strings.Cut(" "+rule, " must "); ok && !strings.Contains(rule, " must be of type ") {
		return accept
	}
	if accept := d.byRule(e.Field); accept != "" {
		return accept
	}
	_, accept, _ := strings.Cut(rule, " in body should ") // of a pattern, a least length or a bound
	return accept
}

// keyOf describes what an item of a list shares with another one.
func keyOf(value any) string {
	key, ok := value.(map[string]any)
	if !ok {
		return fmt.Sprintf("the value %v", value)
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(key)) {
		fields = append(fields, fmt.Sprintf("%s %v", name, key[name]))
	}
	return strings.Join(fields, " and ")
}

// typeNames has words for types that no rule of a field describes.
var typeNames = map[string]string{
	"integer": "be a whole number", "integer with format int32": "be a whole number of 32 bits",
	"boolean": "be true or false", "object": "be an object", "array": "be a list",
	"date-time": "be a time with its offset from UTC, such as 2026-11-27T08:00:00+01:00",
}

// ofType returns what a field accepts whose value has another type or format.
func (d *Definition) ofType(e *field.Error) string {
	_, expected, _ := strings.Cut(e.Detail, " must be of type ")
	expected, _, _ = strings.Cut(expected, ":")
	if words, ok := typeNames[expected]; ok {
		return words
	}
	if accept := d.byRule(e.Field); accept != "" {
		return accept
	}
	return "be a " + expected
}

// byRule returns what the first rule of a field accepts: a value that breaks its type, its pattern
// or its format breaks that too, and the message of the rule says more. It is "" for a field
// without rules.
func (d *Definition) byRule(path string) string {
	s := d.at(path)
	if s == nil || len(s.XValidations) == 0 {
		return ""
	}
	_, accept, _ := strings.Cut(s.XValidations[0].Message, " must ")
	return accept
}

// at returns the schema at a path, such as spec.schedules[0].name; nil if there is none.
func (d *Definition) at(path string) *schema.Structural {
	s := d.structural
	for _, step := range steps(path) {
		if s == nil {
			return nil
		}
		if _, err := strconv.Atoi(step); err == nil && s.Items != nil {
			s = s.Items
			continue
		}
		next, ok := s.Properties[step]
		if !ok {
			return nil
		}
		s = &next
	}
	return s
}

// maxValue bounds how much of a value an error has, in bytes.
const maxValue = 100

// credentials matches those in a URL.
var credentials = regexp.MustCompile(`://[^/@]*@`)

// valueAt returns the value at a path for an error, "" for an object or a list.
func valueAt(object map[string]any, path string) string {
	var v any = object
	for _, step := range steps(path) {
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(in) {
				return ""
			}
			v = in[i]
		default:
			return ""
		}
	}
	switch v := v.(type) {
	case nil:
		return "absent"
	case map[string]any, []any:
		return ""
	case string:
		if v == "" {
			return `""`
		}
		v = credentials.ReplaceAllString(v, "://…@")
		if len(v) > maxValue {
			return strings.ToValidUTF8(v[:maxValue], "") + "..."
		}
		return v
	}
	return fmt.Sprint(v)
}

// steps returns the names and indexes of a path.
func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}
