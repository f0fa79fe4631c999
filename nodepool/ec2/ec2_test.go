package ec2

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/provider/providertest"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// cloud is an account with a network for a pool.
type cloud struct {
	*awstest.Cloud
	network awstest.Network
}

func newCloud(t *testing.T, m *awstest.Moto) cloud {
	t.Helper()
	c := m.Cloud(t)
	return cloud{Cloud: c, network: c.Network(t)}
}

// options returns the options of a pool in three zones, with types that have one price in each market.
func (c cloud) options(pool string) Options {
	spec := v1alpha1.EC2Provider{
		LaunchTemplate: c.network.Template, LaunchTemplateVersion: "$Default", Region: awstest.Region,
		InstanceTypes: []string{"t3.small", "m5.large"},
		Tags:          map[string]string{"team": "<web> & co"},
	}
	for _, subnet := range c.network.Subnets {
		spec.Subnets = append(spec.Subnets, v1alpha1.EC2Subnet{Zone: subnet.Zone, ID: subnet.ID})
	}
	return Options{
		Cluster: "uid-1", Pool: pool, Spec: spec, Limits: NewLimits(1000), retryDelay: time.Millisecond,
		Load: []func(*config.LoadOptions) error{
			config.WithCredentialsProvider(c.Config().Credentials), config.WithBaseEndpoint(c.URL()),
		},
	}
}

func (c cloud) provider(t testing.TB, pool string) *Provider {
	t.Helper()
	p, err := New(t.Context(), c.options(pool))
	require.NoError(t, err)
	return p
}

func (c cloud) launch(pool string) provider.Launch {
	return provider.Launch{Action: "up-1", Slot: 2, Token: pool + "-token", Placement: fleet.Placement{
		Zone: c.network.Subnets[0].Zone, Subnet: c.network.Subnets[0].ID, InstanceType: "t3.small", Market: fleet.Spot,
	}}
}

// Provider and the following methods implement [providertest.Harness].
func (c cloud) Provider(t testing.TB, pool string) provider.Provider { return c.provider(t, pool) }
func (c cloud) Renew(t testing.TB, pool string) provider.Provider {
	c.setDefault(t, c.newVersion(t))
	return c.provider(t, pool)
}
func (c cloud) Alternative() string { return "m5.large" }
func (c cloud) Settle(testing.TB)   {}
func (c cloud) End(testing.TB)      {} // moto terminates immediately
func (c cloud) Untag(t testing.TB, id string) bool {
	_, err := ec2.NewFromConfig(c.Direct()).DeleteTags(t.Context(), &ec2.DeleteTagsInput{
		Resources: []string{id}, Tags: []types.Tag{
			{Key: aws.String("foresail.dev/pool")}, {Key: aws.String("foresail.dev/cluster")},
		},
	})
	require.NoError(t, err)
	return true
}
func (c cloud) Adopt(t testing.TB, id string) bool {
	c.tag(t, id, "karpenter.sh/nodepool", "default")
	return true
}

