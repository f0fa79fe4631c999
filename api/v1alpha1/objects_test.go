package v1alpha1_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/crdtest"
	"github.com/foresail/foresail/internal/crdtest/invalidtest"
)

// kind is a kind of the API. Its valid objects are in the folder valid of dir, its invalid ones in the table invalid.yaml.
type kind struct {
	name, crd, dir string
	empty          func() runtime.Object
	fillIn         func(runtime.Object)
	ofMethod       [][]string // paths of fields whose default depends on the method, and is none of the CRD's
}

var kinds = []kind{
	{
		name: "PredictedMetric", crd: "../../manifests/crds/foresail.dev_predictedmetrics.yaml", dir: "testdata",
		empty:    func() runtime.Object { return &v1alpha1.PredictedMetric{} },
		fillIn:   func(o runtime.Object) { o.(*v1alpha1.PredictedMetric).Spec.Default() },
		ofMethod: dependOnMethod(),
	},
	{
		name: "WorkerPool", crd: "../../manifests/crds/foresail.dev_workerpools.yaml", dir: "testdata/workerpool",
		empty:  func() runtime.Object { return &v1alpha1.WorkerPool{} },
		fillIn: func(o runtime.Object) { o.(*v1alpha1.WorkerPool).Spec.Default() },
	},
}

// dependOnMethod returns the paths of the fields whose default depends on the method.
func dependOnMethod() (paths [][]string) {
	for _, d := range v1alpha1.MethodDefaults() {
		if d.DependsOnMethod() {
			paths = append(paths, append([]string{"spec"}, strings.Split(d.Field, ".")...))
		}
	}
	return paths
}

// An API server takes 700m and "0.7" for a quantity, and no 0.7: every description says so, with an example that the field takes.
func TestDescriptionsOfQuantitiesSayHowToWriteAFraction(t *testing.T) {
	wholeOrWords := []string{"spec.source.pods.port", "spec.disruption.budgets[].nodes", "spec.provider.ec2.maxPods"}
	written := regexp.MustCompile(`Write (?:a fraction|fractions) as (\d+m) or in quotes, as "(\d+\.\d+)"`)
	for _, k := range kinds {
		data, err := os.ReadFile(k.crd)
		require.NoError(t, err)
		found := 0
		var walk func(path string, schema map[string]any, description string)
		walk = func(path string, schema map[string]any, description string) {
			if of, ok := schema["description"].(string); ok {
				description = strings.Join(strings.Fields(of), " ")
			}
			if schema["x-kubernetes-int-or-string"] == true && !slices.Contains(wholeOrWords, path) {
				found++
				m := written.FindStringSubmatch(description)
				if assert.NotNil(t, m, "%s: %s", path, description) {
					thousandths := resource.MustParse(m[1])
					assert.Zero(t, thousandths.Cmp(resource.MustParse(m[2])), path)
				}
			}
			properties, _ := schema["properties"].(map[string]any)
			for name, of := range properties {
				walk(path+"."+name, of.(map[string]any), "")
			}
			for _, below := range []string{"items", "additionalProperties"} {
				if of, ok := schema[below].(map[string]any); ok {
					walk(path+"[]", of, description)
				}
			}
		}
		spec, _ := at(parse(t, data), "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec").(map[string]any)
		walk("spec", spec, "")
		assert.GreaterOrEqual(t, found, 8, k.name)
	}
}

// The descriptions are what kubectl explain shows; the schema cannot hold a default for each method.
func TestDescriptionsHaveTheDefaultsThatDependOnTheMethod(t *testing.T) {
	data, err := os.ReadFile("../../manifests/crds/foresail.dev_predictedmetrics.yaml")
	require.NoError(t, err)
	spec, ok := at(parse(t, data), "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec").(map[string]any)
	require.True(t, ok)
	for _, d := range v1alpha1.MethodDefaults() {
		field := spec
		for name := range strings.SplitSeq(d.Field, ".") {
			field, ok = at(field, "properties", name).(map[string]any)
			require.True(t, ok, d.Field)
		}
		_, given := field["default"]
		assert.False(t, given, "a default in the schema of %s", d.Field)
		if !d.DependsOnMethod() {
			continue
		}
		description := strings.Join(strings.Fields(field["description"].(string)), " ")
		assert.Contains(t, description, "Default: "+d.Adaptive, d.Field)
		if d.Holt != "" {
			assert.Contains(t, description, "(method Holt: "+d.Holt+")", d.Field)
		}
	}
}

