package awstest

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
)

// fixture is a Cloud on the server that the tests share.
type fixture struct {
	*Cloud
	ec2     *ec2.Client
	network Network
}

func setUp(t *testing.T, m *Moto) fixture {
	t.Helper()
	c := m.Cloud(t)
	client := ec2.NewFromConfig(c.Config(), func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
	return fixture{Cloud: c, ec2: client, network: c.Network(t)}
}

func (f fixture) input(token string, zone int) *ec2.RunInstancesInput {
	return &ec2.RunInstancesInput{
		LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String(f.network.Template)},
		SubnetId:       aws.String(f.network.Subnets[zone].ID),
		InstanceType:   types.InstanceTypeT3Small,
		ClientToken:    aws.String(token),
		MinCount:       aws.Int32(1), MaxCount: aws.Int32(1),
		TagSpecifications: []types.TagSpecification{{
			ResourceType: types.ResourceTypeInstance, Tags: []types.Tag{{Key: aws.String("a/b"),
				Value: aws.String("<c> & d")}},
		}},
	}
}

func (f fixture) launch(t *testing.T, input *ec2.RunInstancesInput) types.Instance {
	t.Helper()
	output, err := f.ec2.RunInstances(t.Context(), input)
	require.NoError(t, err)
	require.Len(t, output.Instances, 1)
	return output.Instances[0]
}

func (f fixture) count(t *testing.T) int {
	t.Helper()
	output, err := f.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	require.NoError(t, err)
	n := 0
	for _, reservation := range output.Reservations {
		n += len(reservation.Instances)
	}
	return n
}

func requireCode(t *testing.T, err error, code string) {
	t.Helper()
	var api smithy.APIError
	require.ErrorAs(t, err, &api)
	require.Equal(t, code, api.ErrorCode())
}

func TestCloud(t *testing.T) {
	m := StartMoto(t)
	for name, test := range map[string]func(*testing.T, fixture){
		"tokens":         testTokens,
		"shortages":      testShortages,
		"fleets":         testFleets,
		"fleet prices":   testFleetPrices,
		"hidden":         testHidden,
		"throttling":     testThrottling,
		"lost answer":    testLostAnswer,
		"hanging":        testHanging,
		"down":           testDown,
		"other services": testServices,
		"metrics":        testMetrics,
		"messages":       testMessages,
	} {
		t.Run(name, func(t *testing.T) { test(t, setUp(t, m)) })
	}
}

func testTokens(t *testing.T, f fixture) {
	first := f.launch(t, f.input("one", 0))
	again := f.launch(t, f.input("one", 0))
	require.Equal(t, first.InstanceId, again.InstanceId)
	require.Contains(t, again.Tags, types.Tag{Key: aws.String("a/b"), Value: aws.String("<c> & d")})
	require.Equal(t, types.InstanceStateNameRunning, again.State.Name, "in its current state")
	require.Equal(t, 1, f.count(t))

	other := f.input("one", 0)
	other.InstanceType = types.InstanceTypeT3Large
	_, err := f.ec2.RunInstances(t.Context(), other)
	requireCode(t, err, "IdempotentParameterMismatch")

	elsewhere := f.launch(t, f.input("one", 1))
	require.NotEqual(t, first.InstanceId, elsewhere.InstanceId, "tokens are per zone")
	require.Equal(t, f.network.Subnets[1].Zone, aws.ToString(elsewhere.Placement.AvailabilityZone))

	_, err = f.ec2.TerminateInstances(t.Context(),
		&ec2.TerminateInstancesInput{InstanceIds: []string{*first.InstanceId}})
	require.NoError(t, err)
	_, err = f.ec2.RunInstances(t.Context(), f.input("one", 0))
	requireCode(t, err, "IdempotentInstanceTerminated")
	require.Len(t, f.Calls("RunInstances"), 5)
}