// tag sets a tag of an instance.
func (c cloud) tag(t testing.TB, id, key, value string) {
	t.Helper()
	_, err := ec2.NewFromConfig(c.Direct()).CreateTags(t.Context(), &ec2.CreateTagsInput{
		Resources: []string{id}, Tags: []types.Tag{{Key: aws.String(key), Value: aws.String(value)}},
	})
	require.NoError(t, err)
}
func (c cloud) Exhaust(_ testing.TB, placements ...fleet.Placement) func() {
	var ends []func()
	for _, p := range placements {
		market := "on-demand"
		if p.Market == fleet.Spot {
			market = "spot"
		}
		ends = append(ends, c.Short(awstest.Shortage{InstanceType: p.InstanceType, Zone: p.Zone, Market: market}))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// lagging is a cloud whose new instances are visible only after Settle.
type lagging struct{ cloud }

func (l lagging) Settle(testing.TB) {
	l.HideNew()() // reveals all instances
	l.HideNew()
}

func TestProvider(t *testing.T) {
	m := awstest.StartMoto(t)
	t.Run("shared tests", func(t *testing.T) { providertest.Run(t, newCloud(t, m)) })
	t.Run("shared tests with delayed visibility", func(t *testing.T) {
		c := lagging{newCloud(t, m)}
		c.HideNew()
		providertest.Run(t, c)
	})
	for name, test := range map[string]func(*testing.T, cloud){
		"parameters of a launch":               testLaunchInput,
		"a lost answer":                        testLostAnswer,
		"a token after a change of the spec":   testSpecChanged,
		"error codes":                          testCodes,
		"a launch is sent once":                testTriedOnce,
		"parameters of a fleet":                testFleetInput,
		"a fleet of On-Demand":                 testFleetOnDemand,
		"a fleet chooses by price":             testFleetByPrice,
		"a lost answer of a fleet":             testFleetLostAnswer,
		"a fleet after a change of the spec":   testFleetSpecChanged,
		"a fleet that launched nothing":        testFleetUsedUp,
		"error codes of a fleet":               testFleetCodes,
		"reads are sent twice":                 testTriedTwice,
		"the cloud is down":                    testDown,
		"a cloud that does not answer":         testSilence,
		"an instance that is not visible yet":  testNotKnownYet,
		"ownership is read before each change": testOwnership,
		"several clusters of one account":      testClusters,
		"more instances than one page":         testPages,
		"stopped instances are leaving":        testStopped,
		"a manually tagged instance":           testTaggedByHand,
		"instances of other controllers":       testOtherControllers,
		"instances of another region":          testOtherRegions,
		"more instances to find than a filter": testFindMany,
		"offers":                               testOffers,
		"devices":                              testDevices,
		"requirements":                         testRequirements,
		"requirements of another architecture": testRequirementsOfARM,
		"requirements of many types":           testRequirementsBounded,
		"requirements that no type meets":      testRequirementsThatNothingMeets,
		"requirements without permission":      testRequirementsRefused,
		"outdated by requirements":             testOutdatedByRequirements,
		"prices":                               testPrices,
		"Spot prices":                          testSpotPrices,
		"prices without permission":            testPricesRefused,
		"prices from a file":                   testPricesOfAFile,
		"named types have no prices":           testNoPricesOfNames,
		"pods of a node":                       testMaxPods,
		"memory reserved for pods":             testMaxPodsReserve,
		"storage of the template":              testStorage,
		"storage that cannot be read":          testStorageUnknown,
		"storage that the pool sets":           testStorageOverridden,
		"configuration from the environment":   testEnvironment,
		"an unknown instance type":             testUnknownType,
		"tags of volumes":                      testVolumes,
		"On-Demand has no market options":      testOnDemand,
		"a repeated termination":               testTerminateOnce,
		"marking a terminated instance":        testMarkGone,
		"outdated instances":                   testOutdated,
		"a new version":                        testVersionMoves,
		"an unknown version":                   testVersionNotKnown,
		"a version without a call":             testVersionWithoutCall,
		"failing hardware":                     testHardwareFails,
		"unknown hardware":                     testHardwareIsNotKnown,
	} {
		t.Run(name, func(t *testing.T) { test(t, newCloud(t, m)) })
	}
}

func requireClass(t *testing.T, want provider.Class, err error) {
	t.Helper()
	require.Error(t, err)
	require.ErrorAs(t, err, new(*provider.Error))
	require.Equal(t, want, provider.ClassOf(err), "%v", err)
}

func testLaunchInput(t *testing.T, c cloud) {
	o := c.options("workers")
	o.MaxPrice = "0.02"
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	_, err = p.Launch(t.Context(), c.launch("workers"))
	require.NoError(t, err)
	sent := c.Calls("RunInstances")[0].Params
	for key, value := range map[string]string{
		"LaunchTemplate.LaunchTemplateId": c.network.Template, "LaunchTemplate.Version": "$Default",
		"ClientToken": "workers-token", "InstanceType": "t3.small", "SubnetId": c.network.Subnets[0].ID,
		"MinCount": "1", "MaxCount": "1",
		"InstanceMarketOptions.MarketType":                               "spot",
		"InstanceMarketOptions.SpotOptions.SpotInstanceType":             "one-time",
		"InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior": "terminate",
		"InstanceMarketOptions.SpotOptions.MaxPrice":                     "0.02",
	} {
		require.Equal(t, value, sent.Get(key), key)
	}
	require.Equal(t, map[string]string{
		"Name": "workers", "foresail.dev/cluster": "uid-1", "foresail.dev/pool": "workers", "foresail.dev/action": "up-1",
		"foresail.dev/slot":  "2",
		"foresail.dev/token": "workers-token", "team": "<web> & co",
	}, c.userTags(t))
}

// userTags returns the tags of the account's only instance, without those of the template.
func (c cloud) userTags(t *testing.T) map[string]string {
	t.Helper()
	output, err := ec2.NewFromConfig(c.Direct()).DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	require.NoError(t, err)
	require.Len(t, output.Reservations, 1)
	tags := tagsOf(output.Reservations[0].Instances[0])
	delete(tags, "aws:ec2launchtemplate:id")
	delete(tags, "aws:ec2launchtemplate:version")
	return tags
}

func testOnDemand(t *testing.T, c cloud) {
	l := c.launch("workers")
	l.Market = fleet.OnDemand
	instance, err := c.provider(t, "workers").Launch(t.Context(), l)
	require.NoError(t, err)
	require.Equal(t, "aws:///"+l.Zone+"/"+instance.ID, instance.ProviderID)
	for key := range c.Calls("RunInstances")[0].Params {
		require.NotContains(t, key, "InstanceMarketOptions")
	}
}

// testEnvironment reads endpoint and credentials from the environment.
func testEnvironment(t *testing.T, c cloud) {
	for _, pair := range c.Environment() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	o := c.options("workers")
	o.Load, o.Limits = nil, nil
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	instance, err := p.Launch(t.Context(), c.launch("workers"))
	require.NoError(t, err)
	require.NoError(t, p.Terminate(t.Context(), instance.ID))
	require.Len(t, c.Calls("TerminateInstances"), 1)
}

func testVolumes(t *testing.T, c cloud) {
	_, err := c.provider(t, "workers").Launch(t.Context(), c.launch("workers"))
	require.NoError(t, err)
	output, err := ec2.NewFromConfig(c.Direct()).DescribeVolumes(t.Context(), &ec2.DescribeVolumesInput{
		Filters: []types.Filter{{Name: aws.String("tag:foresail.dev/pool"), Values: []string{"workers"}}},
	})
	require.NoError(t, err)
	require.Len(t, output.Volumes, 1)
}

func testLostAnswer(t *testing.T, c cloud) {
	for i, effect := range []awstest.Effect{awstest.Drop, awstest.Fail} {
		l := c.launch("workers")
		l.Token += strconv.Itoa(i)
		p := c.provider(t, "workers")
		c.Inject(awstest.Fault{Operation: "RunInstances", Times: 1, After: true, Do: effect})
		_, err := p.Launch(t.Context(), l)
		requireClass(t, provider.Unknown, err)

		// Another process repeats the launch with the same token.
		p = c.provider(t, "workers")
		instance, err := p.Launch(t.Context(), l)
		require.NoError(t, err)
		require.Equal(t, l.Token, instance.Token)
		all, err := p.List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, i+1)
	}
}

// testSpecChanged changes the spec between two tries: to EC2 the parameters differ.
func testSpecChanged(t *testing.T, c cloud) {
	l := c.launch("workers")
	p, _ := c.launchedBefore(t, "RunInstances", l)
	l.Slot++
	_, err := p.Launch(t.Context(), l)
	requireClass(t, provider.TokenMismatch, err)
}

// launchedBefore loses the answer of a launch, changes the spec, and repeats the launch. It returns the provider for
// the changed spec, and the only instance.
func (c cloud) launchedBefore(t *testing.T, operation string, l provider.Launch) (*Provider, fleet.Instance) {
	t.Helper()
	c.Inject(awstest.Fault{Operation: operation, Times: 1, After: true, Do: awstest.Drop})
	_, err := c.provider(t, "workers").Launch(t.Context(), l)
	requireClass(t, provider.Unknown, err)
	o := c.options("workers")
	o.MaxPrice = "0.5"
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	instance, err := p.Launch(t.Context(), l)
	require.NoError(t, err)
	all, err := p.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []fleet.Instance{instance.Instance}, all)
	return p, instance.Instance
}

