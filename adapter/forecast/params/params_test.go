package params

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // wherever the test runs

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/crdtest"
	"github.com/foresail/foresail/pipeline"
)

const (
	crdFile  = "../../../manifests/crds/foresail.dev_predictedmetrics.yaml"
	testdata = "../../../api/v1alpha1/testdata"
)

func minimal() v1alpha1.PredictedMetricSpec {
	return v1alpha1.PredictedMetricSpec{Threshold: resource.MustParse("700m"), MaxReplicas: new(int32(20))}
}

func TestHoltDefaultsAreThePipelines(t *testing.T) {
	want := pipeline.HoltParams()
	want.Method = pipeline.Holt
	want.Threshold, want.Max = 0.7, 20
	want.Saturation = pipeline.Saturation{}
	holt := minimal()
	holt.Holt = &v1alpha1.Holt{}
	got, err := FromSpec(holt)
	require.NoError(t, err)
	assert.Equal(t, want, got)

	spec := minimal()
	spec.Saturation = new(resource.MustParse("1"))
	got, err = FromSpec(spec)
	require.NoError(t, err)
	assert.Equal(t, pipeline.Saturation{Enabled: true, Max: 1, Zone: pipeline.HoltParams().Saturation.Zone},
		got.Saturation)
}

func TestAdaptiveDefaultsAreThePipelines(t *testing.T) {
	want := pipeline.AdaptiveParams()
	want.Threshold, want.Max = 0.7, 20
	want.Saturation = pipeline.Saturation{}
	got, err := FromSpec(minimal())
	require.NoError(t, err)
	assert.Equal(t, want, got)

	// The file sets every default that depends on the method.
	got, err = FromSpec(readSpec(t, filepath.Join(testdata, "valid", "adaptive-full.yaml")))
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func TestMaxReplicasAbsentIsNoLimit(t *testing.T) {
	spec := minimal()
	spec.MaxReplicas = nil
	got, err := FromSpec(spec)
	require.NoError(t, err)
	assert.Equal(t, math.MaxInt32, got.Max)
}

// Each field is given a value of its own, so that none can stand in for another.
func TestEveryFieldArrivesWhereItBelongs(t *testing.T) {
	const both = `
threshold: 700m
minReplicas: 4
maxReplicas: 21
baseline: 50m
saturation: 1100m
sampleInterval: 2s
redistributionTimeout: 31s
startupTime: 26s
horizon: {min: 11s, max: 41s, reactionDelay: 16s}
staleAfter: 32s
`
	for own, want := range map[string]pipeline.Params{
		"lateness: 2.5%": pipeline.AdaptiveParams(),
		"holt: {levelUp: 210m, levelDown: 110m, trendUp: 220m, trendDown: 120m}": pipeline.HoltParams(),
	} {
		if want.Method == pipeline.Adaptive {
			want.Lateness = 0.025
		} else {
			want.Method = pipeline.Holt
			want.LevelUp, want.LevelDown, want.TrendUp, want.TrendDown = 0.21, 0.11, 0.22, 0.12
		}
		want.Threshold, want.Min, want.Max = 0.7, 4, 21
		want.Model = pipeline.Model{Kind: pipeline.Overhead, Baseline: 0.05}
		want.Saturation = pipeline.Saturation{Enabled: true, Max: 1.1, Zone: 0.02}
		want.Interval, want.RedistributionTimeout, want.StartupTime = 2*time.Second, 31*time.Second, 26*time.Second
		want.HorizonMin, want.HorizonMax, want.ReactionDelay = 11*time.Second, 41*time.Second, 16*time.Second
		want.StaleAfter = 32 * time.Second

		spec, err := ParseSpec([]byte(both + own))
		require.NoError(t, err)
		given := *spec.DeepCopy()
		got, err := FromSpec(spec)
		require.NoError(t, err)
		assert.Equal(t, given, spec, "the caller's spec has been changed")
		assert.Equal(t, want, got)
	}
}

func TestStaleAfterFollowsTheSource(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		time.Second:      30 * time.Second,
		10 * time.Second: 30 * time.Second,
		15 * time.Second: 45 * time.Second,
	} {
		spec := minimal()
		spec.Source.Pods = &v1alpha1.PodsSource{Interval: &metav1.Duration{Duration: interval}}
		got, err := FromSpec(spec)
		require.NoError(t, err)
		assert.Equal(t, want, got.StaleAfter, "interval %s", interval)
	}
}

