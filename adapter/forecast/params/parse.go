package params

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/crd"
	"github.com/foresail/foresail/pipeline"
)

// ParseSpec reads a spec from YAML or JSON: the spec alone, or a PredictedMetric around it. It fills in no defaults.
// The error joins all that an API server would reject, each with the path of its field. A spec in a file may leave out
// target and source.
func ParseSpec(data []byte) (v1alpha1.PredictedMetricSpec, error) {
	text, err := onlyDocument(data)
	if err != nil {
		return v1alpha1.PredictedMetricSpec{}, err
	}
	object, err := parseDocument(text)
	if err != nil {
		return v1alpha1.PredictedMetricSpec{}, err
	}
	fields, err := json.Marshal(object["spec"]) // before the placeholders and the defaults
	if err != nil {
		return v1alpha1.PredictedMetricSpec{}, err
	}
	complete(object)
	if err := crd.PredictedMetrics().Check(object); err != nil {
		return v1alpha1.PredictedMetricSpec{}, err
	}
	var spec v1alpha1.PredictedMetricSpec
	if err := json.Unmarshal(fields, &spec); err != nil {
		return v1alpha1.PredictedMetricSpec{}, fmt.Errorf("spec: %w", err)
	}
	return spec, nil
}

// parseDocument returns the PredictedMetric in a document, made from its spec if that is all there is.
func parseDocument(document []byte) (map[string]any, error) {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, notASpec(err)
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(text, &fields); err != nil {
		return nil, notASpec(err)
	}
	if len(fields) == 0 {
		return nil, errors.New("the spec is empty: threshold is required")
	}
	if _, whole := fields["kind"]; !whole {
		return map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "spec": fields}, nil
	}
	return fields, isMetric(fields)
}

const kind = "PredictedMetric"

// isMetric returns an error unless an object is a PredictedMetric.
func isMetric(object map[string]any) error {
	var errs []error
	for _, f := range [][2]string{{"apiVersion", v1alpha1.GroupVersion.String()}, {"kind", kind}} {
		if name, accept := f[0], f[1]; object[name] != accept {
			errs = append(errs, &pipeline.FieldError{Field: name, Value: object[name], Accept: accept})
		}
	}
	return errors.Join(errs...)
}

// complete adds a name, a target and a source where an object has none, so that the rest can be validated.
func complete(object map[string]any) {
	add(object, "metadata", map[string]any{"name": "spec"})
	if spec, ok := object["spec"].(map[string]any); ok {
		add(spec, "scaleTargetRef", map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "target"})
		add(spec, "source", map[string]any{"pods": map[string]any{"port": int64(1), "metric": "load"}})
	}
}

// add sets a field that is absent, or empty as Go's types write it.
func add(object map[string]any, name string, value map[string]any) {
	given, isObject := object[name].(map[string]any)
	for _, v := range given {
		if v != "" && v != nil {
			return
		}
	}
	if isObject || object[name] == nil {
		object[name] = value
	}
}

func notASpec(err error) error { return fmt.Errorf("not a spec in YAML or JSON: %w", err) }

// onlyDocument returns the one YAML document in data that is not empty.
func onlyDocument(data []byte) ([]byte, error) {
	var only []byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return only, nil
		}
		if err != nil {
			return nil, notASpec(err)
		}
		var content any
		if err := yaml.Unmarshal(document, &content); err == nil && content == nil {
			continue
		}
		if only != nil {
			return nil, errors.New("more than one YAML document: must be one spec or one PredictedMetric")
		}
		only = document
	}
}