// testCodes fails a launch with each documented code, and with unknown ones.
func testCodes(t *testing.T, c cloud) {
	p, l := c.provider(t, "workers"), c.launch("workers")
	for _, row := range []struct {
		status int
		code   string
		class  provider.Class
	}{
		{503, "RequestLimitExceeded", provider.Throttled},
		{400, "Throttling", provider.Throttled},
		{400, "ThrottlingException", provider.Throttled},
		{400, "EC2ThrottledException", provider.Throttled},
		{400, "RequestThrottled", provider.Throttled},
		{400, "ConcurrentTagAccess", provider.Throttled},
		{500, "InsufficientInstanceCapacity", provider.Capacity},
		{400, "Server.InsufficientInstanceCapacity", provider.Capacity},
		{500, "InsufficientCapacity", provider.Capacity},
		{500, "InsufficientHostCapacity", provider.Capacity},
		{400, "InsufficientCapacityOnHost", provider.Capacity},
		{500, "InsufficientReservedInstanceCapacity", provider.Capacity},
		{500, "InsufficientVolumeCapacity", provider.ZoneCapacity},
		{400, "ReservationCapacityExceeded", provider.Capacity},
		{400, "UnfulfillableCapacity", provider.Capacity},
		{400, "SpotMaxPriceTooLow", provider.Capacity},
		{400, "Unsupported", provider.Capacity},
		{400, "InstanceLimitExceeded", provider.Quota},
		{400, "VcpuLimitExceeded", provider.Quota},
		{400, "MaxSpotInstanceCountExceeded", provider.Quota},
		{400, "VolumeLimitExceeded", provider.AccountQuota},
		{400, "MaxIOPSLimitExceeded", provider.AccountQuota},
		{400, "NetworkInterfaceLimitExceeded", provider.AccountQuota},
		{400, "AddressLimitExceeded", provider.AccountQuota},
		{400, "PendingVerification", provider.AccountQuota},
		{400, "InsufficientFreeAddressesInSubnet", provider.Address},
		{500, "InsufficientAddressCapacity", provider.Address},
		{400, "PrivateIpAddressLimitExceeded", provider.Address},
		{400, "IdempotentParameterMismatch", provider.TokenMismatch},
		{400, "IdempotentInstanceTerminated", provider.TokenMismatch},
		{400, "RequestTimeout", provider.Unknown},
		{400, "RequestExpired", provider.Invalid},
		{401, "AuthFailure", provider.Invalid},
		{403, "Client.UnauthorizedOperation", provider.Invalid},
		{400, "InvalidAMIID.NotFound", provider.Invalid},
		{400, "InvalidLaunchTemplateId.NotFound", provider.Invalid},
		{400, "InvalidLaunchTemplateId.VersionNotFound", provider.Invalid},
		{400, "InvalidSubnetID.NotFound", provider.Invalid},
		{400, "InvalidGroup.NotFound", provider.Invalid},
		{400, "InvalidParameterValue", provider.Invalid},
		{400, "InvalidParameterCombination", provider.Invalid},
		{400, "MissingParameter", provider.Invalid},
		{400, "OptInRequired", provider.Invalid},
		{400, "Blocked", provider.Invalid},
		{400, "SomethingNewOfTheCaller", provider.Invalid},
		{500, "InternalError", provider.Unknown},
		{500, "InternalFailure", provider.Unknown},
		{503, "ServiceUnavailable", provider.Unknown},
		{503, "Unavailable", provider.Unknown},
		{500, "SomethingNewOfTheServer", provider.Unknown},
	} {
		c.Inject(awstest.Fault{Operation: "RunInstances", Times: 1, Status: row.status, Code: row.code})
		_, err := p.Launch(t.Context(), l)
		require.Error(t, err)
		require.Equal(t, row.class, provider.ClassOf(err), "%v", err)
	}
	_, err := p.Launch(t.Context(), l)
	require.NoError(t, err, "no error has used the token")
}