func testShortages(t *testing.T, f fixture) {
	zone := f.network.Subnets[0].Zone
	end := f.Short(Shortage{InstanceType: "t3.small", Zone: zone, Market: "spot"})
	f.launch(t, f.input("on-demand", 0))
	spot := f.input("spot", 0)
	spot.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot}
	_, err := f.ec2.RunInstances(t.Context(), spot)
	requireCode(t, err, "InsufficientInstanceCapacity")
	spot.SubnetId = aws.String(f.network.Subnets[1].ID)
	require.Equal(t, types.InstanceLifecycleTypeSpot, f.launch(t, spot).InstanceLifecycle)
	end()
	spot.SubnetId = aws.String(f.network.Subnets[0].ID)
	f.launch(t, spot) // a failed launch has not used its token

	f.Short(Shortage{Code: "VcpuLimitExceeded"})
	_, err = f.ec2.RunInstances(t.Context(), f.input("quota", 2))
	requireCode(t, err, "VcpuLimitExceeded")
	require.Equal(t, 3, f.count(t))
}

// fleetInput returns a fleet of types in one zone.
func (f fixture) fleetInput(token string, kinds ...string) *ec2.CreateFleetInput {
	tags := []types.Tag{{Key: aws.String("a/b"), Value: aws.String("<c> & d")}}
	input := &ec2.CreateFleetInput{
		ClientToken: aws.String(token), Type: types.FleetTypeInstant,
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateId: aws.String(f.network.Template), Version: aws.String("$Default"),
			},
		}},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeSpot,
		},
		SpotOptions: &types.SpotOptionsRequest{
			AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized,
		},
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeFleet, Tags: tags}, {ResourceType: types.ResourceTypeInstance, Tags: tags},
		},
	}
	for _, kind := range kinds {
		input.LaunchTemplateConfigs[0].Overrides = append(input.LaunchTemplateConfigs[0].Overrides,
			types.FleetLaunchTemplateOverridesRequest{
				InstanceType: types.InstanceType(kind), SubnetId: aws.String(f.network.Subnets[0].ID),
			})
	}
	return input
}

func testFleets(t *testing.T, f fixture) {
	end := f.Short(Shortage{InstanceType: "t3.small", Market: "spot"})
	output, err := f.ec2.CreateFleet(t.Context(), f.fleetInput("one", "t3.small", "m5.large"))
	require.NoError(t, err)
	require.Len(t, output.Errors, 1)
	require.Equal(t, "InsufficientInstanceCapacity", aws.ToString(output.Errors[0].ErrorCode))
	require.Equal(t, types.InstanceTypeT3Small, output.Errors[0].LaunchTemplateAndOverrides.Overrides.InstanceType)
	require.Len(t, output.Instances, 1)
	require.Equal(t, types.InstanceTypeM5Large, output.Instances[0].InstanceType)
	require.Equal(
		t, f.network.Subnets[0].ID, aws.ToString(output.Instances[0].LaunchTemplateAndOverrides.Overrides.SubnetId),
	)
	described, err := f.ec2.DescribeInstances(
		t.Context(), &ec2.DescribeInstancesInput{InstanceIds: output.Instances[0].InstanceIds},
	)
	require.NoError(t, err)
	instance := described.Reservations[0].Instances[0]
	require.Equal(t, types.InstanceLifecycleTypeSpot, instance.InstanceLifecycle)
	require.Contains(t, instance.Tags, types.Tag{Key: aws.String("a/b"), Value: aws.String("<c> & d")})

	again, err := f.ec2.CreateFleet(t.Context(), f.fleetInput("one", "t3.small", "m5.large"))
	require.NoError(t, err)
	require.Equal(t, output.Instances, again.Instances)
	_, err = f.ec2.CreateFleet(t.Context(), f.fleetInput("one", "t3.small", "c5.large"))
	requireCode(t, err, "IdempotentParameterMismatch")

	nothing, err := f.ec2.CreateFleet(t.Context(), f.fleetInput("two", "t3.small"))
	require.NoError(t, err)
	require.Empty(t, nothing.Instances)
	end()
	nothing, err = f.ec2.CreateFleet(t.Context(), f.fleetInput("two", "t3.small"))
	require.NoError(t, err)
	require.Empty(t, nothing.Instances, "a fleet that launched nothing has used its token")
	require.Equal(t, 1, f.count(t))

	_, err = f.ec2.CreateFleet(t.Context(), f.fleetInput("three", "t3.small", "t3.small"))
	requireCode(t, err, "InvalidParameterValue")
	require.Equal(t, 1, f.count(t))
}

