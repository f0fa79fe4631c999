package docs_test

import (
	"cmp"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/internal/docpages"
)

// TestConditionReferenceIsGenerated compares the reference of conditions and reasons with the constants and
// their comments, or writes it (`make docs`).
func TestConditionReferenceIsGenerated(t *testing.T) {
	for _, section := range []struct{ name, file, typ, prefix string }{
		{"conditions", "../api/v1alpha1/status.go", "", "Condition"},
		{"pool-conditions", "../api/v1alpha1/workerpool_status.go", "", "Condition"},
		{"no-forecast", "../adapter/forecast/snapshot/snapshot.go", "Reason", ""},
		{"decisions", "../pipeline/decide/decision.go", "Reason", ""},
		{"pool-decisions", "../nodepool/plan/reason.go", "Reason", ""},
	} {
		entries := constants(t, section.file, section.typ, section.prefix)
		require.NotEmpty(t, entries, section.file)
		docpages.Verify(t, "reference/conditions.md", section.name, docpages.List(entries))
	}
}

// constants returns the string constants of a file that have a type, or a prefix of their names, with their
// comments as sentences.
func constants(t *testing.T, file, typ, prefix string) (entries []docpages.Entry) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	require.NoError(t, err)
	for _, declared := range parsed.Decls {
		group, ok := declared.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			named, _ := value.Type.(*ast.Ident)
			typed := typ == "" || named != nil && named.Name == typ
			if !typed || !strings.HasPrefix(value.Names[0].Name, prefix) {
				continue
			}
			name, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			text := strings.Join(strings.Fields(cmp.Or(value.Comment, value.Doc).Text()), " ")
			text = strings.TrimPrefix(text, value.Names[0].Name+" is ")
			entries = append(entries, docpages.Entry{Name: name, Text: sentence(text)})
		}
	}
	return entries
}

// sentence returns a text with a capital letter and a full stop, or none if there is none.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	if text = strings.ToUpper(text[:1]) + text[1:]; strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// TestFieldReferenceIsGenerated compares the reference of fields with the CRDs, or writes it (`make docs`).
func TestFieldReferenceIsGenerated(t *testing.T) {
	for _, plural := range []string{"predictedmetrics", "workerpools"} {
		text, err := os.ReadFile("../manifests/crds/foresail.dev_" + plural + ".yaml")
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.UnmarshalStrict(text, &crd))
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		docpages.Verify(t, "reference/fields.md", plural, docpages.List(fields(t, "", spec)))
	}
}

// fields returns the fields below a schema in the order of their names, each before its own fields.
func fields(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps) (entries []docpages.Entry) {
	t.Helper()
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		field := schema.Properties[name]
		var note []string
		if slices.Contains(schema.Required, name) {
			note = append(note, "required")
		}
		if field.Default != nil && string(field.Default.Raw) != "{}" {
			note = append(note, value(t, field.Default.Raw))
		}
		text := docpages.Summary(field.Description)
		if text == "" {
			assert.Fail(t, path+name+": has no description")
			continue
		}
		entries = append(entries, docpages.Entry{Name: path + name, Note: strings.Join(note, ", "), Text: text})
		entries = append(entries, fields(t, path+name+".", field)...)
		if field.Items != nil {
			entries = append(entries, fields(t, path+name+"[].", *field.Items.Schema)...)
		}
	}
	return entries
}

// value returns a default as it is written in YAML, or as JSON if it is a list or an object.
func value(t *testing.T, raw []byte) string {
	t.Helper()
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

var rowOfValues = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*?) ?\\| (.*) \\|$")

// TestChartReferenceIsGenerated compares the reference of the chart's values with the table that `make
// generate` makes of values.yaml, or writes it (`make docs`).
func TestChartReferenceIsGenerated(t *testing.T) {
	page, err := os.ReadFile("../manifests/chart/foresail/README.md")
	require.NoError(t, err)
	var entries []docpages.Entry
	for _, row := range rowOfValues.FindAllStringSubmatch(string(page), -1) {
		note := strings.TrimSpace(row[2])
		if slices.Contains([]string{"`false`", "`[]`", "`{}`", `""`}, note) {
			note = ""
		}
		text := docpages.Summary(strings.ReplaceAll(row[3], `\|`, "|"))
		entries = append(entries, docpages.Entry{Name: row[1], Note: note, Text: text})
	}
	require.NotEmpty(t, entries)
	docpages.Verify(t, "reference/chart.md", "values", docpages.List(entries))
}