func TestAllProblemsAreReported(t *testing.T) {
	_, err := ParseSpec([]byte(`
threshold: 0
holt: {levelUp: 2}
lateness: 1%
horizon: {min: 1m}
baseline: -1
minReplicas: 3
maxReplicas: 2
schedules: [{name: sale, start: "2026-11-27T07:00:00Z", end: "2026-11-27T06:00:00Z", minReplicas: 2}]
`))
	require.Error(t, err)
	assert.ElementsMatch(t, []string{
		"spec.threshold: 0: must be a quantity above 0, such as 700m or \"0.7\"",
		"spec.lateness: 1%: must be absent with holt",
		"spec.holt.levelUp: 2: must be a quantity between 0 and 1, such as 200m",
		"spec.horizon.max: absent: must be at least horizon.min",
		"spec.baseline: -1: must be a quantity of 0 or more, such as 100m",
		"spec.maxReplicas: 2: must be at least minReplicas",
		"spec.schedules[0].end: 2026-11-27T06:00:00Z: must be after start",
	}, strings.Split(err.Error(), "\n"))
}

func TestFromSpecAcceptsWhatTheAPIServerAccepts(t *testing.T) {
	for _, file := range glob(t, "valid") {
		spec := readSpec(t, file)
		_, err := FromSpec(spec)
		assert.NoError(t, err, file)
	}
}

// With random values at and around the bounds, ParseSpec and an API server accept the same specs
// and name the same fields. What they accept FromSpec and the pipeline accept too, which have no
// rules of the API.
func TestFilesAreValidatedAsTheAPIServerValidatesObjects(t *testing.T) {
	crd := crdtest.Load(t, crdFile)
	random := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	const specs = 400
	for range specs {
		object := map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "PredictedMetric",
			"metadata": map[string]any{"name": "random"}, "spec": randomSpec(random)}
		data, err := json.Marshal(object)
		require.NoError(t, err)
		spec, err := ParseSpec(data)

		crd.Default(object)
		problems := crd.Validate(object)
		require.Equal(t, len(problems) == 0, err == nil, "%s\nAPI server: %v\nParseSpec: %v",
			data, problems.ToAggregate(), err)
		if err == nil {
			accepted++
			_, err = FromSpec(spec)
			require.NoError(t, err, string(data))
			continue
		}
		var want []string
		for _, problem := range problems {
			want = append(want, problem.Field)
		}
		assert.ElementsMatch(t, want, fieldsOf(err), "%s\nParseSpec: %v", data, err)
	}
	assert.Greater(t, accepted, specs/10)
	assert.Greater(t, specs-accepted, specs/10)
}

// randomSpec sets a few fields to values at and around their bounds.
func randomSpec(random *rand.Rand) map[string]any {
	one := func(values ...any) any { return values[random.IntN(len(values))] }
	share := []any{"-1m", 0, "0.5", 1, "1001m"}
	span := []any{"-1s", "0s", "1ms", "12s", "1m30s", "40s", "1h"}
	fields := []func(spec map[string]any){
		set("minReplicas", one(0, 1, 2, 20, 21)),
		set("holt", map[string]any{}),
		set("lateness", one("1%", "0%", "50%", "50.1%", "-1%", "1", "%", "0.001%", "0.0001%", "NaN%")),
		set("model", one("Linear", "Quadratic")),
		set("baseline", one("-1m", 0, "100m", "500m", "538m", "539m", "666m", "667m", "0.7")),
		func(spec map[string]any) {
			set("holt", map[string]any{})(spec)
			set("baseline", one(0, "100m", "538m", "539m", "0.7"))(spec)
		},
		set("saturation", one("1", "700m", "701m")),
		set("sampleInterval", one("0s", "1ms", "99ms", "100ms", "1s", "1.5s", "150500us", "45s", "45001ms", "100.5ms")),
		set("redistributionTimeout", one(span...)),
		set("holt.levelUp", one(share...)),
		set("holt.levelDown", one(share...)),
		set("holt.trendUp", one(share...)),
		set("holt.trendDown", one(share...)),
		set("startupTime", one(span...)),
		set("horizon.min", one(span...)),
		set("horizon.max", one(span...)),
		set("horizon.reactionDelay", one(span...)),
		set("staleAfter", one(span...)),
		set("schedules", []any{randomSchedule(one)}),
		set("schedules", []any{randomSchedule(one)}),
	}
	spec := map[string]any{
		"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout"},
		"source":         map[string]any{"pods": map[string]any{"port": "9090", "metric": "load"}},
		"threshold":      "700m", "maxReplicas": int64(20),
	}
	for range random.IntN(4) {
		fields[random.IntN(len(fields))](spec)
	}
	return spec
}

