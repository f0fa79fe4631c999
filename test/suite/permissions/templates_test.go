package permissions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	awstest "github.com/foresail/foresail/test/env/aws"
)

// stack is what CloudFormation has made of the template.
type stack struct {
	Status             string
	Outputs            map[string]string
	Controller, Worker awstest.Policy
	Trust              struct{ Statement []trust } // who may take Foresail's role
	Patterns           []struct {
		Source     []string
		DetailType []string `json:"detail-type"`
		Detail     map[string][]string
	}
	Queue              map[string]string
	LaunchTemplateData struct {
		MetadataOptions struct {
			HTTPTokens              string `json:"HttpTokens"`
			HTTPPutResponseHopLimit int    `json:"HttpPutResponseHopLimit"`
		}
		UserData         string
		SecurityGroupIDs []string `json:"SecurityGroupIds"`
	}
}

// template is the template of CloudFormation.
type template struct {
	Parameters map[string]any
	Resources  map[string]struct {
		Type       string
		Properties map[string]any
	}
}

// trust is a statement of who may take a role.
type trust struct {
	Effect    string
	Principal map[string]string
	Action    any // a text, or several
	Condition map[string]map[string]string
}

// run runs a script with the Python that has moto.
func run(ctx context.Context, script string, args ...string) ([]byte, error) {
	interpreter, err := awstest.Build(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, interpreter, append([]string{"-W", "ignore", script}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s\n%s", script, err, output, &stderr)
	}
	return output, nil
}

// templates returns the examples as cfn-lint and python-hcl2 read them, once: to load cfn-lint
// takes a second.
var templates = sync.OnceValues(func() (parsed struct {
	CloudFormation template
	Terraform      terraform
}, err error) {
	output, err := run(context.Background(), "testdata/templates.py", examples+"cloudformation.yaml",
		examples+"main.tf")
	if err != nil {
		return parsed, err
	}
	return parsed, json.Unmarshal(output, &parsed)
})

const (
	cluster, pool, table, namespace = "uid-1", "workers", "journals", "Foresail"
	image                           = "ami-12c6146b"
	tokenParameter                  = "/foresail/workers/token" //nolint:gosec // a name
)

// create makes a stack of the template. Changes are parameters that differ.
func create(t *testing.T, c *awstest.Cloud, changes ...map[string]string) stack {
	t.Helper()
	groups, err := ec2.NewFromConfig(c.Direct()).DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{})
	require.NoError(t, err)
	require.NotEmpty(t, groups.SecurityGroups)
	given := map[string]string{
		"Cluster": cluster, "Pool": pool, "ImageId": image,
		"SecurityGroups": aws.ToString(groups.SecurityGroups[0].GroupId), "UserData": "IyEvYmluL3NoCg==",
		"TokenParameter": tokenParameter, "JournalTable": table, "MetricNamespace": namespace,
	}
	for _, change := range changes {
		maps.Copy(given, change)
	}
	parameters, err := json.Marshal(given)
	require.NoError(t, err)
	var s stack
	output, err := run(t.Context(), "testdata/stack.py", aws.ToString(c.Direct().BaseEndpoint), c.Account(),
		examples+"cloudformation.yaml", string(parameters))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(output, &s), "%s", output)
	require.Equal(t, "CREATE_COMPLETE", s.Status)
	return s
}

var placeholder = regexp.MustCompile(`\$\{(\w+)\}`)

// fill replaces the placeholders of a policy.
func fill(t *testing.T, text string, values map[string]string) awstest.Policy {
	t.Helper()
	return document(t, placeholder.ReplaceAllStringFunc(text, func(name string) string {
		value, ok := values[strings.Trim(name, "${}")]
		require.True(t, ok, "there is no value for %s", name)
		return value
	}))
}

// maxManagedPolicy is how many characters a managed policy may have, white space left out.
const maxManagedPolicy = 6144

