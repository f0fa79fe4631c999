package permissions

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/ec2"
	"github.com/foresail/foresail/nodepool/interruption"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
	"github.com/foresail/foresail/nodepool/state/dynamodb"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// fixture is an account with the stack, whose policy is enforced on every call.
type fixture struct {
	*awstest.Cloud
	stack   stack
	subnets []awstest.Subnet
	queue   string
	needed  func() []awstest.Right
}

// startMoto starts the server that all tests share, once one of them needs it. TestMain stops it.
var startMoto = sync.OnceValues(func() (*awstest.Moto, error) {
	m, err := awstest.RunMoto(context.Background(), os.Stderr)
	if err == nil {
		stopMoto = m.Stop
	}
	return m, err
})

var stopMoto = func() error { return nil }

func moto(t *testing.T) *awstest.Moto {
	t.Helper()
	m, err := startMoto()
	require.NoError(t, err)
	return m
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := stopMoto(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func setUp(t *testing.T) fixture {
	t.Helper()
	c := moto(t).Cloud(t)
	f := fixture{Cloud: c, stack: create(t, c), subnets: c.Network(t).Subnets}
	f.queue = c.URL() + "/" + c.Account() + "/" + f.stack.Outputs["InterruptionQueue"][strings.LastIndex(f.stack.Outputs["InterruptionQueue"], "/")+1:]
	_, err := awsdynamodb.NewFromConfig(c.Direct()).CreateTable(t.Context(), &awsdynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: dynamodbtypes.BillingModePayPerRequest,
		KeySchema: []dynamodbtypes.KeySchemaElement{{AttributeName: aws.String(dynamodb.DefaultHashKey),
			KeyType: dynamodbtypes.KeyTypeHash}},
		AttributeDefinitions: []dynamodbtypes.AttributeDefinition{{AttributeName: aws.String(dynamodb.DefaultHashKey),
			AttributeType: "S"}},
	})
	require.NoError(t, err)
	f.needed = c.Enforce(f.stack.Controller)
	return f
}

func (f fixture) provider(t *testing.T, cluster, pool, template string, change ...func(*ec2.Options)) *ec2.Provider {
	t.Helper()
	spec := v1alpha1.EC2Provider{
		LaunchTemplate: template, LaunchTemplateVersion: "$Default", Region: awstest.Region,
		InstanceTypes: []string{"t3.small"},
	}
	for _, subnet := range f.subnets {
		spec.Subnets = append(spec.Subnets, v1alpha1.EC2Subnet{Zone: subnet.Zone, ID: subnet.ID})
	}
	o := ec2.Options{
		Cluster: cluster, Pool: pool, Spec: spec, Limits: ec2.NewLimits(1000),
		Load: []func(*config.LoadOptions) error{config.WithCredentialsProvider(f.Config().Credentials),
			config.WithBaseEndpoint(f.URL())},
	}
	for _, f := range change {
		f(&o)
	}
	p, err := ec2.New(t.Context(), o)
	require.NoError(t, err)
	return p
}

func (f fixture) launch(market fleet.Market) provider.Launch {
	return provider.Launch{Action: "up-1", Token: "token-" + string(market), Placement: fleet.Placement{
		Zone: f.subnets[0].Zone, Subnet: f.subnets[0].ID, InstanceType: "t3.small", Market: market,
	}}
}

// TestAPoolRunsWithThePolicy makes every call of a pool with the policy that the stack has given to
// Foresail's role, and finds that no statement is left over.
func TestAPoolRunsWithThePolicy(t *testing.T) {
	f := setUp(t)
	p := f.provider(t, cluster, pool, f.stack.Outputs["LaunchTemplate"])
	_, err := p.Offers(t.Context())
	require.NoError(t, err)
	for _, market := range []fleet.Market{fleet.OnDemand, fleet.Spot} {
		launched, err := p.Launch(t.Context(), f.launch(market))
		require.NoError(t, err)
		listed, err := p.List(t.Context())
		require.NoError(t, err)
		require.Len(t, listed, 1)
		require.NoError(t, p.MarkJoinFailed(t.Context(), launched.ID))
		require.NoError(t, p.Terminate(t.Context(), launched.ID))

		oneOf := f.launch(market)
		oneOf.Token, oneOf.Alternatives = oneOf.Token+"-of-two", []string{"m5.large"}
		launched, err = p.Launch(t.Context(), oneOf)
		require.NoError(t, err)
		require.NoError(t, p.Terminate(t.Context(), launched.ID))
	}

	f.Sell(map[string]awstest.Price{"t3.small": {OnDemand: "0.0240000000",
		Spot: map[string]string{f.subnets[0].Zone: "0.0100", f.subnets[1].Zone: "0.0100"}}})
	byPrice := f.provider(t, cluster, pool, f.stack.Outputs["LaunchTemplate"], func(o *ec2.Options) {
		o.Spot, o.Spec.InstanceTypes = true, nil
		o.Spec.Requirements = &v1alpha1.EC2Requirements{
			VCPU: v1alpha1.EC2CPURange{Min: 2}, Memory: v1alpha1.EC2MemoryRange{Min: resource.MustParse("2Gi")},
			AllowedTypes: []string{"t3.small"}, Include: []v1alpha1.EC2Kind{v1alpha1.EC2Burstable},
		}
	})
	offers, err := byPrice.Offers(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, offers)
	require.NotNil(t, offers[0].Price.OnDemand, offers[0].PriceErr)
	require.NotNil(t, offers[0].Price.Spot, offers[0].PriceErr)

	store := f.store(table)
	_, err = store.Save(t.Context(), pool, state.Record{})
	require.NoError(t, err)
	_, err = store.Load(t.Context(), pool)
	require.NoError(t, err)

	receiver, err := interruption.New(t.Context(), interruption.Options{
		Queue: f.queue, Region: awstest.Region,
		Load: []func(*config.LoadOptions) error{config.WithCredentialsProvider(f.Config().Credentials)},
	})
	require.NoError(t, err)
	f.Send(t, f.queue, "garbage")
	f.Send(t, f.queue, f.SpotInterruption("i-1", time.Now()))
	for range 2 { // moto may give one message a call
		messages, err := receiver.Receive(t.Context())
		require.NoError(t, err)
		for _, m := range messages {
			require.NoError(t, receiver.Done(t.Context(), m))
		}
		if len(messages) > 0 {
			break
		}
	}
	require.NoError(t, f.putMetric(t, namespace))

	needed := f.needed()
	for _, s := range f.stack.Controller.Statement {
		used := slices.ContainsFunc(needed, awstest.Policy{Statement: []awstest.Statement{s}}.Allows)
		// EC2 asks Systems Manager by itself, where the template names its image by a parameter.
		assert.Equal(t, s.Sid != "ReadImageParameters", used, s.Sid)
	}
}

// TestThePolicyRefuses makes calls that Foresail never makes, with its role.
func TestThePolicyRefuses(t *testing.T) {
	f := setUp(t)
	client := awsec2.NewFromConfig(f.Config())
	direct := awsec2.NewFromConfig(f.Direct())
	other := func(tags ...types.Tag) string {
		input := &awsec2.RunInstancesInput{ImageId: aws.String(image), MinCount: aws.Int32(1), MaxCount: aws.Int32(1)}
		if len(tags) > 0 {
			input.TagSpecifications = []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: tags}}
		}
		output, err := direct.RunInstances(t.Context(), input)
		require.NoError(t, err)
		return aws.ToString(output.Instances[0].InstanceId)
	}
	tags := func(cluster, pool string) []types.Tag {
		return []types.Tag{{Key: aws.String("foresail.dev/cluster"), Value: &cluster},
			{Key: aws.String("foresail.dev/pool"), Value: &pool}}
	}
	ours := other(tags(cluster, pool)...)
	template := f.stack.Outputs["LaunchTemplate"]
	input := func(change func(*awsec2.RunInstancesInput)) *awsec2.RunInstancesInput {
		i := &awsec2.RunInstancesInput{
			LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String(template)},
			SubnetId:       aws.String(f.subnets[0].ID),
			MinCount:       aws.Int32(1), MaxCount: aws.Int32(1),
			TagSpecifications: []types.TagSpecification{
				{ResourceType: types.ResourceTypeInstance,
					Tags: tags(cluster, pool)}, {ResourceType: types.ResourceTypeVolume, Tags: tags(cluster, pool)},
			},
		}
		change(i)
		return i
	}
	made, err := direct.CreateLaunchTemplate(t.Context(), &awsec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("others"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String(image)},
	})
	require.NoError(t, err)
	otherTemplate := aws.ToString(made.LaunchTemplate.LaunchTemplateId)
	run := func(change func(*awsec2.RunInstancesInput)) func() error {
		return func() error { _, err := client.RunInstances(t.Context(), input(change)); return err }
	}
	require.NoError(t, run(func(*awsec2.RunInstancesInput) {})(), "as Foresail launches")
	fleet := func(change func(*awsec2.CreateFleetInput)) func() error {
		return func() error {
			i := &awsec2.CreateFleetInput{
				Type: types.FleetTypeInstant,
				LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
					LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateId: aws.String(template), Version: aws.String("$Default")},
					Overrides:                   []types.FleetLaunchTemplateOverridesRequest{{InstanceType: types.InstanceTypeT3Small, SubnetId: aws.String(f.subnets[0].ID)}},
				}},
				TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
					TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeSpot,
				},
				TagSpecifications: []types.TagSpecification{
					{ResourceType: types.ResourceTypeInstance,
						Tags: tags(cluster, pool)}, {ResourceType: types.ResourceTypeVolume, Tags: tags(cluster, pool)},
					{ResourceType: types.ResourceTypeFleet, Tags: tags(cluster, pool)},
				},
			}
			change(i)
			_, err := client.CreateFleet(t.Context(), i)
			return err
		}
	}
	require.NoError(t, fleet(func(*awsec2.CreateFleetInput) {})(), "as Foresail launches one of several types")
	terminate := func(id string) func() error {
		return func() error {
			_, err := client.TerminateInstances(t.Context(), &awsec2.TerminateInstancesInput{InstanceIds: []string{id}})
			return err
		}
	}
	tag := func(id, key, value string) func() error {
		return func() error {
			_, err := client.CreateTags(t.Context(),
				&awsec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: &key, Value: &value}}})
			return err
		}
	}
	for name, call := range map[string]func() error{
		"terminate an instance of another pool":    terminate(other(tags(cluster, "others")...)),
		"terminate an instance of another cluster": terminate(other(tags("uid-2", pool)...)),
		"terminate an instance without tags":       terminate(other()),
		"make an instance the pool's":              tag(other(), "foresail.dev/pool", pool),
		"give an instance of the pool away":        tag(ours, "foresail.dev/pool", "others"),
		"mark an instance of another pool": tag(other(tags(cluster, "others")...), "foresail.dev/join-failed",
			"true"),
		"launch without tags": run(func(i *awsec2.RunInstancesInput) { i.TagSpecifications = nil }),
		"launch for another pool": run(func(i *awsec2.RunInstancesInput) {
			i.TagSpecifications[0].Tags = tags(cluster, "others")
		}),
		"launch without a template": run(func(i *awsec2.RunInstancesInput) {
			i.LaunchTemplate, i.ImageId = nil, aws.String(image)
		}),
		"launch from another template": run(func(i *awsec2.RunInstancesInput) {
			i.LaunchTemplate.LaunchTemplateId = aws.String(otherTemplate)
		}),
		"launch another image":        run(func(i *awsec2.RunInstancesInput) { i.ImageId = aws.String("ami-1e749f67") }),
		"launch a fleet without tags": fleet(func(i *awsec2.CreateFleetInput) { i.TagSpecifications = i.TagSpecifications[:2] }),
		"launch a fleet for another pool": fleet(func(i *awsec2.CreateFleetInput) {
			i.TagSpecifications[0].Tags = tags(cluster, "others")
		}),
		"launch a fleet from another template": fleet(func(i *awsec2.CreateFleetInput) {
			i.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateId = aws.String(otherTemplate)
		}),
		"launch into another security group": run(func(i *awsec2.RunInstancesInput) {
			i.SecurityGroupIds = []string{"sg-12345678"}
		}),
		"receive from another queue": func() error {
			input := &sqs.ReceiveMessageInput{QueueUrl: aws.String(f.Queue(t, "others", time.Minute))}
			_, err := sqs.NewFromConfig(f.Config()).ReceiveMessage(t.Context(), input)
			return err
		},
		"read the journal of another pool": func() error {
			_,
				err := f.store(table).Load(t.Context(), "others")
			return err
		},
		"read another table": func() error {
			_,
				err := f.store("others").Load(t.Context(), pool)
			return err
		},
		"put metrics of another namespace": func() error { return f.putMetric(t, "AWS/EC2") },
	} {
		t.Run(name, func(t *testing.T) { require.ErrorContains(t, call(), "not authorized") })
	}

	pass := func(role, service string) bool {
		return f.stack.Controller.Allows(awstest.Right{Action: "iam:PassRole", Resource: role,
			Context: map[string]awstest.Strings{"iam:PassedToService": {service}}})
	}
	assert.True(t, pass(f.stack.Outputs["WorkerRole"], "ec2.amazonaws.com"))
	assert.False(t, pass(f.stack.Outputs["WorkerRole"], "lambda.amazonaws.com"))
	assert.False(t, pass(f.stack.Outputs["ControllerRole"], "ec2.amazonaws.com"))
}