// randomSchedule has a few fields with values at and around their bounds.
func randomSchedule(one func(...any) any) map[string]any {
	out := map[string]any{"name": one("a", "a", "black-friday", "-", "A", strings.Repeat("a", 63))}
	maybe := func(name string, values ...any) {
		if value := one(append(values, nil, nil)...); value != nil {
			out[name] = value
		}
	}
	maybe("schedule", "@daily", "0 8 * * mon-fri", "0 24 * * *", "@every 1h")
	maybe("duration", "1m", "59s", "744h", "744h1m", "1h30m", "90s")
	maybe("timeZone", "Europe/Berlin", "UTC", "Local", "../UTC")
	maybe("start", "2026-11-27T07:00:00Z")
	maybe("end", "2026-11-27T08:00:00+02:00", "2026-11-28T07:00:00Z")
	maybe("minReplicas", int64(-1), int64(0), int64(1), int64(20), int64(21))
	maybe("maxReplicas", int64(0), int64(1), int64(20), int64(21))
	maybe("lateness", "0%", "0.001%", "50%", "51%", "1")
	maybe("learning", "Disabled", "Enabled")
	return out
}

// set returns a function that sets the field at a path of one or two names.
func set(path string, value any) func(map[string]any) {
	if i, ok := value.(int); ok {
		value = int64(i)
	}
	return func(spec map[string]any) {
		parent, name, nested := strings.Cut(path, ".")
		if !nested {
			spec[path] = value
			return
		}
		if spec[parent] == nil {
			spec[parent] = map[string]any{}
		}
		spec[parent].(map[string]any)[name] = value
	}
}

// fieldsOf returns the path that each line of an error begins with.
func fieldsOf(err error) []string {
	var fields []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		field, _, _ := strings.Cut(line, ": ")
		fields = append(fields, field)
	}
	return fields
}

func glob(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testdata, dir, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return paths
}

func readSpec(t *testing.T, file string) v1alpha1.PredictedMetricSpec {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	spec, err := ParseSpec(data)
	require.NoError(t, err, file)
	return spec
}

func TestNumberIsTheNearestFloat(t *testing.T) {
	for text, want := range map[string]float64{
		"700m": 0.7, "0.7": 0.7, "1200m": 1.2, "0.3": 0.3, "1": 1, "10": 10, "-1.5": -1.5, "20m": 0.02, "1n": 1e-9,
		"1k": 1000, "2Ki": 2048, "1e3": 1000, "100u": 1e-4,
	} {
		assert.Equal(t, want, number(resource.MustParse(text)), text)
	}
}

var longExponent = regexp.MustCompile(`[eE][-+]?[0-9]{3}`)

func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"700m", "0.7", "-1", "1e18", "12.5Gi", "999999999n", "0.123456789", "1E40"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if longExponent.MatchString(text) { // to decode 1e-999999999 takes gigabytes: a rule of the API rejects it
			return
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return
		}
		before := q.String()
		got := number(q)
		assert.Equal(t, before, q.String())

		exact, ok := new(big.Rat).SetString(q.AsDec().String())
		require.True(t, ok)
		nearest, _ := exact.Float64()
		assert.Equal(t, nearest, got)
	})
}

func FuzzMilliValuesSurvive(f *testing.F) {
	f.Add(int64(700))
	f.Add(int64(-1))
	f.Fuzz(func(t *testing.T, milli int64) {
		if milli > 1<<50 || milli < -1<<50 {
			return // floats hold no more digits
		}
		assert.Equal(t, float64(milli)/1000, number(*resource.NewMilliQuantity(milli, resource.DecimalSI)))
	})
}

func TestParseSpecAcceptsASpecOrAnObject(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(testdata, "valid", "full.yaml"))
	require.NoError(t, err)
	var object v1alpha1.PredictedMetric
	require.NoError(t, yaml.Unmarshal(whole, &object))
	bare, err := yaml.Marshal(object.Spec)
	require.NoError(t, err)

	fromWhole, err := ParseSpec(whole)
	require.NoError(t, err)
	fromBare, err := ParseSpec(append([]byte("---\n# a comment\n---\n"), bare...))
	require.NoError(t, err)
	assert.Equal(t, encoded(t, object.Spec), encoded(t, fromWhole))
	assert.Equal(t, encoded(t, object.Spec), encoded(t, fromBare))

	fromJSON, err := ParseSpec([]byte(`{"threshold": "0.7", "maxReplicas": 20}`))
	require.NoError(t, err)
	assert.Equal(t, 0.7, number(fromJSON.Threshold))
}

