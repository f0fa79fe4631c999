package v1alpha1

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldDefault is the default of one field of a spec, as YAML writes it. Its path is one of names in JSON, such as idle.for;
// [] stands for every item of a list. A field below one that is absent, such as a source, has no default.
type fieldDefault struct{ field, value string }

// MethodDefault is a default of a PredictedMetricSpec that its schema cannot have, by method; "" is none. An object that
// changes its method gets the defaults of the new one.
type MethodDefault struct {
	Field          string // path in the spec, such as horizon.max
	Adaptive, Holt string
	// Least marks a lower bound: the value follows from other fields, and Default leaves the field absent.
	Least bool
}

// DependsOnMethod returns whether the default differs from method to method.
func (d MethodDefault) DependsOnMethod() bool { return d.Adaptive != d.Holt }

// methodDefaults are the defaults that no schema can have: all others stand in the markers of their fields. Tests hold
// pipeline.AdaptiveParams, pipeline.HoltParams and the documentation to both.
var methodDefaults = []MethodDefault{
	{Field: "autoscaler.scaleDownStabilizationSeconds", Adaptive: "30", Holt: "120"},
	{Field: "lateness", Adaptive: "1%"},
	{Field: "staleAfter", Adaptive: "30s", Holt: "30s", Least: true},
	{Field: "horizon.max", Adaptive: "20m", Holt: "40s"},
}

// MethodDefaults returns the defaults that no schema can have.
func MethodDefaults() []MethodDefault { return slices.Clone(methodDefaults) }

// Of returns the default with a method, "" for none.
func (d MethodDefault) Of(method ForecastMethod) string {
	if method == ForecastHolt {
		return d.Holt
	}
	return d.Adaptive
}

// Default fills in every absent field that has a default: as the API server does, and those whose default depends on the
// method, which an API server cannot. staleAfter, whose value follows from others, stays absent.
func (s *PredictedMetricSpec) Default() {
	spec := reflect.ValueOf(s).Elem()
	for _, d := range metricDefaults {
		fillIn(spec, d.field, d.value)
	}
	for _, d := range methodDefaults {
		if value := d.Of(s.Method()); !d.Least && value != "" {
			fillIn(spec, d.Field, value)
		}
	}
}

// DurationAt returns the default of a field that is a duration and depends on the method, or is a lower bound.
func DurationAt(path string, method ForecastMethod) metav1.Duration {
	var d metav1.Duration
	for _, row := range methodDefaults {
		if row.Field == path {
			set(reflect.ValueOf(&d).Elem(), row.Of(method))
		}
	}
	return d
}

// fillIn sets the fields at a path of JSON names that are absent, such as signals[].prometheus.value: one for each item of a
// list, none below an object that is absent.
func fillIn(v reflect.Value, path, value string) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	name, rest, below := strings.Cut(path, ".")
	name, list := strings.CutSuffix(name, "[]")
	field := fieldNamed(v, name)
	switch {
	case list:
		for i := range field.Len() {
			fillIn(field.Index(i), rest, value)
		}
	case below:
		fillIn(field, rest, value)
	case field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0:
		set(field, value)
	}
}

func fieldNamed(v reflect.Value, name string) reflect.Value {
	for field := range v.Type().Fields() {
		if json, _, _ := strings.Cut(field.Tag.Get("json"), ","); json == name {
			return v.FieldByIndex(field.Index)
		}
	}
	panic(fmt.Sprintf("the table of defaults has a field %s that %s lacks", name, v.Type()))
}

// set decodes a default of the table, which a test has shown to fit its field.
func set(field reflect.Value, text string) {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	into := field.Addr().Interface()
	if quantity, ok := into.(*resource.Quantity); ok {
		*quantity = resource.MustParse(text)
		return
	}
	switch field.Kind() {
	case reflect.Bool, reflect.Int32, reflect.Slice, reflect.Map:
	default:
		text = `"` + text + `"`
	}
	must(json.Unmarshal([]byte(text), into))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