func (f fixture) store(table string) *dynamodb.Store {
	return dynamodb.New(awsdynamodb.NewFromConfig(f.Config()), dynamodb.Options{Table: table, Cluster: cluster})
}

func (f fixture) putMetric(t *testing.T, namespace string) error {
	t.Helper()
	_, err := cloudwatch.NewFromConfig(f.Config()).PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{
		Namespace: aws.String(namespace), MetricData: []cwtypes.MetricDatum{{MetricName: aws.String("Nodes"),
			Value: aws.Float64(1)}},
	})
	return err
}

// TestMotoEnforcesTheActions has moto's own IAM look at the policy. It compares the names of
// actions alone: to it the resource of every call to EC2 is *, and conditions on requests and tags
// are not read. Resources and conditions are for [awstest.Cloud.Enforce].
func TestMotoEnforcesTheActions(t *testing.T) {
	var p struct {
		Version   string
		Statement []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "policy.json")), &p))
	for _, s := range p.Statement {
		s["Resource"] = "*"
		delete(s, "Condition")
	}
	policy, err := json.Marshal(p)
	require.NoError(t, err)
	allowed := []string{
		"ec2:RunInstances", "ec2:TerminateInstances", "ec2:CreateTags", "ec2:DescribeInstances",
		"ec2:DescribeInstanceTypes", "ec2:DescribeImages",
		"ec2:DescribeLaunchTemplates",
	}
	denied := []string{"ec2:StopInstances", "ec2:DescribeVpcs", "iam:ListRoles"}
	operations, err := json.Marshal(slices.Concat(allowed, denied))
	require.NoError(t, err)
	var refused []string
	output, err := run(t.Context(), "testdata/enforce.py", aws.ToString(moto(t).Cloud(t).Direct().BaseEndpoint),
		string(policy), string(operations))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(output, &refused))
	require.Equal(t, denied, refused)
}