func encoded(t *testing.T, spec v1alpha1.PredictedMetricSpec) string {
	t.Helper()
	data, err := json.Marshal(spec)
	require.NoError(t, err)
	return string(data)
}

func TestParseSpecErrorsNameTheField(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "the spec is empty: threshold is required"},
		"not an object": {"- 1", "not a spec in YAML or JSON"},
		"not YAML":      {"a: [", "not a spec in YAML or JSON"},
		"twice":         {"threshold: 1\nthreshold: 2", `"threshold" already set`},
		"two documents": {"threshold: 1\n---\nthreshold: 2\n",
			"more than one YAML document: must be one spec or one PredictedMetric"},
		"unknown": {"treshold: 700m", "spec.treshold: no such field: must be one of activation, autoscaler, "},
		"missing": {"maxReplicas: 1", "spec.threshold: absent: must be given"},
		"case":    {"maxreplicas: 1", "spec.maxreplicas: no such field: must be one of "},
		"nested": {"holt: {levelup: 1}",
			"spec.holt.levelup: no such field: must be one of levelDown, levelUp, trendDown, trendUp"},
		"quantity": {"threshold: high", `spec.threshold: high: must be a quantity above 0, such as 700m or "0.7"`},
		"fraction": {"threshold: 0.7", `spec.threshold: 0.7: must be a quantity above 0, such as 700m or "0.7"`},
		"exponent": {`threshold: "1e-999999999"`,
			`spec.threshold: 1e-999999999: must be a quantity above 0, such as 700m or "0.7"`},
		"duration": {"startupTime: 90", "spec.startupTime: 90: must be a duration of 0s or more, such as 25s"},
		"unit": {"threshold: 1\nhorizon: {max: 40 s}",
			"spec.horizon.max: 40 s: must be a duration of 0s or more, such as 40s"},
		"count":       {"maxReplicas: 1.5", "spec.maxReplicas: 1.5: must be a whole number"},
		"large count": {"maxReplicas: 3000000000", "spec.maxReplicas: 3000000000: must be a whole number of 32 bits"},
		"flag":        {"dryRun: maybe", "spec.dryRun: maybe: must be true or false"},
		"port": {"source: {pods: {port: 90.9}}",
			"spec.source.pods.port: 90.9: must be a number from 1 to 65535 or the name of a container port"},
		"string": {"source: {pods: {path: 9090}}", "spec.source.pods.path: 9090: must be the path of a URL"},
		"labels": {"source: {pods: {matchLabels: {a: 1}}}", "spec.source.pods.matchLabels.a: 1: must be a string"},
		"object": {"horizon: 20m", "spec.horizon: 20m: must be an object"},
		"enum":   {"threshold: 1\nmodel: linear", "spec.model: linear: must be Linear or Quadratic"},
		"long": {"threshold: 1\nschedules: [{name: " + strings.Repeat("a", 64) + "}]", "spec.schedules[0].name: " +
			strings.Repeat("a", 64) + ": must be shorter: it may not be more than 63 bytes"},
		"kind": {"{apiVersion: foresail.dev/v1alpha1, kind: WorkerPool, spec: {}}",
			"kind: WorkerPool: must be PredictedMetric"},
		"version": {"{apiVersion: foresail.dev/v1, kind: PredictedMetric, spec: {}}",
			"apiVersion: foresail.dev/v1: must be foresail.dev/v1alpha1"},
		"no spec": {"{apiVersion: foresail.dev/v1alpha1, kind: PredictedMetric}", "spec: absent: must be given"},
		"beside spec": {"{apiVersion: foresail.dev/v1alpha1, kind: PredictedMetric, spec: {threshold: 1}, data: {}}",
			"data: no such field: must be one of apiVersion, kind, metadata, spec, status"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSpec([]byte(c.text))
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, dir := range []string{"valid", "invalid"} {
		paths, err := filepath.Glob(filepath.Join(testdata, dir, "*.yaml"))
		require.NoError(f, err)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := ParseSpec(data)
		if err != nil {
			assert.True(t, reflect.ValueOf(spec).IsZero())
			return
		}
		again, err := ParseSpec([]byte(encoded(t, spec)))
		require.NoError(t, err)
		assert.Equal(t, encoded(t, spec), encoded(t, again))
		if p, err := FromSpec(spec); err == nil {
			assert.NoError(t, p.Validate())
		}
	})
}
