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

// FieldDefault is the default of one field of a PredictedMetricSpec, by method, as YAML writes it; "" is none.
type FieldDefault struct {
	Field          string // path in the spec, such as horizon.max
	Adaptive, Holt string
	// Least marks a lower bound: the value follows from other fields, and Default leaves the field absent.
	Least bool
}

// DependsOnMethod tells whether the default is the same with every method. One that is not is none of the CRD's, so that
// an object that changes its method gets the defaults of the new one.
func (d FieldDefault) DependsOnMethod() bool { return d.Adaptive != d.Holt }

// defaults is the one table of defaults of a PredictedMetric. Tests hold the CRD, pipeline.AdaptiveParams,
// pipeline.HoltParams and the documentation to it. A field below one that is absent, such as a source, has no default.
var defaults = []FieldDefault{
	{Field: "forecast.method", Adaptive: "Adaptive", Holt: "Adaptive"}, // first: the others depend on it
	{Field: "minReplicas", Adaptive: "1", Holt: "1"},
	{Field: "autoscaler.scaleDownStabilizationSeconds", Adaptive: "30", Holt: "120"},
	{Field: "capacityBuffer.minReplicas", Adaptive: "0", Holt: "0"},
	{Field: "capacityBuffer.scaleDownStabilizationSeconds", Adaptive: "300", Holt: "300", Least: true},
	{Field: "capacityBuffer.provisioningStrategy", Adaptive: "buffer.x-k8s.io/active-capacity", Holt: "buffer.x-k8s.io/active-capacity"},
	{Field: "model.type", Adaptive: "Linear", Holt: "Linear"},
	{Field: "saturation.zone", Adaptive: "20m", Holt: "20m"},
	{Field: "forecast.lateness", Adaptive: "1%"},
	{Field: "forecast.noiseMargin", Adaptive: "800m"},
	{Field: "window", Adaptive: "5m", Holt: "90s", Least: true},
	{Field: "sampleInterval", Adaptive: "1s", Holt: "1s"},
	{Field: "staleAfter", Adaptive: "30s", Holt: "30s", Least: true},

	{Field: "source.pods.path", Adaptive: "/metrics", Holt: "/metrics"},
	{Field: "source.pods.type", Adaptive: "Gauge", Holt: "Gauge"},
	{Field: "source.pods.interval", Adaptive: "1s", Holt: "1s"},
	{Field: "source.prometheus.scope", Adaptive: "Pod", Holt: "Pod"},
	{Field: "source.prometheus.podLabel", Adaptive: "pod", Holt: "pod"},
	{Field: "source.prometheus.type", Adaptive: "Gauge", Holt: "Gauge"},
	{Field: "source.prometheus.interval", Adaptive: "5s", Holt: "5s"},
	{Field: "source.remoteWrite.scope", Adaptive: "Pod", Holt: "Pod"},
	{Field: "source.remoteWrite.podLabel", Adaptive: "pod", Holt: "pod"},
	{Field: "source.remoteWrite.type", Adaptive: "Gauge", Holt: "Gauge"},
	{Field: "source.resource.interval", Adaptive: "15s", Holt: "15s"},

	{Field: "redistribution.timeout", Adaptive: "30s", Holt: "30s"},
	{Field: "redistribution.shape", Adaptive: "1", Holt: "1"},
	{Field: "smoothing.levelUp", Adaptive: "200m", Holt: "200m"},
	{Field: "smoothing.levelDown", Adaptive: "100m", Holt: "100m"},
	{Field: "smoothing.trendUp", Adaptive: "200m", Holt: "200m"},
	{Field: "smoothing.trendDown", Adaptive: "100m", Holt: "100m"},

	{Field: "startup.initial", Adaptive: "25s", Holt: "25s"},
	{Field: "startup.measured", Adaptive: "true", Holt: "true"},
	{Field: "horizon.multiplier", Adaptive: "1", Holt: "1200m"},
	{Field: "horizon.min", Adaptive: "10s", Holt: "10s"},
	{Field: "horizon.max", Adaptive: "20m", Holt: "40s"},
	{Field: "horizon.reactionDelay", Adaptive: "15s", Holt: "15s"},

	{Field: "decision.trendAngle", Adaptive: "10", Holt: "10"},
	{Field: "decision.riskFactor", Adaptive: "2", Holt: "2"},
	{Field: "decision.scaleDownMargin", Adaptive: "50m", Holt: "300m"},
	{Field: "decision.spillover", Adaptive: "100m", Holt: "100m"},
	{Field: "decision.maxStep", Adaptive: "0", Holt: "4"},
	{Field: "decision.pendingExpiry", Adaptive: "60s", Holt: "60s"},
	{Field: "cooldown.upAfterUp", Adaptive: "5s", Holt: "5s"},
	{Field: "cooldown.upAfterDown", Adaptive: "5s", Holt: "5s"},
	{Field: "cooldown.downAfterUp", Adaptive: "0s", Holt: "180s"},
	{Field: "cooldown.downAfterDown", Adaptive: "0s", Holt: "60s"},
}

// Defaults returns the table of defaults.
func Defaults() []FieldDefault { return slices.Clone(defaults) }

// Of returns the default with a method, "" for none.
func (d FieldDefault) Of(method ForecastMethod) string {
	if method == ForecastHolt {
		return d.Holt
	}
	return d.Adaptive
}

// Default fills in every absent field that has a default: as the API server does, and those whose default depends on the
// method, which an API server cannot. Fields whose value follows from others, window and staleAfter, stay absent.
func (s *PredictedMetricSpec) Default() {
	for _, d := range defaults {
		value := d.Of(s.Forecast.Method)
		if !d.Least && value != "" {
			fillIn(reflect.ValueOf(s).Elem(), d.Field, value)
		}
	}
}

// DurationAt returns the default of a field that is a duration.
func DurationAt(path string, method ForecastMethod) metav1.Duration {
	var d metav1.Duration
	for _, row := range defaults {
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