func TestCloudFormation(t *testing.T) {
	parsed, err := templates()
	require.NoError(t, err)
	c := moto(t).Cloud(t)
	s := create(t, c)

	values := map[string]string{
		"Partition": "aws", "Region": awstest.Region, "Account": c.Account(), "Cluster": cluster, "Pool": pool,
		"JournalTable": table, "MetricNamespace": namespace,
		"LaunchTemplate": s.Outputs["LaunchTemplate"], "WorkerRole": path.Base(s.Outputs["WorkerRole"]),
		"Queue":          path.Base(s.Outputs["InterruptionQueue"]),
		"TokenParameter": tokenParameter,
	}
	want := fill(t, read(t, "policy.json"), values)
	assert.ElementsMatch(t, want.Statement, s.Controller.Statement)
	assert.Equal(t, fill(t, read(t, "worker-policy.json"), values), s.Worker)
	compact, err := json.Marshal(want)
	require.NoError(t, err)
	assert.Less(t, len(compact), maxManagedPolicy)

	assert.Equal(t, []trust{asService("pods.eks.amazonaws.com")}, s.Trust.Statement)

	assert.Equal(t, "required", s.LaunchTemplateData.MetadataOptions.HTTPTokens)
	assert.Equal(t, 1, s.LaunchTemplateData.MetadataOptions.HTTPPutResponseHopLimit)
	assert.Equal(t, "IyEvYmluL3NoCg==", s.LaunchTemplateData.UserData)
	assert.Len(t, s.LaunchTemplateData.SecurityGroupIDs, 1)
	assert.Equal(t, "300", s.Queue["MessageRetentionPeriod"])

	// moto makes no policies of queues; cfn-lint has looked at this one.
	sends, ok := parsed.CloudFormation.Resources["InterruptionsPolicy"].Properties["PolicyDocument"].(map[string]any)["Statement"].([]any)[0].(map[string]any)
	require.True(t, ok)
	assert.Equal(t, map[string]any{
		"Sid": "RulesSend", "Effect": "Allow", "Action": "sqs:SendMessage",
		"Principal": map[string]any{"Service": "events.amazonaws.com"},
		"Resource":  map[string]any{"Fn::GetAtt": []any{"Interruptions", "Arn"}},
		"Condition": map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": []any{
			map[string]any{"Fn::GetAtt": []any{"InstanceEvents",
				"Arn"}}, map[string]any{"Fn::GetAtt": []any{"HealthEvents", "Arn"}},
		}}},
	}, sends)

	var kinds []string
	for _, pattern := range s.Patterns {
		kinds = append(kinds, pattern.DetailType...)
	}
	assert.ElementsMatch(t, eventKinds, kinds)
}

// asService is that a service of AWS may take the role.
func asService(service string) trust {
	return trust{Effect: "Allow", Principal: map[string]string{"Service": service},
		Action: []any{"sts:AssumeRole", "sts:TagSession"}}
}

// TestWhoGetsTheRole creates a stack for each other way in which Foresail gets its role.
func TestWhoGetsTheRole(t *testing.T) {
	t.Run("instance", func(t *testing.T) {
		s := create(t, moto(t).Cloud(t), map[string]string{"ControllerService": "ec2.amazonaws.com"})
		assert.Equal(t, []trust{asService("ec2.amazonaws.com")}, s.Trust.Statement)
		assert.NotEmpty(t, s.Outputs["ControllerProfile"])
	})
	t.Run("IRSA", func(t *testing.T) {
		const issuer = "oidc.eks.eu-central-1.amazonaws.com/id/0123456789ABCDEF"
		c := moto(t).Cloud(t)
		s := create(t, c, map[string]string{"OIDCProvider": issuer, "ControllerService": "ec2.amazonaws.com",
			"TokenParameter": "", "JournalTable": ""})
		assert.Equal(t, []trust{{
			Effect: "Allow", Action: "sts:AssumeRoleWithWebIdentity",
			Principal: map[string]string{"Federated": "arn:aws:iam::" + c.Account() + ":oidc-provider/" + issuer},
			Condition: map[string]map[string]string{
				"StringEquals": {issuer + ":aud": "sts.amazonaws.com",
					issuer + ":sub": "system:serviceaccount:foresail-system:foresail"},
			},
		}}, s.Trust.Statement)
		assert.Empty(t, s.Outputs["ControllerProfile"])
		assert.Empty(t, s.Worker.Statement)
		assert.False(t, slices.ContainsFunc(s.Controller.Statement,
			func(s awstest.Statement) bool { return s.Sid == "KeepTheJournal" }))
	})
}