func TestDocumentationHasTheDefaultsThatDependOnTheMethod(t *testing.T) {
	page, err := os.ReadFile("../../docs/hpa.md")
	require.NoError(t, err)
	rows := map[string][]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") && len(cells) == 3 {
			holt := strings.TrimSuffix(strings.TrimSpace(cells[2]), " |")
			rows[strings.Trim(cells[0], "| `")] = []string{cells[1], holt}
		}
	}
	for _, d := range v1alpha1.MethodDefaults() {
		if !d.DependsOnMethod() {
			assert.NotContains(t, rows, d.Field)
			continue
		}
		require.Contains(t, rows, d.Field)
		adaptive, _, _ := strings.Cut(rows[d.Field][0], ",")
		assert.Equal(t, d.Adaptive, adaptive, d.Field)
		if d.Holt != "" {
			assert.Equal(t, d.Holt, rows[d.Field][1], d.Field)
		}
	}
}

// The two rules on spec.provider list every provider, and each provider answers what follows from its spec.
func TestRulesListEveryProvider(t *testing.T) {
	data, err := os.ReadFile("../../manifests/crds/foresail.dev_workerpools.yaml")
	require.NoError(t, err)
	provider, ok := at(parse(t, data), "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", "provider").(map[string]any)
	require.True(t, ok)
	names := v1alpha1.ProviderNames()
	assert.Equal(t, slices.Sorted(maps.Keys(provider["properties"].(map[string]any))), slices.Sorted(slices.Values(names)))
	list := func(of string) string { return "[has(" + of + "." + strings.Join(names, "), has("+of+".") + ")]" }
	assert.Equal(t, list("self")+".exists_one(set, set)", at(provider, "x-kubernetes-validations", 0, "rule"))
	assert.Contains(t, at(provider, "x-kubernetes-validations", 0, "message"), ": "+strings.Join(names, ", "))
	assert.Equal(t, list("self")+" == "+list("oldSelf"), at(provider, "x-kubernetes-validations", 1, "rule"))

	for _, name := range names {
		var p v1alpha1.PoolProvider
		require.NoError(t, json.Unmarshal([]byte(`{"`+name+`":{}}`), &p))
		selected, spec := p.Selected()
		assert.Equal(t, name, selected)
		assert.NotEmpty(t, spec.Summary())
		_, _, labels := spec.NodeShapes()
		assert.NotEmpty(t, labels)
	}
	selected, spec := new(v1alpha1.PoolProvider).Selected()
	assert.Empty(t, selected)
	assert.Nil(t, spec)
}

// at returns what is at a path of keys and indexes in a decoded document.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.(map[string]any)[step]
		case int:
			v = v.([]any)[step]
		}
	}
	return v
}

// each runs a test on every valid object of each kind.
func each(t *testing.T, test func(t *testing.T, k kind, crd *crdtest.Definition, data []byte)) {
	t.Helper()
	for _, k := range kinds {
		crd := crdtest.Load(t, k.crd)
		for name, data := range files(t, filepath.Join(k.dir, "valid")) {
			t.Run(k.name+"/"+name, func(t *testing.T) { test(t, k, crd, data) })
		}
	}
}

func TestValidObjectsAreAccepted(t *testing.T) {
	each(t, func(t *testing.T, k kind, crd *crdtest.Definition, data []byte) {
		object := parse(t, data)
		assert.Equal(t, k.name, object["kind"])
		assert.Empty(t, crd.UnknownFields(object))
		crd.Default(object)
		assert.Empty(t, crd.Validate(object))
		assert.Empty(t, crd.ValidateUpdate(object, object))
	})
}

func TestInvalidObjectsAreRejected(t *testing.T) {
	for _, k := range kinds {
		crd := crdtest.Load(t, k.crd)
		table := invalidtest.Load(t, filepath.Join(k.dir, "invalid.yaml"))
		for _, valid := range table.Valid {
			require.Equal(t, k.name, valid["kind"])
			require.Empty(t, create(t, crd, valid))
		}
		var messages []string
		for _, c := range table.Cases {
			t.Run(k.name+"/"+c.Name, func(t *testing.T) {
				errs := create(t, crd, c.Object)
				if c.Before != nil {
					require.Empty(t, errs, "it could be created")
					require.Empty(t, create(t, crd, c.Before))
					errs = crd.ValidateUpdate(c.Object, c.Before)
				}
				var got []string
				for _, err := range errs {
					got = append(got, err.Error())
				}
				messages = append(messages, got...)
				for _, want := range c.Errors {
					i := slices.IndexFunc(got, want.Matches)
					if assert.GreaterOrEqual(t, i, 0, "%+v is not among %q", want, got) {
						got = slices.Delete(got, i, i+1)
					}
				}
				assert.Empty(t, got, "errors that the case does not name")
			})
		}
		everyRule(t, crd, messages)
	}
}