func testFleetPrices(t *testing.T, f fixture) {
	spot := func(usd string) map[string]string { return map[string]string{f.network.Subnets[0].Zone: usd} }
	f.Sell(
		map[string]Price{"t3.small": {OnDemand: "1", Spot: spot("0.5")},
			"m5.large": {OnDemand: "2", Spot: spot("0.4")}},
	)
	output, err := f.ec2.CreateFleet(t.Context(), f.fleetInput("spot", "t3.small", "m5.large"))
	require.NoError(t, err)
	require.Equal(t, types.InstanceTypeM5Large, output.Instances[0].InstanceType)
	onDemand := f.fleetInput("on-demand", "m5.large", "t3.small")
	onDemand.SpotOptions = nil
	onDemand.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeOnDemand
	onDemand.OnDemandOptions = &types.OnDemandOptionsRequest{
		AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice,
	}
	output, err = f.ec2.CreateFleet(t.Context(), onDemand)
	require.NoError(t, err)
	require.Equal(t, types.InstanceTypeT3Small, output.Instances[0].InstanceType)
}

func testHidden(t *testing.T, f fixture) {
	f.launch(t, f.input("seen", 0))
	reveal := f.HideNew()
	id := *f.launch(t, f.input("hidden", 0)).InstanceId
	_, err := f.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	requireCode(t, err, "InvalidInstanceID.NotFound")
	_, err = f.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	requireCode(t, err, "InvalidInstanceID.NotFound")
	require.Equal(t, 1, f.count(t))
	require.Equal(t, id, *f.launch(t, f.input("hidden", 0)).InstanceId)
	reveal()
	require.Equal(t, 2, f.count(t))
}

func testThrottling(t *testing.T, f fixture) {
	f.Inject(Fault{Operation: "RunInstances", Times: 2, Do: Throttle})
	for range 2 {
		_, err := f.ec2.RunInstances(t.Context(), f.input("one", 0))
		requireCode(t, err, "RequestLimitExceeded")
	}
	f.launch(t, f.input("one", 0))
	remove := f.Inject(Fault{Service: EC2, Status: http.StatusServiceUnavailable, Code: "Unavailable"})
	_, err := f.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	requireCode(t, err, "Unavailable")
	remove()
	require.Equal(t, 1, f.count(t))
}

func testLostAnswer(t *testing.T, f fixture) {
	f.Inject(Fault{Operation: "RunInstances", Times: 1, Do: Drop, After: true})
	_, err := f.ec2.RunInstances(t.Context(), f.input("one", 0))
	require.Error(t, err)
	require.Equal(t, 1, f.count(t))
	calls := f.Calls("RunInstances")
	require.Zero(t, calls[0].Status)
	require.True(t, calls[0].Done)
	f.Inject(Fault{Operation: "RunInstances", Times: 1, Do: Drop})
	_, err = f.ec2.RunInstances(t.Context(), f.input("two", 0))
	require.Error(t, err)
	require.Equal(t, 1, f.count(t))
}

func testHanging(t *testing.T, f fixture) {
	f.Inject(Fault{Operation: "RunInstances", Times: 1, Do: Hang, After: true})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(f.Calls("RunInstances")) == 0 || f.directCount(ctx) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err := f.ec2.RunInstances(ctx, f.input("one", 0))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, f.count(t))
}

func (f fixture) directCount(ctx context.Context) int {
	output, err := ec2.NewFromConfig(f.Direct()).DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	if err != nil {
		return 0
	}
	return len(output.Reservations)
}

func testDown(t *testing.T, f fixture) {
	f.launch(t, f.input("one", 0))
	f.Down()
	_, err := f.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	require.Error(t, err) // it may have used an existing connection
	_, err = f.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, f.Up())
	require.Equal(t, 1, f.count(t))
}

