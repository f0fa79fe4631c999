package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValuesAreDescribed(t *testing.T) {
	schema, table, err := describe([]byte(`# About the file.

image:
  # -- Tag of the image,
  # in two lines.
  # @schema {"minLength": 1}
  tag: v1
# -- Labels, a|b.
# @schema {"additionalProperties": {"type": "string"}}
labels: {}
# -- Pods.
# @schema {"items": {"type": "string"}}
pods: [a]
`))
	require.NoError(t, err)
	assert.Equal(t, "| value | default | |\n|---|---|---|\n| `image.tag` | `v1` | Tag of the image, in two lines. |\n"+
		"| `labels` | `{}` | Labels, a\\|b. |\n| `pods` | `[\"a\"]` | Pods. |\n", string(table))
	var s struct {
		AdditionalProperties bool
		Properties           map[string]map[string]any
	}
	require.NoError(t, json.Unmarshal(schema, &s))
	assert.False(t, s.AdditionalProperties)
	assert.Equal(t, map[string]any{
		"type": "object", "additionalProperties": false,
		"properties": map[string]any{"tag": map[string]any{"type": "string", "minLength": 1.0,
			"description": "Tag of the image, in two lines."}},
	}, s.Properties["image"])
	assert.Equal(t, map[string]any{"type": "string"}, s.Properties["labels"]["additionalProperties"])
	assert.Contains(t, s.Properties, "global", "Helm passes it to a chart that another one depends on")
}

func TestValuesThatNobodyCouldUnderstandAreRefused(t *testing.T) {
	for values, message := range map[string]string{
		"a: 1":                       "a: a value needs a comment",
		"a: {b: 1}":                  "a: a.b: a value needs a comment",
		"# -- A.\na: {}":             "needs a comment with @schema and additionalProperties",
		"# -- A.\na: []":             "needs a comment with @schema and items",
		"# -- A.\na: 1.5":            "the default is a !!float",
		"# -- A.\n# @schema {\na: 1": "@schema {",
	} {
		_, _, err := describe([]byte(values))
		assert.ErrorContains(t, err, message, values)
	}
}