func testTriedOnce(t *testing.T, c cloud) {
	c.Inject(awstest.Fault{Operation: "RunInstances", Do: awstest.Throttle})
	_, err := c.provider(t, "workers").Launch(t.Context(), c.launch("workers"))
	requireClass(t, provider.Throttled, err)
	require.Len(t, c.Calls("RunInstances"), 1)
}

func testTriedTwice(t *testing.T, c cloud) {
	p := c.provider(t, "workers")
	c.Inject(awstest.Fault{Operation: "DescribeInstances", Times: 1})
	_, err := p.List(t.Context())
	require.NoError(t, err)
	c.Inject(awstest.Fault{Operation: "DescribeInstances", Do: awstest.Throttle})
	_, err = p.List(t.Context())
	requireClass(t, provider.Throttled, err)
	require.Len(t, c.Calls("DescribeInstances"), 4)
}

func testDown(t *testing.T, c cloud) {
	p, l := c.provider(t, "workers"), c.launch("workers")
	c.Down()
	_, err := p.Launch(t.Context(), l)
	requireClass(t, provider.Unknown, err)
	_, err = p.List(t.Context())
	requireClass(t, provider.Unknown, err)
	_, err = p.Offers(t.Context())
	requireClass(t, provider.Unknown, err)
	requireClass(t, provider.Unknown, p.Terminate(t.Context(), providertest.UnknownID))
	require.NoError(t, c.Up())
	_, err = p.Launch(t.Context(), l)
	require.NoError(t, err)
	offers, err := p.Offers(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, offers)
}

