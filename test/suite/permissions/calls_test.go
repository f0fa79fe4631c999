package permissions

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	awstest "github.com/foresail/foresail/test/env/aws"
)

const (
	root     = "../../../"
	examples = root + "docs/examples/ec2/"
	sdk      = "github.com/aws/aws-sdk-go-v2/service/"
)

// needs are the actions of IAM for operations that need others than the one of their own name.
var needs = map[string][]string{
	"sqs:DeleteMessageBatch": {"sqs:DeleteMessage"},
	"ec2:RunInstances":       {"ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"},
	"ec2:CreateFleet":        {"ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"},
	// it resolves images that are parameters
	"ec2:DescribeLaunchTemplateVersions": {"ec2:DescribeLaunchTemplateVersions", "ssm:GetParameters"},
}

// calls returns the operations of AWS that the code of the module calls, such as ec2:RunInstances:
// whoever calls one makes its input.
func calls(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, folder := range []string{"adapter", "api", "cmd", "internal", "nodepool", "pipeline"} {
		err := filepath.WalkDir(root+folder, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			services := map[string]string{} // names in the file → services
			for _, spec := range parsed.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if service := strings.TrimPrefix(imported, sdk); err == nil && service != imported &&
					!strings.Contains(service, "/") {
					name := path.Base(imported)
					if spec.Name != nil {
						name = spec.Name.Name
					}
					services[name] = service
				}
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				selector, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				of, ok := selector.X.(*ast.Ident)
				operation, isInput := strings.CutSuffix(selector.Sel.Name, "Input")
				if ok && isInput && services[of.Name] != "" {
					found[services[of.Name]+":"+operation] = true
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
	return slices.Sorted(maps.Keys(found))
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(examples + file)
	require.NoError(t, err)
	return string(text)
}

func document(t *testing.T, text string) awstest.Policy {
	t.Helper()
	var p awstest.Policy
	require.NoError(t, json.Unmarshal([]byte(text), &p))
	require.NotEmpty(t, p.Statement)
	return p
}

// TestPolicyAllowsWhatIsCalled fails if the code calls what the policy does not allow, or if the
// policy allows what no code calls. If an operation needs actions of another name, needs has them.
func TestPolicyAllowsWhatIsCalled(t *testing.T) {
	found := calls(t)
	assert.Contains(t, found, "ec2:RunInstances")
	assert.Contains(t, found, "ec2:CreateFleet")
	assert.Contains(t, found, "dynamodb:UpdateItem")
	called := map[string]bool{}
	for _, call := range found {
		actions, ok := needs[call]
		if !ok {
			actions = []string{call}
		}
		for _, action := range actions {
			called[action] = true
		}
	}
	allowed := map[string]bool{}
	for _, s := range document(t, read(t, "policy.json")).Statement {
		for _, action := range s.Action {
			allowed[action] = true
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(called)), slices.Sorted(maps.Keys(allowed)))
}

// TestPolicyIsLimited fails if a statement allows something everywhere and always.
func TestPolicyIsLimited(t *testing.T) {
	for _, file := range []string{"policy.json", "worker-policy.json"} {
		for _, s := range document(t, read(t, file)).Statement {
			assert.Equal(t, "Allow", s.Effect, s.Sid)
			for _, action := range s.Action {
				assert.NotContains(t, action, "*", s.Sid)
			}
			if slices.Contains(s.Resource, "*") {
				assert.NotEmpty(t, s.Condition, s.Sid)
			}
		}
	}
}
