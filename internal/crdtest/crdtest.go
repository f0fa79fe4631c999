// Package crdtest loads CustomResourceDefinitions for tests. It requires that an API server would
// accept them.
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
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/internal/crd"
)

// Definition is a CustomResourceDefinition with one version.
type Definition struct{ *crd.Definition }

// loaded are the definitions of this process by file: to compile the rules of one takes a tenth of a second.
var loaded sync.Map

// Load reads a definition from a file, once in a process. The test fails if an API server would not
// accept it; the estimated cost of its CEL rules is a part of that.
func Load(t testing.TB, file string) *Definition {
	t.Helper()
	if d, ok := loaded.Load(file); ok {
		return d.(*Definition)
	}
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	requireAccepted(t, data)
	parsed, err := crd.Parse(data)
	require.NoError(t, err)
	d := &Definition{parsed}
	loaded.Store(file, d)
	return d
}

func requireAccepted(t testing.TB, data []byte) {
	t.Helper()
	var external apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.UnmarshalStrict(data, &external))
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&external)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
	require.Len(t, external.Spec.Versions, 1)
	external.Status.StoredVersions = []string{external.Spec.Versions[0].Name}

	var internal apiextensions.CustomResourceDefinition
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		&external, &internal, nil)
	require.NoError(t, err)
	require.Empty(t, crdvalidation.ValidateCustomResourceDefinition(context.Background(), &internal))
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
	visitor.Visit(d.Structural())
	return messages
}

// CompileErrors returns why an API server of the given minor version would reject the definition's
// CEL rules. In new objects API servers accept only what their previous version knows as well.
func (d *Definition) CompileErrors(minor uint) []string {
	environments := environment.MustBaseEnvSet(version.MajorMinor(1, minor-1))
	var errs []string
	visit := func(s *schema.Structural) bool {
		if len(s.XValidations) == 0 {
			return false
		}
		declared := model.SchemaDeclType(s, s == d.Structural())
		results, err := cel.Compile(s, declared, celconfig.PerCallLimit, environments, cel.NewExpressionsEnvLoader())
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
	visitor.Visit(d.Structural())
	return errs
}