// testSilence cancels the context of a call without an answer.
func testSilence(t *testing.T, c cloud) {
	p := c.provider(t, "workers")
	c.Inject(awstest.Fault{Operation: "RunInstances", Times: 1, After: true, Do: awstest.Hang})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(c.Calls("RunInstances")) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err := p.Launch(ctx, c.launch("workers"))
	requireClass(t, provider.Unknown, err)
	require.ErrorIs(t, err, context.Canceled)
	instance, err := p.Launch(t.Context(), c.launch("workers"))
	require.NoError(t, err)
	all, err := p.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, instance.ID, all[0].ID)
}

func testNotKnownYet(t *testing.T, c cloud) {
	o := c.options("workers")
	now := time.Now()
	o.Now = func() time.Time { return now }
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	reveal := c.HideNew()
	instance, err := p.Launch(t.Context(), c.launch("workers"))
	require.NoError(t, err)
	requireClass(t, provider.Unknown, p.Terminate(t.Context(), instance.ID))
	requireClass(t, provider.Unknown, p.MarkJoinFailed(t.Context(), instance.ID))
	now = now.Add(visibleWithin + time.Second)
	require.NoError(t, p.Terminate(t.Context(), instance.ID), "EC2 must know it by now")
	require.Empty(t, c.Calls("TerminateInstances"))
	reveal()
	require.NoError(t, p.Terminate(t.Context(), instance.ID))
	require.Len(t, c.Calls("TerminateInstances"), 1)
}

// untagged launches an instance of no pool.
func (c cloud) untagged(t *testing.T) (id string) {
	t.Helper()
	output, err := ec2.NewFromConfig(c.Direct()).RunInstances(t.Context(), &ec2.RunInstancesInput{
		LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String(c.network.Template)},
		MinCount:       aws.Int32(1), MaxCount: aws.Int32(1),
	})
	require.NoError(t, err)
	return aws.ToString(output.Instances[0].InstanceId)
}

func testOwnership(t *testing.T, c cloud) {
	p := c.provider(t, "workers")
	requireClass(t, provider.NotOwned, p.Terminate(t.Context(), c.untagged(t)))

	mine, err := p.Launch(t.Context(), c.launch("workers"))
	require.NoError(t, err)
	_, err = ec2.NewFromConfig(c.Direct()).CreateTags(t.Context(), &ec2.CreateTagsInput{
		Resources: []string{mine.ID}, Tags: []types.Tag{{Key: aws.String("foresail.dev/pool"), Value: aws.String("other")}},
	})
	require.NoError(t, err)
	requireClass(t, provider.NotOwned, p.Terminate(t.Context(), mine.ID))
	requireClass(t, provider.NotOwned, p.MarkJoinFailed(t.Context(), mine.ID))
	require.Empty(t, c.Calls("TerminateInstances"))
	require.Empty(t, c.Calls("CreateTags"))
	c.Inject(awstest.Fault{Operation: "DescribeInstances"})
	requireClass(t, provider.Unknown, p.Terminate(t.Context(), mine.ID))
	require.Empty(t, c.Calls("TerminateInstances"), "its owner is unknown")
}

// testClusters has two clusters with pools of the same name and launches with the same token.
func testClusters(t *testing.T, c cloud) {
	one, l := c.provider(t, "workers"), c.launch("workers")
	o := c.options("workers")
	o.Cluster = "uid-2"
	other, err := New(t.Context(), o)
	require.NoError(t, err)
	mine, err := one.Launch(t.Context(), l)
	require.NoError(t, err)

	_, err = other.Launch(t.Context(), l)
	requireClass(t, provider.TokenMismatch, err)
	requireClass(t, provider.NotOwned, other.Terminate(t.Context(), mine.ID))
	requireClass(t, provider.NotOwned, other.MarkJoinFailed(t.Context(), mine.ID))
	require.Empty(t, c.Calls("TerminateInstances"))
	require.Empty(t, c.Calls("CreateTags"))
	l.Token += "-2"
	theirs, err := other.Launch(t.Context(), l)
	require.NoError(t, err)
	for p, id := range map[*Provider]string{one: mine.ID, other: theirs.ID} {
		all, err := p.List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, id, all[0].ID)
	}
}

