package v1alpha1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/crdtest"
)

const crdFile = "../../manifests/crds/foresail.dev_predictedmetrics.yaml"

func TestValidObjectsAreAccepted(t *testing.T) {
	crd := crdtest.Load(t, crdFile)
	for name, data := range files(t, "testdata/valid") {
		t.Run(name, func(t *testing.T) {
			object := parse(t, data)
			assert.Empty(t, crd.UnknownFields(object))
			crd.Default(object)
			assert.Empty(t, crd.Validate(object))
		})
	}
}

// Each file starts with the errors that it earns, a comment line each.
func TestInvalidObjectsAreRefused(t *testing.T) {
	crd := crdtest.Load(t, crdFile)
	for name, data := range files(t, "testdata/invalid") {
		t.Run(name, func(t *testing.T) {
			object := parse(t, data)
			require.Empty(t, crd.UnknownFields(object))
			crd.Default(object)
			want := expected(data)
			require.NotEmpty(t, want)
			var got []string
			for _, err := range crd.Validate(object) {
				got = append(got, err.Error())
			}
			assert.ElementsMatch(t, want, got)
		})
	}
}

func TestEveryMessageHasABadFileAndNamesItsField(t *testing.T) {
	var lines []string
	for _, data := range files(t, "testdata/invalid") {
		lines = append(lines, expected(data)...)
	}
	messages := crdtest.Load(t, crdFile).Messages()
	require.Greater(t, len(messages), 30)
	for _, message := range messages {
		field, _, ok := strings.Cut(message, " must ")
		require.True(t, ok, message)
		path := "spec." + field
		if field == "metadata.name" {
			path = "<nil>" // a rule on metadata has no field path
		}
		assert.True(t, slices.ContainsFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, path+": Invalid value: ") && strings.HasSuffix(line, ": "+message)
		}), "no file in testdata/invalid earns: %s", message)
	}
}

func TestDefaultDoesWhatTheAPIServerDoes(t *testing.T) {
	crd := crdtest.Load(t, crdFile)
	for name, data := range files(t, "testdata/valid") {
		t.Run(name, func(t *testing.T) {
			ours := decode(t, parse(t, data))
			ours.Spec.Default()

			object := parse(t, data)
			crd.Default(object)
			theirs := decode(t, object)

			assert.JSONEq(t, encode(t, theirs), encode(t, ours))
			again := ours.DeepCopy()
			again.Spec.Default()
			assert.Equal(t, ours, again)
		})
	}
}

// What the types write is what a user wrote: zero values do not turn into defaults on the way, nor the reverse.
func TestTypesKeepWhatTheyRead(t *testing.T) {
	crd := crdtest.Load(t, crdFile)
	for name, data := range files(t, "testdata/valid") {
		t.Run(name, func(t *testing.T) {
			read := decode(t, parse(t, data))
			var written map[string]any
			require.NoError(t, json.Unmarshal([]byte(encode(t, read)), &written))
			crd.Default(written)

			object := parse(t, data)
			crd.Default(object)
			assert.JSONEq(t, encode(t, decode(t, object)), encode(t, decode(t, written)))
		})
	}
}

func TestAddToScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	assert.True(t, scheme.Recognizes(v1alpha1.GroupVersion.WithKind("PredictedMetric")))
	assert.True(t, scheme.Recognizes(v1alpha1.GroupVersion.WithKind("PredictedMetricList")))
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

// expected returns the leading comment lines.
func expected(data []byte) []string {
	var lines []string
	for line := range strings.Lines(string(data)) {
		comment, ok := strings.CutPrefix(line, "# ")
		if !ok {
			break
		}
		lines = append(lines, strings.TrimSpace(comment))
	}
	return lines
}

func parse(t *testing.T, data []byte) map[string]any {
	t.Helper()
	encoded, err := yaml.YAMLToJSONStrict(data)
	require.NoError(t, err)
	object := map[string]any{}
	require.NoError(t, utiljson.Unmarshal(encoded, &object))
	return object
}

func decode(t *testing.T, object map[string]any) *v1alpha1.PredictedMetric {
	t.Helper()
	pm := &v1alpha1.PredictedMetric{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object, pm))
	return pm
}

func encode(t *testing.T, object any) string {
	t.Helper()
	encoded, err := json.Marshal(object)
	require.NoError(t, err)
	return string(encoded)
}
