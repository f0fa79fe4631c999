// Package crd validates objects as an API server does that has a given CustomResourceDefinition: by
// its schema and its CEL rules. The command line uses it for files, so that a file gets the errors
// that its object would get.
//
// Objects of the cluster are not validated again: the API server has done that, and a validation
// takes half a millisecond.
package crd

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/manifests/crds"
)

// Definition is a CustomResourceDefinition with one version. It is safe for concurrent use.
type Definition struct {
	structural *schema.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator
}

// PredictedMetrics returns the definition of PredictedMetrics. The first call compiles its rules,
// which takes a tenth of a second.
var PredictedMetrics = sync.OnceValue(func() *Definition {
	d, err := Parse(crds.PredictedMetrics)
	if err != nil {
		panic(err) // the file is a part of the program
	}
	return d
})

// Parse reads a definition in YAML and compiles its rules.
func Parse(text []byte) (*Definition, error) {
	var external apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &external); err != nil {
		return nil, err
	}
	if n := len(external.Spec.Versions); n != 1 {
		return nil, fmt.Errorf("the definition has %d versions: must have one", n)
	}
	var props apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		external.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil)
	if err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return nil, err
	}
	openAPI, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, err
	}
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return &Definition{structural: structural, openAPI: openAPI, rules: rules}, nil
}

// Structural returns the schema.
func (d *Definition) Structural() *schema.Structural { return d.structural }

// UnknownFields removes the fields that the definition does not have, and returns their paths.
func (d *Definition) UnknownFields(object map[string]any) []string {
	options := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	return pruning.PruneWithOptions(object, d.structural, true, options)
}

// Default fills in the defaults of an object in place.
func (d *Definition) Default(object map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, d.structural)
	defaulting.Default(object, d.structural)
}

// Validate returns the errors of an object that has been defaulted and is created. As in an API
// server, CEL rules are not evaluated while the rest of the schema is not met.
func (d *Definition) Validate(object map[string]any) field.ErrorList {
	return d.ValidateUpdate(object, nil)
}

// ValidateUpdate returns the errors of an object that replaces another, both defaulted.
func (d *Definition) ValidateUpdate(object, old map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, d.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	if len(errs) > 0 {
		return errs
	}
	var before any // not a nil map, which would be an object
	if old != nil {
		before = old
	}
	errs, _ = d.rules.Validate(
		context.Background(), nil, d.structural, object, before, celconfig.RuntimeCELCostBudget)
	return errs
}
