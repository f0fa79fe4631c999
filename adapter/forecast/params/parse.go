package params

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// ParseSpec reads a spec from YAML or JSON: the spec alone, or a PredictedMetric around it. It fills in no defaults.
// The error joins a *pipeline.FieldError for each field that does not exist and each value that its field cannot hold.
func ParseSpec(data []byte) (v1alpha1.PredictedMetricSpec, error) {
	fields, err := specFields(data)
	if err != nil {
		return v1alpha1.PredictedMetricSpec{}, err
	}
	if errs := misfits("spec", fields, reflect.TypeFor[v1alpha1.PredictedMetricSpec]()); len(errs) > 0 {
		return v1alpha1.PredictedMetricSpec{}, errors.Join(errs...)
	}
	var spec v1alpha1.PredictedMetricSpec
	if err := decode(fields, &spec); err != nil {
		return v1alpha1.PredictedMetricSpec{}, fmt.Errorf("spec: %w", err)
	}
	return spec, nil
}

// specFields returns the fields of a spec, taken out of the PredictedMetric where there is one around it.
func specFields(data []byte) (map[string]any, error) {
	document, err := onlyDocument(data)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := yaml.UnmarshalStrict(document, &fields); err != nil {
		return nil, fmt.Errorf("not a spec in YAML or JSON: %w", err)
	}
	if len(fields) == 0 {
		return nil, errors.New("the spec is empty: threshold is required")
	}
	if _, whole := fields["kind"]; !whole {
		return fields, nil
	}
	return unwrap(fields)
}

func unwrap(object map[string]any) (map[string]any, error) {
	var errs []error
	for _, f := range []struct{ field, accept string }{
		{"apiVersion", v1alpha1.GroupVersion.String()},
		{"kind", "PredictedMetric"},
	} {
		if object[f.field] != f.accept {
			errs = append(errs, &pipeline.FieldError{Field: f.field, Value: object[f.field], Accept: f.accept})
		}
	}
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		errs = append(errs, &pipeline.FieldError{Field: "spec", Value: object["spec"], Accept: "an object"})
	}
	errs = append(errs, unknownFields("", object, []string{"apiVersion", "kind", "metadata", "spec", "status"})...)
	return spec, errors.Join(errs...)
}

// onlyDocument returns the one YAML document in data that is not empty.
func onlyDocument(data []byte) ([]byte, error) {
	var only []byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return only, nil
		}
		if err != nil {
			return nil, fmt.Errorf("not a spec in YAML or JSON: %w", err)
		}
		var content any
		if err := yaml.Unmarshal(document, &content); err == nil && content == nil {
			continue
		}
		if only != nil {
			return nil, errors.New("more than one YAML document: must be one spec or one PredictedMetric")
		}
		only = document
	}
}

// accepted describes the values of types whose decoders do not describe them.
var accepted = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():  "a quantity, such as 700m",
	reflect.TypeFor[metav1.Duration]():    "a duration, such as 90s",
	reflect.TypeFor[metav1.Time]():        "a time with its offset from UTC, such as 2026-11-27T08:00:00+01:00",
	reflect.TypeFor[int32]():              "a whole number of 32 bits",
	reflect.TypeFor[intstr.IntOrString](): "a number or a name",
	reflect.TypeFor[bool]():               "true or false",
	reflect.TypeFor[map[string]string]():  "an object with strings as values",
}

// misfits returns an error for every field below path that type t does not have, and every value it cannot hold. The
// decoders of quantities and durations do not name the field.
func misfits(path string, value any, t reflect.Type) []error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil {
		return nil
	}
	accept, leaf := accepted[t]
	if list, ok := value.([]any); ok && t.Kind() == reflect.Slice {
		var errs []error
		for i, item := range list {
			errs = append(errs, misfits(fmt.Sprintf("%s[%d]", path, i), item, t.Elem())...)
		}
		return errs
	}
	if leaf || t.Kind() != reflect.Struct {
		if fits(value, t) {
			return nil
		}
		switch {
		case t.Kind() == reflect.Slice:
			accept = "a list"
		case !leaf:
			accept = "a string"
		}
		return []error{&pipeline.FieldError{Field: path, Value: value, Accept: accept}}
	}
	object, ok := value.(map[string]any)
	if !ok {
		return []error{&pipeline.FieldError{Field: path, Value: value, Accept: "an object"}}
	}
	return misfitsOf(path, object, t)
}

// longExponent is rejected by the CRD too: to decode 1e-999999999 takes gigabytes.
var longExponent = regexp.MustCompile(`[eE][-+]?[0-9]{3}`)

func fits(value any, t reflect.Type) bool {
	if t == reflect.TypeFor[resource.Quantity]() && longExponent.MatchString(fmt.Sprint(value)) {
		return false
	}
	return decode(value, reflect.New(t).Interface()) == nil
}

func misfitsOf(path string, object map[string]any, t reflect.Type) []error {
	var errs []error
	var known []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		known = append(known, name)
		errs = append(errs, misfits(path+"."+name, object[name], field.Type)...)
	}
	return append(errs, unknownFields(path+".", object, known)...)
}

func unknownFields(prefix string, object map[string]any, known []string) []error {
	var errs []error
	for name := range object {
		if !slices.Contains(known, name) {
			errs = append(errs, &pipeline.FieldError{
				Field: prefix + name, Value: "no such field", Accept: "one of " + strings.Join(known, ", "),
			})
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

func decode(value, into any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(encoded, into)
}