func testPages(t *testing.T, c cloud) {
	p, l := c.provider(t, "workers"), c.launch("workers")
	const count = 11
	for i := range count {
		l.Token, l.Slot = "t"+strconv.Itoa(i), i
		_, err := p.Launch(t.Context(), l)
		require.NoError(t, err)
	}
	p.instances.pageSize = 5
	all, err := p.List(t.Context())
	require.NoError(t, err)
	slots := map[int]bool{}
	for _, i := range all {
		slots[i.Slot] = true
	}
	require.Len(t, slots, count)
	require.Len(t, c.Calls("DescribeInstances"), 3)

	c.Inject(
		awstest.Fault{
			Operation: "DescribeInstances", When: func(call awstest.Call) bool { return call.Params.Has("NextToken") },
		},
	)
	_, err = p.List(t.Context())
	requireClass(t, provider.Unknown, err)
}

// testTaggedByHand lists an instance with the pool's tags that it did not launch.
func testTaggedByHand(t *testing.T, c cloud) {
	id := c.untagged(t)
	_, err := ec2.NewFromConfig(c.Direct()).CreateTags(t.Context(), &ec2.CreateTagsInput{
		Resources: []string{id}, Tags: []types.Tag{
			{
				Key: aws.String("foresail.dev/cluster"), Value: aws.String("uid-1"),
			}, {Key: aws.String("foresail.dev/pool"), Value: aws.String("workers")},
		},
	})
	require.NoError(t, err)
	all, err := c.provider(t, "workers").List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, id, all[0].ID)
	require.Equal(t, -1, all[0].Slot)
	require.Empty(t, all[0].Action)
}

// testOtherControllers adds each tag of another controller to an instance with the pool's tags.
func testOtherControllers(t *testing.T, c cloud) {
	p, l := c.provider(t, "workers"), c.launch("workers")
	for n, controller := range controllers {
		l.Token = "t" + strconv.Itoa(n)
		i, err := p.Launch(t.Context(), l)
		require.NoError(t, err)
		c.tag(t, i.ID, controller.tag, "web")
		all, err := p.List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, n+1)
		for _, listed := range all {
			if listed.ID == i.ID {
				require.Equal(t, controller.owner+" web", listed.OwnedBy)
			}
		}
		err = p.Terminate(t.Context(), i.ID)
		requireClass(t, provider.NotOwned, err)
		require.ErrorContains(t, err, "it belongs to "+controller.owner+" web")
	}
	require.Empty(t, c.Calls("TerminateInstances"))
}

// testOtherRegions: EC2 knows no instance of another region, so its answer proves nothing about one.
func testOtherRegions(t *testing.T, c cloud) {
	p := c.provider(t, "workers")
	for providerID, known := range map[string]bool{
		"aws:///eu-central-1a/i-0a": true, "aws:///eu-central-1-ham-1a/i-0a": true, "aws:///i-0a": true, "": true,
		"aws:///euc1-az1/i-0a":   true,
		"aws:///us-east-1a/i-0a": false, "aws:///us-gov-east-1a/i-0a": false,
	} {
		found, err := p.Find(t.Context(), []fleet.Ref{{ID: "i-0a", ProviderID: providerID}})
		require.NoError(t, err)
		require.Equal(t, known, len(found) == 1, providerID)
	}
}

func testFindMany(t *testing.T, c cloud) {
	p := c.provider(t, "workers")
	i, err := p.Launch(t.Context(), c.launch("workers"))
	require.NoError(t, err)
	refs := []fleet.Ref{{ID: i.ID}}
	for n := range 2 * maxFilterValues {
		refs = append(refs, fleet.Ref{ID: "i-" + strconv.FormatInt(int64(0x1000+n), 16)})
	}
	found, err := p.Find(t.Context(), refs)
	require.NoError(t, err)
	require.Len(t, found, len(refs))
	require.Equal(t, fleet.Absent, found["i-1000"].State)
	require.Empty(t, found[i.ID].Disowned)
	require.Len(t, c.Calls("DescribeInstances"), 3)
}

func testStopped(t *testing.T, c cloud) {
	p := c.provider(t, "workers")
	instance, err := p.Launch(t.Context(), c.launch("workers"))
	require.NoError(t, err)
	_, err = ec2.NewFromConfig(c.Direct()).StopInstances(
		t.Context(), &ec2.StopInstancesInput{InstanceIds: []string{instance.ID}},
	)
	require.NoError(t, err)
	all, err := p.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, fleet.Leaving, all[0].State)
	require.True(t, all[0].Stopped)
}

