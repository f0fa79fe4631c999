package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// describe returns the JSON schema of a chart's values, which rejects unknown ones, and a table of
// them in Markdown.
func describe(values []byte) (schema, table []byte, err error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return nil, nil, err
	}
	d := describer{}
	d.table.WriteString("| value | default | |\n|---|---|---|\n")
	properties, err := d.properties(document.Content[0], "")
	if err != nil {
		return nil, nil, err
	}
	// Helm passes these to a chart that another one depends on.
	properties["global"] = map[string]any{"type": "object",
		"description": "Values of a parent chart, which this one ignores.", "additionalProperties": true}
	properties["enabled"] = map[string]any{"type": "boolean",
		"description": "The condition of a parent chart, which this one ignores."}
	root := closed(properties)
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "Values of the chart foresail"
	schema, err = json.MarshalIndent(root, "", "  ")
	return append(schema, '\n'), []byte(d.table.String()), err
}

// closed is an object that has none but the given properties.
func closed(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

type describer struct{ table strings.Builder }

func (d *describer) properties(mapping *yaml.Node, prefix string) (map[string]any, error) {
	all := map[string]any{}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		property, err := d.property(prefix+key.Value, key.HeadComment, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", prefix+key.Value, err)
		}
		all[key.Value] = property
	}
	return all, nil
}

func (d *describer) property(path, comment string, value *yaml.Node) (map[string]any, error) {
	description, extra, err := parseComment(comment)
	if err != nil {
		return nil, err
	}
	_, open := extra["additionalProperties"]
	if value.Kind == yaml.MappingNode && !open {
		if len(value.Content) == 0 {
			return nil, fmt.Errorf("a mapping of any keys needs a comment with @schema and additionalProperties")
		}
		properties, err := d.properties(value, path+".")
		return closed(properties), err
	}
	if description == "" {
		return nil, fmt.Errorf("a value needs a comment with its description, which begins with --")
	}
	property := map[string]any{"description": description}
	switch {
	case value.Kind == yaml.MappingNode:
		property["type"] = "object"
	case value.Kind == yaml.SequenceNode:
		if extra["items"] == nil {
			return nil, fmt.Errorf("a list needs a comment with @schema and items")
		}
		property["type"] = "array"
	case value.Tag == "!!bool":
		property["type"] = "boolean"
	case value.Tag == "!!int":
		property["type"] = "integer"
	case value.Tag == "!!str":
		property["type"] = "string"
	default:
		return nil, fmt.Errorf("the default is a %s: must be a mapping, a list, a boolean, a whole number or a string",
			value.Tag)
	}
	maps.Copy(property, extra)
	shown, err := printed(value)
	fmt.Fprintf(&d.table, "| `%s` | %s | %s |\n", path, shown, strings.ReplaceAll(description, "|", `\|`))
	return property, err
}

// parseComment returns the description of a value, and what is added to its schema.
func parseComment(comment string) (description string, extra map[string]any, err error) {
	// A paragraph before the last is about the file.
	paragraphs := strings.Split(comment, "\n\n")
	extra = map[string]any{}
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		switch text, isSchema := strings.CutPrefix(line, "@schema "); {
		case isSchema:
			if err := json.Unmarshal([]byte(text), &extra); err != nil {
				return "", nil, fmt.Errorf("@schema %s: %w", text, err)
			}
		case strings.HasPrefix(line, "-- "):
			description = line[3:]
		case description != "":
			description += " " + line
		}
	}
	return description, extra, nil
}

// printed is a default as the table shows it, in one line.
func printed(value *yaml.Node) (string, error) {
	var v any
	if err := value.Decode(&v); err != nil {
		return "", err
	}
	text, err := json.Marshal(v)
	if err != nil || string(text) == `""` {
		return "", err
	}
	if len(text) > 60 {
		return "see values.yaml", nil
	}
	return "`" + strings.Trim(string(text), `"`) + "`", nil
}

const (
	tableStart = "<!-- generated: values -->\n"
	tableEnd   = "<!-- end generated -->"
)

// withTable returns a page with another table of values.
func withTable(path string, table []byte) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	before, rest, ok := bytes.Cut(text, []byte(tableStart))
	_, after, ended := bytes.Cut(rest, []byte(tableEnd))
	if !ok || !ended {
		return nil, fmt.Errorf("%s: no section between %q and %q", path, strings.TrimSpace(tableStart), tableEnd)
	}
	return bytes.Join([][]byte{before, []byte(tableStart), table, []byte(tableEnd), after}, nil), nil
}
