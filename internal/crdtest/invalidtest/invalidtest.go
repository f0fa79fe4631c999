// Package invalidtest reads tables of objects that a CustomResourceDefinition rejects. Each is a
// valid object with a change.
package invalidtest

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Table is a file of cases, and the valid objects that these change.
type Table struct {
	Valid []map[string]any
	Cases []Case
}

// Case is one row of a table.
type Case struct {
	Name   string         // the change
	Object map[string]any // is rejected
	Before map[string]any // is valid, and replaced by Object in an update; nil if Object is created
	Errors []Error        // all that Object gets
}

// Error is an error of an API server: the path of a field, and a part of what is said about it.
type Error struct{ Field, Part string }

// Matches reports whether an API server's message is about the error. That a rule cannot be
// evaluated is another one, unless Part has it.
func (e Error) Matches(message string) bool {
	const failed = "evaluating rule: "
	about, ok := strings.CutPrefix(message, e.Field+": ")
	return ok && strings.Contains(about, e.Part) && strings.Contains(about, failed) == strings.Contains(e.Part, failed)
}

// Load reads a table.
func Load(t testing.TB, file string) Table {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	encoded, err := yaml.YAMLToJSONStrict(data)
	require.NoError(t, err)
	var groups []any
	require.NoError(t, utiljson.Unmarshal(encoded, &groups))
	var table Table
	for _, group := range groups {
		group := only(t, group, "valid", "cases")
		valid := group["valid"].(map[string]any)
		table.Valid = append(table.Valid, valid)
		for _, row := range group["cases"].([]any) {
			table.Cases = append(table.Cases, read(t, valid, only(t, row, "metadata", "spec", "before", "errors")))
		}
	}
	require.NotEmpty(t, table.Cases)
	return table
}

// only returns an object that has no other keys than those given.
func only(t testing.TB, object any, keys ...string) map[string]any {
	t.Helper()
	fields, ok := object.(map[string]any)
	require.True(t, ok, "%v", object)
	require.Subset(t, keys, slices.Collect(maps.Keys(fields)))
	return fields
}

func read(t testing.TB, valid, row map[string]any) Case {
	t.Helper()
	change := map[string]any{}
	for _, key := range []string{"metadata", "spec"} {
		if part, ok := row[key]; ok {
			change[key] = part
		}
	}
	name, err := json.Marshal(change)
	require.NoError(t, err)
	c := Case{Name: strings.ReplaceAll(string(name), `"`, ""), Object: merge(runtime.DeepCopyJSON(valid), change)}
	if before, ok := row["before"]; ok {
		c.Before = merge(runtime.DeepCopyJSON(valid), map[string]any{"spec": before})
	}
	for _, text := range row["errors"].([]any) {
		field, part, _ := strings.Cut(text.(string), ": ")
		c.Errors = append(c.Errors, Error{field, part})
	}
	return c
}

// merge puts a change into an object as a merge patch (RFC 7386) does: null removes a field, and
// lists are replaced.
func merge(object, change map[string]any) map[string]any {
	for key, value := range change {
		nested, isObject := value.(map[string]any)
		switch old, _ := object[key].(map[string]any); {
		case value == nil:
			delete(object, key)
		case !isObject:
			object[key] = value
		case old == nil:
			object[key] = merge(map[string]any{}, nested)
		default:
			merge(old, nested)
		}
	}
	return object
}