// create defaults an object and returns the errors that its creation gets.
func create(t *testing.T, crd *crdtest.Definition, object map[string]any) field.ErrorList {
	t.Helper()
	require.Empty(t, crd.UnknownFields(object))
	crd.Default(object)
	return crd.Validate(object)
}

// everyRule checks that each CEL rule of a definition has led to one of the errors, and that its message begins with the path
// of its field, or with the end of it where several fields have the same type.
func everyRule(t *testing.T, crd *crdtest.Definition, errs []string) {
	t.Helper()
	index := regexp.MustCompile(`\[\d+\]`)
	rules := crd.Messages()
	require.Greater(t, len(rules), 30)
	for _, message := range rules {
		field, _, ok := strings.Cut(message, " must ")
		require.True(t, ok, message)
		assert.True(t, slices.ContainsFunc(errs, func(line string) bool {
			path, value, ok := strings.Cut(line, ": Invalid value: ")
			path = index.ReplaceAllString(path, "[]")
			if field == "metadata.name" {
				return path == "<nil>" && value == message // a rule on metadata has no field path
			}
			return ok && strings.HasSuffix(path, "."+field) && (value == message || strings.HasSuffix(value, ": "+message))
		}), "no case leads to: %s", message)
	}
}

func TestDefaultDoesWhatTheAPIServerDoes(t *testing.T) {
	each(t, func(t *testing.T, k kind, crd *crdtest.Definition, data []byte) {
		ours := k.decode(t, parse(t, data))
		k.fillIn(ours)

		object := parse(t, data)
		crd.Default(object)
		theirs := k.decode(t, object)

		// What depends on the method an API server leaves out, and Default fills in where it is done.
		var filledIn map[string]any
		require.NoError(t, json.Unmarshal([]byte(encode(t, ours)), &filledIn))
		for _, path := range k.ofMethod {
			if _, given, _ := unstructured.NestedFieldNoCopy(object, path...); !given {
				unstructured.RemoveNestedField(filledIn, path...)
			}
		}
		assert.JSONEq(t, encode(t, theirs), encode(t, filledIn))
		k.fillIn(theirs)
		assert.Equal(t, encode(t, theirs), encode(t, ours))
		again := ours.DeepCopyObject()
		k.fillIn(again)
		assert.Equal(t, ours, again)
	})
}

// What the types write is what a user wrote: zero values do not turn into defaults on the way, nor the reverse.
func TestTypesKeepWhatTheyRead(t *testing.T) {
	each(t, func(t *testing.T, k kind, crd *crdtest.Definition, data []byte) {
		read := k.decode(t, parse(t, data))
		var written map[string]any
		require.NoError(t, json.Unmarshal([]byte(encode(t, read)), &written))
		crd.Default(written)

		object := parse(t, data)
		crd.Default(object)
		assert.JSONEq(t, encode(t, k.decode(t, object)), encode(t, k.decode(t, written)))
	})
}

func TestAddToScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	for _, k := range kinds {
		assert.True(t, scheme.Recognizes(v1alpha1.GroupVersion.WithKind(k.name)))
		assert.True(t, scheme.Recognizes(v1alpha1.GroupVersion.WithKind(k.name+"List")))
	}
}

// files returns the contents of the YAML files in a directory, by name.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	contents := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		contents[strings.TrimSuffix(filepath.Base(path), ".yaml")] = data
	}
	return contents
}

func parse(t *testing.T, data []byte) map[string]any {
	t.Helper()
	encoded, err := yaml.YAMLToJSONStrict(data)
	require.NoError(t, err)
	object := map[string]any{}
	require.NoError(t, utiljson.Unmarshal(encoded, &object))
	return object
}

func (k kind) decode(t *testing.T, object map[string]any) runtime.Object {
	t.Helper()
	decoded := k.empty()
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object, decoded))
	return decoded
}

func encode(t *testing.T, object any) string {
	t.Helper()
	encoded, err := json.Marshal(object)
	require.NoError(t, err)
	return string(encoded)
}
