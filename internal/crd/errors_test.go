package crd_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/foresail/foresail/internal/crd"
	"github.com/foresail/foresail/internal/crdtest/invalidtest"
)

// Check finds what an API server finds, for every rule of both kinds, and says it as Foresail's
// other errors are said.
func TestErrorsAreThoseOfTheAPIServer(t *testing.T) {
	for file, table := range map[string]string{"predictedmetrics": "invalid.yaml",
		"workerpools": "workerpool/invalid.yaml"} {
		text, err := os.ReadFile("../../manifests/crds/foresail.dev_" + file + ".yaml")
		require.NoError(t, err)
		d, err := crd.Parse(text)
		require.NoError(t, err)
		for _, c := range invalidtest.Load(t, "../../api/v1alpha1/testdata/"+table).Cases {
			if c.Before != nil {
				continue // of a change: a file has no object before it
			}
			t.Run(file+"/"+c.Name, func(t *testing.T) {
				object := runtime.DeepCopyJSON(c.Object)
				d.Default(object)
				var want []string
				for _, e := range d.Validate(object) {
					if strings.HasSuffix(e.Detail, "(allOf)") || e.Field == "spec" &&
						strings.Contains(e.Detail, " evaluating rule: ") {
						continue // a field has another error
					}
					want = append(want, strings.Replace(e.Field, "<nil>", "metadata.name must", 1))
				}
				require.NotEmpty(t, want)
				err := d.Check(c.Object)
				require.Error(t, err)
				for line := range strings.SplitSeq(err.Error(), "\n") {
					assert.Regexp(t, `^[a-zA-Z.]+[^ ]*: (.*: )?must |^metadata.name must `, line)
					assert.NotContains(t, line, "Invalid value")
					assert.NotContains(t, line, "in body")
					assert.NotContains(t, line, "secret")
				}
				for _, field := range want {
					assert.Contains(t, "\n"+err.Error(), "\n"+field, err)
				}
			})
		}
	}
}

func TestDefinitionsThatCannotBeUsed(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1":               "unknown field",
		"spec: {group: x.y}": "the definition has 0 versions: must have one",
	} {
		_, err := crd.Parse([]byte(text))
		assert.ErrorContains(t, err, want)
	}
}
