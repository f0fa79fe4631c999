package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// fieldReview has a table for each kind: field, who needs it, verdict.
const fieldReview = "decisions/2026-11-27-fields.md"

// maxFields is the number of fields that all specs together may have. A field that is added replaces another one, or
// the review says why the number has to grow.
const maxFields = 171

var reviewRow = regexp.MustCompile("^\\| `([^`]+)` \\| (\\S.*) \\| (stays|alpha) \\|$")

// TestEveryFieldIsReviewed compares the fields of the CRDs, all but status, with the tables of the review. It logs the
// counts: go test -v -run EveryFieldIsReviewed ./docs
func TestEveryFieldIsReviewed(t *testing.T) {
	reviewed := reviewedFields(t)
	inSpecs := 0
	for kind, properties := range propertiesOfCRDs(t) {
		fields, status := map[string]string{}, map[string]string{}
		addFields(status, "", properties["status"])
		addFields(fields, "", properties["spec"])
		inSpecs += len(fields)
		t.Logf("%s: %d fields of spec, %d of status", kind, len(fields), len(status))
		for _, name := range []string{"apiVersion", "kind", "metadata", "spec", "status"} {
			delete(properties, name)
		}
		addFields(fields, "", apiextensionsv1.JSONSchemaProps{Properties: properties})
		assertReviewed(t, kind, fields, reviewed[kind])
	}
	t.Logf("all specs: %d fields", inSpecs)
	assert.LessOrEqual(t, inSpecs, maxFields)
}

// assertReviewed compares the descriptions of fields with the verdicts of the review, both by path.
func assertReviewed(t *testing.T, kind string, fields, verdicts map[string]string) {
	for path, description := range fields {
		verdict, ok := verdicts[path]
		if !assert.True(t, ok, "%s of %s is not in %s: who needs it?", path, kind, fieldReview) {
			continue
		}
		alpha := strings.HasPrefix(description, "Alpha: ")
		assert.Equal(t, verdict == "alpha", alpha, "the description of %s of %s begins with Alpha: if it is alpha", path, kind)
	}
	for path := range verdicts {
		assert.Contains(t, fields, path, "%s of %s is reviewed, and no field of the CRD", path, kind)
	}
}

// propertiesOfCRDs returns the schemas of spec, status and other fields of each kind.
func propertiesOfCRDs(t *testing.T) map[string]map[string]apiextensionsv1.JSONSchemaProps {
	files, err := filepath.Glob("../manifests/crds/foresail.dev_*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	found := map[string]map[string]apiextensionsv1.JSONSchemaProps{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.UnmarshalStrict(content, &crd), file)
		found[crd.Spec.Names.Kind] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	}
	return found
}

// addFields adds the fields below a schema by path, such as signals[].name.
func addFields(into map[string]string, prefix string, schema apiextensionsv1.JSONSchemaProps) {
	for name, property := range schema.Properties {
		into[prefix+name] = property.Description
		addFields(into, prefix+name+".", property)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		addFields(into, strings.TrimSuffix(prefix, ".")+"[].", *schema.Items.Schema)
	}
}

// reviewedFields returns the verdicts of the review by kind and path. Each kind has a heading of its own.
func reviewedFields(t *testing.T) map[string]map[string]string {
	content, err := os.ReadFile(fieldReview)
	require.NoError(t, err)
	verdicts := map[string]map[string]string{}
	var kind string
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			kind = heading
		}
		match := reviewRow.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		if verdicts[kind] == nil {
			verdicts[kind] = map[string]string{}
		}
		assert.NotContains(t, verdicts[kind], match[1], "%s has two rows", match[1])
		verdicts[kind][match[1]] = match[3]
	}
	require.NotEmpty(t, verdicts)
	return verdicts
}
