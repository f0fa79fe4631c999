// Package terraform evaluates what docs/examples/ec2/main.tf says, without Terraform and without
// the provider of AWS. It is a module of its own for the language of Terraform, which nothing else
// needs.
package terraform

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

const examples = "../../../../docs/examples/ec2/"

// known is what only AWS knows: identifiers that a plan would say are known after apply.
var known = map[string]cty.Value{
	"data": object("aws_partition", object("current", object("partition", cty.StringVal("aws"))),
		"aws_region", object("current", object("name", cty.StringVal("eu-central-1"))),
		"aws_caller_identity", object("current", object("account_id", cty.StringVal("123456789012")))),
	"aws_launch_template": object("workers", object("id", cty.StringVal("lt-1"))),
	"aws_iam_role": object("workers",
		object("name", cty.StringVal("workers-role"), "arn",
			cty.StringVal("arn:aws:iam::123456789012:role/workers-role"))),
	"aws_sqs_queue": object("interruptions", object("name", cty.StringVal("queue"))),
	"path":          object("module", cty.StringVal(examples)),
}

func object(keysAndValues ...any) cty.Value {
	of := map[string]cty.Value{}
	for i := 0; i < len(keysAndValues); i += 2 {
		of[keysAndValues[i].(string)] = keysAndValues[i+1].(cty.Value)
	}
	return cty.ObjectVal(of)
}

// functions are those of Terraform that main.tf calls.
var functions = map[string]function.Function{
	"jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc, "lookup": stdlib.LookupFunc,
	"templatefile": function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}, {Name: "values", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, err := os.ReadFile(args[0].AsString())
			if err != nil {
				return cty.NilVal, err
			}
			template, problems := hclsyntax.ParseTemplate(text, args[0].AsString(), hcl.InitialPos)
			if problems.HasErrors() {
				return cty.NilVal, problems
			}
			value, problems := template.Value(&hcl.EvalContext{Variables: args[1].AsValueMap()})
			if problems.HasErrors() {
				return cty.NilVal, problems
			}
			return value, nil
		},
	}),
}

// module is main.tf with values of its variables.
type module struct {
	*testing.T
	body    *hclsyntax.Body
	context *hcl.EvalContext
}

func load(t *testing.T, given map[string]string) module {
	t.Helper()
	text, err := os.ReadFile(examples + "main.tf")
	require.NoError(t, err)
	file, problems := hclsyntax.ParseConfig(text, "main.tf", hcl.InitialPos)
	require.False(t, problems.HasErrors(), "%v", problems)
	m := module{t, file.Body.(*hclsyntax.Body), &hcl.EvalContext{Variables: maps.Clone(known), Functions: functions}}
	variables := map[string]cty.Value{}
	for _, block := range m.body.Blocks {
		if block.Type != "variable" {
			continue
		}
		name := block.Labels[0]
		if value, ok := given[name]; ok {
			variables[name] = cty.StringVal(value)
		} else if standard := block.Body.Attributes["default"]; standard != nil {
			variables[name] = m.value(standard.Expr)
		}
	}
	m.context.Variables["var"] = cty.ObjectVal(variables)
	locals := map[string]cty.Value{}
	for name, local := range m.block("locals").Body.Attributes {
		locals[name] = m.value(local.Expr) // none of them refers to another
	}
	m.context.Variables["local"] = cty.ObjectVal(locals)
	return m
}

func (m module) block(kind string, labels ...string) *hclsyntax.Block {
	m.Helper()
	i := slices.IndexFunc(m.body.Blocks, func(b *hclsyntax.Block) bool {
		return b.Type == kind &&
			slices.Equal(b.Labels, labels)
	})
	require.NotEqual(m, -1, i, "there is no %s %v", kind, labels)
	return m.body.Blocks[i]
}

func (m module) value(expression hclsyntax.Expression) cty.Value {
	m.Helper()
	value, problems := expression.Value(m.context)
	require.False(m, problems.HasErrors(), "%v", problems)
	return value
}

// argument returns an argument of a resource, as what its JSON says where it is JSON.
func (m module) argument(kind, name, argument string) any {
	m.Helper()
	value := m.value(m.block("resource", kind, name).Body.Attributes[argument].Expr)
	if value.Type() != cty.String {
		number, _ := value.AsBigFloat().Int64()
		return number
	}
	var parsed any
	require.NoError(m, json.Unmarshal([]byte(value.AsString()), &parsed))
	return parsed
}

