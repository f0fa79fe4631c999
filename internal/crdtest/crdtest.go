// Package crdtest treats objects as an API server does that has a given CustomResourceDefinition: it defaults and
// validates them, CEL rules included, in the process of the test.
package crdtest

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// Definition is a CustomResourceDefinition with one version.
type Definition struct {
	structural *schema.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator
}

// loaded are the definitions of this process by file: to compile the rules of one takes a tenth of a second.
var loaded sync.Map

// Load reads a definition from a file, once in a process. The test fails if an API server would not take it; the estimated
// cost of its CEL rules is a part of that.
func Load(t testing.TB, file string) *Definition {
	t.Helper()
	if d, ok := loaded.Load(file); ok {
		return d.(*Definition)
	}
	d := load(t, file)
	loaded.Store(file, d)
	return d
}

func load(t testing.TB, file string) *Definition {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var external apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.UnmarshalStrict(data, &external))
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&external)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
	require.Len(t, external.Spec.Versions, 1)
	external.Status.StoredVersions = []string{external.Spec.Versions[0].Name}

	var crd apiextensions.CustomResourceDefinition
	require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&external, &crd, nil))
	require.Empty(t, crdvalidation.ValidateCustomResourceDefinition(context.Background(), &crd))
	return compile(t, crd.Spec.Validation.OpenAPIV3Schema)
}

func compile(t testing.TB, props *apiextensions.JSONSchemaProps) *Definition {
	t.Helper()
	structural, err := schema.NewStructural(props)
	require.NoError(t, err)
	openAPI, _, err := validation.NewSchemaValidator(props)
	require.NoError(t, err)
	return &Definition{
		structural: structural,
		openAPI:    openAPI,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}
}

// UnknownFields returns the paths of fields that the definition does not know.
func (d *Definition) UnknownFields(object map[string]any) []string {
	return pruning.PruneWithOptions(object, d.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Default fills in the defaults of an object in place.
func (d *Definition) Default(object map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, d.structural)
	defaulting.Default(object, d.structural)
}

// Validate returns what is wrong with an object that has been defaulted and is created. As in an API server, CEL rules are
// not looked at while the rest of the schema is not met.
func (d *Definition) Validate(object map[string]any) field.ErrorList {
	return d.ValidateUpdate(object, nil)
}

// ValidateUpdate returns what is wrong with an object that takes the place of another, both defaulted.
func (d *Definition) ValidateUpdate(object, old map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, d.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	if len(errs) > 0 {
		return errs
	}
	var before any // not a map that is nil: there is nothing
	if old != nil {
		before = old
	}
	errs, _ = d.rules.Validate(context.Background(), nil, d.structural, object, before, celconfig.RuntimeCELCostBudget)
	return errs
}

// Messages returns the message of every CEL rule.
func (d *Definition) Messages() []string {
	var messages []string
	visitor := schema.Visitor{Structural: func(s *schema.Structural) bool {
		for _, rule := range s.XValidations {
			messages = append(messages, rule.Message)
		}
		return false
	}}
	visitor.Visit(d.structural)
	return messages
}

// CompileErrors returns why an API server of the given minor version would reject the definition's CEL rules. In new objects
// API servers take only what their previous version knows as well.
func (d *Definition) CompileErrors(minor uint) []string {
	environments := environment.MustBaseEnvSet(version.MajorMinor(1, minor-1))
	var errs []string
	visit := func(s *schema.Structural) bool {
		if len(s.XValidations) == 0 {
			return false
		}
		results, err := cel.Compile(s, model.SchemaDeclType(s, s == d.structural), celconfig.PerCallLimit, environments, cel.NewExpressionsEnvLoader())
		if err != nil {
			errs = append(errs, err.Error())
		}
		for i, result := range results {
			if result.Error != nil {
				errs = append(errs, s.XValidations[i].Rule+": "+result.Error.Detail)
			}
		}
		return false
	}
	visitor := schema.Visitor{Structural: visit}
	visitor.Visit(d.structural)
	return errs
}