func testServices(t *testing.T, f fixture) {
	tables := dynamodb.NewFromConfig(f.Config(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	_, err := tables.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("state"), BillingMode: dynamotypes.BillingModePayPerRequest,
		AttributeDefinitions: []dynamotypes.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: dynamotypes.ScalarAttributeTypeS},
		},
		KeySchema: []dynamotypes.KeySchemaElement{
			{AttributeName: aws.String("id"), KeyType: dynamotypes.KeyTypeHash},
		},
	})
	require.NoError(t, err)
	put := &dynamodb.PutItemInput{
		TableName: aws.String("state"), ConditionExpression: aws.String("attribute_not_exists(id)"),
		Item: map[string]dynamotypes.AttributeValue{"id": &dynamotypes.AttributeValueMemberS{Value: "a"}},
	}
	f.Inject(Fault{Service: DynamoDB, Operation: "PutItem", Times: 1, Do: Throttle})
	_, err = tables.PutItem(t.Context(), put)
	requireCode(t, err, "ThrottlingException")
	_, err = tables.PutItem(t.Context(), put)
	require.NoError(t, err)
	_, err = tables.PutItem(t.Context(), put)
	requireCode(t, err, "ConditionalCheckFailedException")
	require.Contains(t, string(f.Calls("PutItem")[0].Body), "attribute_not_exists")
}

func testMetrics(t *testing.T, f fixture) {
	client := cloudwatch.NewFromConfig(f.Config(), func(o *cloudwatch.Options) { o.Retryer = aws.NopRetryer{} })
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	put := &cloudwatch.PutMetricDataInput{Namespace: aws.String("Foresail"), MetricData: []cwtypes.MetricDatum{
		{MetricName: aws.String("Nodes"), Value: aws.Float64(3), Unit: cwtypes.StandardUnitCount, Timestamp: &at,
			Dimensions: []cwtypes.Dimension{{Name: aws.String("Pool"), Value: aws.String("workers")}}},
		{MetricName: aws.String("CPU"), Value: aws.Float64(0.25)},
	}}
	f.Inject(Fault{Service: CloudWatch, Times: 1, Do: Throttle})
	_, err := client.PutMetricData(t.Context(), put)
	requireCode(t, err, "ThrottlingException")
	_, err = client.PutMetricData(t.Context(), put)
	require.NoError(t, err)
	metrics := f.Metrics()
	require.Equal(t, []Metric{
		{
			Namespace: "Foresail", Name: "Nodes", Value: 3, Unit: "Count", Time: at,
			Dimensions: map[string]string{"Pool": "workers"},
		},
		{Namespace: "Foresail", Name: "CPU", Value: 0.25, Dimensions: map[string]string{}},
	}, metrics)
}

func testMessages(t *testing.T, f fixture) {
	queue := f.Queue(t, "events", time.Minute)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Send(t, queue, f.SpotInterruption("i-1", at))
	client := sqs.NewFromConfig(f.Config())
	output, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, WaitTimeSeconds: 1})
	require.NoError(t, err)
	require.Len(t, output.Messages, 1)
	require.Contains(t, *output.Messages[0].Body, `"time":"2026-01-02T03:04:05Z"`)
}

func TestStopRemovesTheServerAndItsFiles(t *testing.T) {
	m, err := RunMoto(t.Context(), os.Stderr)
	require.NoError(t, err)
	require.NoError(t, m.Stop())
	require.NoDirExists(t, m.dir)
	_, err = http.Get("http://" + m.address) //nolint:bodyclose // there is none
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestBuildNamesMissingPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Build(t.Context(), os.Stderr)
	require.ErrorContains(t, err, "python3 3.10 or later is needed")

	// A Python without venv, like Debian's.
	script := "#!/bin/sh\ncase \"$1\" in -c) echo none;; *) echo No module named venv >&2; exit 1;; esac\n"
	python := filepath.Join(strings.Split(os.Getenv("PATH"), ":")[0], "python3")
	require.NoError(t, os.WriteFile(python, []byte(script), 0o755)) //nolint:gosec // it is executed
	err = install(t.Context(), t.TempDir(), func(string) {})
	require.ErrorContains(t, err, "python3-venv")
	require.ErrorContains(t, err, "No module named venv")
}