var placeholder = regexp.MustCompile(`\$\{(\w+)\}`)

// filled returns the statements of a policy with the values of the module, without those that are named.
func filled(t *testing.T, file string, values map[string]string, without ...string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(examples, file))
	require.NoError(t, err)
	var policy map[string]any
	require.NoError(t, json.Unmarshal(placeholder.ReplaceAllFunc(text, func(name []byte) []byte {
		value, ok := values[strings.Trim(string(name), "${}")]
		require.True(t, ok, "there is no value for %s", name)
		return []byte(value)
	}), &policy))
	policy["Statement"] = slices.DeleteFunc(policy["Statement"].([]any),
		func(s any) bool { return slices.Contains(without, s.(map[string]any)["Sid"].(string)) })
	return policy
}

// TestPolicies compares the policies of the module with the files that the template of
// CloudFormation and the calls of the code are compared with.
func TestPolicies(t *testing.T) {
	values := map[string]string{
		"Partition": "aws", "Region": "eu-central-1", "Account": "123456789012", "Cluster": "uid-1", "Pool": "workers",
		"LaunchTemplate": "lt-1",
		"WorkerRole":     "workers-role", "Queue": "queue", "JournalTable": "journals", "MetricNamespace": "Foresail",
		"TokenParameter": "/foresail/workers/token",
	}
	given := map[string]string{"cluster": "uid-1", "pool": "workers", "token_parameter": "/foresail/workers/token"}
	m := load(t, given)
	assert.Equal(t, filled(t, "policy.json", values, "KeepTheJournal", "SendMetrics"),
		m.argument("aws_iam_policy", "controller", "policy"))
	assert.Equal(t, filled(t, "worker-policy.json", values), m.argument("aws_iam_role_policy", "workers", "policy"))

	given["journal_table"], given["metric_namespace"] = "journals", "Foresail"
	assert.Equal(t, filled(t, "policy.json", values), load(t, given).argument("aws_iam_policy", "controller", "policy"))
}

// TestWhoGetsTheRole has the ways in which Foresail gets its role, as the stacks of CloudFormation
// in test/suite/permissions.
func TestWhoGetsTheRole(t *testing.T) {
	const issuer = "oidc.eks.eu-central-1.amazonaws.com/id/0123456789ABCDEF"
	service := func(name string) map[string]any {
		return map[string]any{"Effect": "Allow", "Principal": map[string]any{"Service": name},
			"Action": []any{"sts:AssumeRole", "sts:TagSession"}}
	}
	for name, c := range map[string]struct {
		given map[string]string
		want  map[string]any
		roles int64
		by    int64 // instance profiles
	}{
		"Pod Identity": {nil, service("pods.eks.amazonaws.com"), 1, 0},
		"instance": {map[string]string{"controller_service": "ec2.amazonaws.com"}, service("ec2.amazonaws.com"), 1,
			1},
		"a role that there is": {
			map[string]string{"controller_service": "ec2.amazonaws.com",
				"controller_role": "foresail"}, service("ec2.amazonaws.com"), 0, 0,
		},
		"IRSA": {map[string]string{"oidc_provider": issuer, "controller_service": "ec2.amazonaws.com"}, map[string]any{
			"Effect": "Allow", "Action": "sts:AssumeRoleWithWebIdentity",
			"Principal": map[string]any{"Federated": "arn:aws:iam::123456789012:oidc-provider/" + issuer},
			"Condition": map[string]any{
				"StringEquals": map[string]any{issuer + ":aud": "sts.amazonaws.com",
					issuer + ":sub": "system:serviceaccount:foresail-system:foresail"},
			},
		}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			given := map[string]string{"cluster": "uid-1", "pool": "workers"}
			maps.Copy(given, c.given)
			m := load(t, given)
			assert.Equal(t, map[string]any{"Version": "2012-10-17", "Statement": []any{c.want}},
				m.argument("aws_iam_role", "controller", "assume_role_policy"))
			assert.Equal(t, c.roles, m.argument("aws_iam_role", "controller", "count"))
			assert.Equal(t, c.by, m.argument("aws_iam_instance_profile", "controller", "count"))
		})
	}
}