func testTerminateOnce(t *testing.T, c cloud) {
	p := c.provider(t, "workers")
	instance, err := p.Launch(t.Context(), c.launch("workers"))
	require.NoError(t, err)
	c.Inject(awstest.Fault{Operation: "TerminateInstances", Times: 2, After: true, Do: awstest.Drop})
	requireClass(t, provider.Unknown, p.Terminate(t.Context(), instance.ID))
	require.NoError(t, p.Terminate(t.Context(), instance.ID))
	require.Len(t, c.Calls("TerminateInstances"), 2, "both of the first call, whose answers were lost")
	all, err := p.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
}

func testMarkGone(t *testing.T, c cloud) {
	p := c.provider(t, "workers")
	require.NoError(t, p.MarkJoinFailed(t.Context(), providertest.UnknownID))
	terminated := c.untagged(t)
	c.TakeBack(t, terminated)
	require.NoError(t, p.MarkJoinFailed(t.Context(), terminated))
	require.NoError(t, p.Terminate(t.Context(), terminated), "its owner does not matter")
	require.Empty(t, c.Calls("CreateTags"))
	require.Empty(t, c.Calls("TerminateInstances"))
}

func testOffers(t *testing.T, c cloud) {
	o := c.options("workers")
	o.Template = v1alpha1.NodeTemplate{
		Labels: map[string]string{"role": "worker", corev1.LabelOSStable: "bottlerocket"},
		Allocatable: map[string]resource.Quantity{
			"pods": resource.MustParse("29"), "example.com/gpu": resource.MustParse("1"),
		},
	}
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	for range 2 {
		offers, err := p.Offers(t.Context())
		require.NoError(t, err)
		require.Len(t, offers, 2*len(c.network.Subnets))
		first := offers[0]
		require.Equal(
			t, fleet.Offer{Zone: c.network.Subnets[0].Zone, Subnet: c.network.Subnets[0].ID, InstanceType: "t3.small"},
			first.Offer,
		)
		require.Equal(t, map[string]string{
			corev1.LabelTopologyZone: first.Zone, corev1.LabelTopologyRegion: awstest.Region,
			corev1.LabelInstanceTypeStable: "t3.small",
			corev1.LabelArchStable:         "amd64", corev1.LabelOSStable: "bottlerocket", "role": "worker",
		}, first.Labels)
		require.Equal(t, "1930m", first.Allocatable.Cpu().String())
		// 2 GiB, less 7.5%, 255 MiB and 11 MiB for each of 11 pods, and 100 MiB.
		memory := 2048.0 * mebi * (1 - 0.075)
		require.InDelta(t, memory-(255+121+100)*mebi, float64(first.Allocatable.Memory().Value()), 1)
		require.Equal(t, "29", first.Allocatable.Pods().String())
		require.Equal(t, resource.MustParse("1"), first.Allocatable["example.com/gpu"])
		require.Equal(t, "m5.large", offers[len(c.network.Subnets)].InstanceType)
		first.Labels["role"] = "changed by the caller"
		first.Allocatable[corev1.ResourcePods] = resource.MustParse("0")
	}
	require.Len(t, c.Calls("DescribeInstanceTypes"), 1)
}

func testUnknownType(t *testing.T, c cloud) {
	o := c.options("workers")
	o.Spec.InstanceTypes = []string{"t3.small", "t3.gigantic"}
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	_, err = p.Offers(t.Context())
	requireClass(t, provider.Invalid, err)
	require.ErrorContains(t, err, "t3.gigantic")
}

func TestNewRejectsReservedTags(t *testing.T) {
	o := Options{Cluster: "uid-1", Pool: "workers", Spec: v1alpha1.EC2Provider{Region: "eu-central-1"}}
	_, err := New(t.Context(), o)
	require.NoError(t, err)
	o.Spec.Tags = map[string]string{"foresail.dev/pool": "other"}
	_, err = New(t.Context(), o)
	require.ErrorContains(t, err, `tags: "foresail.dev/pool"`)
	o.Spec.Tags = map[string]string{"karpenter.sh/nodepool": "default"}
	_, err = New(t.Context(), o)
	require.ErrorContains(t, err, `tags: "karpenter.sh/nodepool"`)
	o.Spec.Tags = nil
	o.Pool = ""
	_, err = New(t.Context(), o)
	require.ErrorContains(t, err, "pool: must not be empty")
	o.Cluster = ""
	_, err = New(t.Context(), o)
	require.ErrorContains(t, err, "cluster: must not be empty")
}