// eventKinds are the events that the rules send.
var eventKinds = []string{
	"EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation",
	"EC2 Instance State-change Notification", "AWS Health Event",
}

// terraform is what python-hcl2 makes of a file. Strings keep their quotes.
type terraform struct {
	Variable []map[string]map[string]any
	Locals   []struct{ Values map[string]any }
	Resource []map[string]map[string]map[string]any
}

// counterparts are the resources of Terraform for types of CloudFormation.
var counterparts = map[string]string{
	"AWS::IAM::Role": "aws_iam_role", "AWS::IAM::InstanceProfile": "aws_iam_instance_profile",
	"AWS::IAM::ManagedPolicy":  "aws_iam_policy",
	"AWS::EC2::LaunchTemplate": "aws_launch_template", "AWS::SQS::Queue": "aws_sqs_queue",
	"AWS::SQS::QueuePolicy": "aws_sqs_queue_policy",
	"AWS::Events::Rule":     "aws_cloudwatch_event_rule",
}

// TestTerraform compares main.tf with the template of CloudFormation: it has the same resources and
// variables, and reads the policies from their files with all values that these need. The module in
// the folder terraform evaluates it.
func TestTerraform(t *testing.T) {
	parsed, err := templates()
	require.NoError(t, err)
	same, mainTF := parsed.CloudFormation, parsed.Terraform
	made := map[string]map[string]map[string]any{} // type → name → arguments
	for _, resource := range mainTF.Resource {
		for kind, named := range resource {
			kind = strings.Trim(kind, `"`)
			if made[kind] == nil {
				made[kind] = map[string]map[string]any{}
			}
			for name, arguments := range named {
				made[kind][strings.Trim(name, `"`)] = arguments
			}
		}
	}
	require.NotEmpty(t, same.Resources)
	for name, resource := range same.Resources {
		counterpart, ok := counterparts[resource.Type]
		require.True(t, ok, resource.Type)
		assert.NotEmpty(t, made[counterpart], name)
	}
	assert.Len(t, mainTF.Variable, len(same.Parameters))

	for _, name := range []string{"cluster", "pool", "oidc_provider", "service_account"} {
		assert.True(t, slices.ContainsFunc(mainTF.Variable,
			func(v map[string]map[string]any) bool { return v[`"`+name+`"`] != nil }), name)
	}

	text := read(t, "main.tf")
	for _, kind := range eventKinds {
		assert.Contains(t, text, `"`+kind+`"`)
	}
	options, err := json.Marshal(made["aws_launch_template"]["workers"]["metadata_options"])
	require.NoError(t, err)
	assert.Contains(t, string(options), `"http_put_response_hop_limit":1`)
	assert.Contains(t, string(options), `"http_tokens":"\"required\""`)

	require.Len(t, mainTF.Locals, 1)
	for _, file := range []string{"policy.json", "worker-policy.json"} {
		assert.Contains(t, text, `templatefile("${path.module}/`+file+`", local.values)`)
		for _, match := range placeholder.FindAllStringSubmatch(read(t, file), -1) {
			assert.Contains(t, mainTF.Locals[0].Values, match[1], file)
		}
	}
	sids := []string{}
	for _, s := range document(t, read(t, "policy.json")).Statement {
		sids = append(sids, s.Sid)
	}
	for _, optional := range regexp.MustCompile(`(?m)^    (\w+) += var\.(?:journal_table|metric_namespace)$`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains([]string{"JournalTable", "MetricNamespace"}, optional[1]) {
			assert.Contains(t, sids, optional[1])
		}
	}
}