func TestReservedCPU(t *testing.T) {
	for cores, want := range map[int64]int64{0: 0, 1: 60, 2: 70, 4: 80, 8: 90, 96: 310} {
		require.Equal(t, want, reservedCPU(cores), "%d cores", cores)
	}
}

func TestArchitecture(t *testing.T) {
	for want, given := range map[string][]types.ArchitectureType{
		"arm64": {types.ArchitectureTypeArm64},
		"amd64": {types.ArchitectureTypeI386, types.ArchitectureTypeX8664},
	} {
		processor := &types.ProcessorInfo{SupportedArchitectures: given}
		require.Equal(t, want, architecture(types.InstanceTypeInfo{ProcessorInfo: processor}))
	}
}

func TestRecentLaunchesExpire(t *testing.T) {
	now := time.Now()
	recent := newRecentLaunches(func() time.Time { return now })
	recent.add("i-1")
	now = now.Add(visibleWithin + time.Second)
	recent.add("i-2")
	require.Len(t, recent.at, 1)
	require.True(t, recent.mayAppear("i-2"))
	require.False(t, recent.mayAppear("i-1"))
}

func TestReservedMemoryDependsOnAddresses(t *testing.T) {
	shape := types.InstanceTypeInfo{}
	require.EqualValues(t, defaultMaxPods, addresses(shape), "unknown")
	shape.NetworkInfo = &types.NetworkInfo{
		MaximumNetworkInterfaces: aws.Int32(3), Ipv4AddressesPerInterface: aws.Int32(10),
	}
	require.EqualValues(t, 29, addresses(shape))
	shape.NetworkInfo.MaximumNetworkInterfaces = aws.Int32(15)
	shape.MemoryInfo = &types.MemoryInfo{SizeInMiB: aws.Int64(64 * 1024)}
	capped := allocatable(shape, nil)
	shape.NetworkInfo = nil
	full := allocatable(shape, nil)
	require.Equal(
		t, full.Memory().Value(), capped.Memory().Value(), "the kubelet takes at most its default number of pods",
	)
	unknown := allocatable(types.InstanceTypeInfo{}, nil)
	require.Zero(t, unknown.Memory().Value(), "at least 0")
}

func TestLimitsArePerRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits, start := NewLimits(DefaultShare), time.Now()
		for range 2 {
			require.NoError(t, limits.wait(t.Context(), "one", "RunInstances"))
		}
		require.Zero(t, time.Since(start), "the bucket starts full")
		for range 3 {
			require.NoError(t, limits.wait(t.Context(), "one", "RunInstances"))
		}
		require.Equal(t, 3*time.Second, time.Since(start))
		require.NoError(t, limits.wait(t.Context(), "other", "RunInstances"))
		require.NoError(t, limits.wait(t.Context(), "one", "DescribeInstances"))
		require.NoError(t, limits.wait(t.Context(), "one", "SomethingElse"))
		require.Equal(t, 3*time.Second, time.Since(start))

		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := limits.wait(soon, "one", "RunInstances")
		require.ErrorIs(t, err, errBucketEmpty)
		require.Equal(t, provider.Throttled, provider.ClassOf(classify("RunInstances", err)))
		require.Equal(t, 3*time.Second, time.Since(start), "it fails at once")
		cancel()
		require.ErrorIs(t, limits.wait(soon, "one", "RunInstances"), context.Canceled)
	})
}

func TestEmptyBucketSendsNothing(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", "") // custom clients do not support it
	sent := 0
	spec := v1alpha1.EC2Provider{Region: "eu-central-1"}
	o := Options{Cluster: "uid-1", Pool: "workers", Spec: spec, Load: []func(*config.LoadOptions) error{
		config.WithHTTPClient(&http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			sent++
			return nil, http.ErrHandlerTimeout
		})}),
		config.WithCredentialsProvider(aws.AnonymousCredentials{}),
	}}
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	for range 2 {
		_, err = p.Launch(t.Context(), provider.Launch{Token: "t"})
		requireClass(t, provider.Unknown, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = p.Launch(ctx, provider.Launch{Token: "t"})
	requireClass(t, provider.Throttled, err)
	require.Equal(t, 2, sent)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
