package ec2

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// oneOf returns a launch with alternatives.
func (c cloud) oneOf(pool string) provider.Launch {
	l := c.launch(pool)
	l.Alternatives = []string{"m5.large", "c5.large"}
	return l
}

func testFleetInput(t *testing.T, c cloud) {
	o := c.options("workers")
	o.MaxPrice = "0.02"
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	got, err := p.Launch(t.Context(), c.oneOf("workers"))
	require.NoError(t, err)
	require.Equal(t, c.oneOf("workers").Placement, got.Placement, "moto has no prices")
	require.Equal(t, "aws:///"+got.Zone+"/"+got.ID, got.ProviderID)
	sent := c.Calls("CreateFleet")[0].Params
	const config = "LaunchTemplateConfigs.1."
	for key, value := range map[string]string{
		"Type": "instant", "ClientToken": "workers-token",
		"TargetCapacitySpecification.TotalTargetCapacity":       "1",
		"TargetCapacitySpecification.DefaultTargetCapacityType": "spot",
		"SpotOptions.AllocationStrategy":                        "price-capacity-optimized",
		"SpotOptions.InstanceInterruptionBehavior":              "terminate",
		config + "LaunchTemplateSpecification.LaunchTemplateId": c.network.Template,
		config + "LaunchTemplateSpecification.Version":          "$Default",
		config + "Overrides.4.InstanceType":                     "",
	} {
		require.Equal(t, value, sent.Get(key), key)
	}
	for i, kind := range []string{"t3.small", "m5.large", "c5.large"} {
		override := fmt.Sprintf("%sOverrides.%d.", config, i+1)
		require.Equal(t, kind, sent.Get(override+"InstanceType"))
		require.Equal(t, c.network.Subnets[0].ID, sent.Get(override+"SubnetId"))
		require.Equal(t, "0.02", sent.Get(override+"MaxPrice"))
	}
	for i, kind := range []string{"fleet", "instance", "volume"} {
		require.Equal(t, kind, sent.Get(fmt.Sprintf("TagSpecification.%d.ResourceType", i+1)))
	}
	require.Equal(t, map[string]string{
		"Name": "workers", "foresail.dev/cluster": "uid-1", "foresail.dev/pool": "workers", "foresail.dev/action": "up-1",
		"foresail.dev/slot":  "2",
		"foresail.dev/token": "workers-token", "team": "<web> & co",
	}, c.userTags(t))
	require.Empty(t, c.Calls("RunInstances"))
	all, err := p.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Empty(t, all[0].OutdatedErr)
}

func testFleetOnDemand(t *testing.T, c cloud) {
	l := c.oneOf("workers")
	l.Market = fleet.OnDemand
	p := c.provider(t, "workers")
	_, err := p.Launch(t.Context(), l)
	require.NoError(t, err)
	sent := c.Calls("CreateFleet")[0].Params
	require.Equal(t, "on-demand", sent.Get("TargetCapacitySpecification.DefaultTargetCapacityType"))
	require.Equal(t, "lowest-price", sent.Get("OnDemandOptions.AllocationStrategy"))
	for key := range sent {
		require.NotContains(t, key, "SpotOptions")
		require.NotContains(t, key, "MaxPrice")
	}
	all, err := p.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, fleet.OnDemand, all[0].Market)
}

// testFleetByPrice has EC2 choose another type than the first of the call.
func testFleetByPrice(t *testing.T, c cloud) {
	zone := c.network.Subnets[0].Zone
	c.Sell(map[string]awstest.Price{
		"t3.small": {Spot: map[string]string{zone: "0.3"}}, "m5.large": {Spot: map[string]string{zone: "0.2"}},
		"c5.large": {Spot: map[string]string{zone: "0.1"}},
	})
	c.Short(awstest.Shortage{InstanceType: "c5.large", Market: "spot"})
	got, err := c.provider(t, "workers").Launch(t.Context(), c.oneOf("workers"))
	require.NoError(t, err)
	require.Equal(t, "m5.large", got.InstanceType)
	require.Equal(
		t,
		[]provider.Refusal{
			{InstanceType: "c5.large", Class: provider.Capacity, Reason: "InsufficientInstanceCapacity: there is a shortage"},
		},
		got.Refusals,
	)
}

func testFleetLostAnswer(t *testing.T, c cloud) {
	c.Short(awstest.Shortage{InstanceType: "t3.small", Market: "spot"})
	for i, effect := range []awstest.Effect{awstest.Drop, awstest.Fail} {
		l := c.oneOf("workers")
		l.Token += strconv.Itoa(i)
		c.Inject(awstest.Fault{Operation: "CreateFleet", Times: 1, After: true, Do: effect})
		c.Forget()
		_, err := c.provider(t, "workers").Launch(t.Context(), l)
		requireClass(t, provider.Unknown, err)
		require.Len(t, c.Calls("CreateFleet"), 1, "a launch is sent once")

		// Another process repeats the launch with the same token.
		p := c.provider(t, "workers")
		instance, err := p.Launch(t.Context(), l)
		require.NoError(t, err)
		require.True(t, l.Takes(instance.Instance))
		all, err := p.List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, i+1)
	}
}

// testFleetSpecChanged changes the spec between two tries: to EC2 the parameters differ. The instance does not have the
// first type.
func testFleetSpecChanged(t *testing.T, c cloud) {
	c.Short(awstest.Shortage{InstanceType: "t3.small", Market: "spot"})
	l := c.oneOf("workers")
	p, instance := c.launchedBefore(t, "CreateFleet", l)
	require.Equal(t, "m5.large", instance.InstanceType)

	l.Alternatives = []string{"c5.large"}
	_, err := p.Launch(t.Context(), l)
	requireClass(t, provider.TokenMismatch, err)
}

// testFleetUsedUp has a fleet launch nothing: its token never launches anything, even with capacity later.
func testFleetUsedUp(t *testing.T, c cloud) {
	end := c.Short(awstest.Shortage{})
	p, l := c.provider(t, "workers"), c.oneOf("workers")
	c.Inject(awstest.Fault{Operation: "CreateFleet", Times: 1, After: true, Do: awstest.Drop})
	_, err := p.Launch(t.Context(), l)
	requireClass(t, provider.Unknown, err)
	end()
	_, err = p.Launch(t.Context(), l)
	requireClass(t, provider.Capacity, err)
	require.Len(t, provider.RefusalsOf(err), 3)
	l.Token += "-2"
	_, err = p.Launch(t.Context(), l)
	require.NoError(t, err)
}

// testFleetCodes fails the overrides of a fleet, and then the call itself.
func testFleetCodes(t *testing.T, c cloud) {
	for i, row := range []struct {
		codes [3]string
		want  provider.Class
	}{
		{[3]string{"InsufficientInstanceCapacity", "UnfulfillableCapacity", "SpotMaxPriceTooLow"}, provider.Capacity},
		{
			[3]string{
				"InsufficientFreeAddressesInSubnet", "InsufficientFreeAddressesInSubnet", "InsufficientFreeAddressesInSubnet",
			},
			provider.Address,
		},
		{
			[3]string{"MaxSpotInstanceCountExceeded", "MaxSpotInstanceCountExceeded", "MaxSpotInstanceCountExceeded"},
			provider.Quota,
		},
		{
			[3]string{"InvalidParameterValue", "Server.InsufficientInstanceCapacity", "InvalidParameterValue"},
			provider.Capacity,
		},
		{[3]string{"InvalidParameterValue", "UnauthorizedOperation", "SomethingNew"}, provider.Invalid},
		// The token always returns this error: another one is needed once no instance can appear.
		{[3]string{"InsufficientInstanceCapacity", "RequestLimitExceeded", "InvalidParameterValue"}, provider.TokenMismatch},
		{[3]string{"InternalError", "InsufficientInstanceCapacity", "InsufficientInstanceCapacity"}, provider.TokenMismatch},
	} {
		l := c.oneOf("workers")
		l.Token += strconv.Itoa(i)
		var ends []func()
		for n, kind := range typesOfLaunch(l) {
			ends = append(ends, c.Short(awstest.Shortage{InstanceType: kind, Code: row.codes[n]}))
		}
		_, err := c.provider(t, "workers").Launch(t.Context(), l)
		requireClass(t, row.want, err)
		require.Len(t, provider.RefusalsOf(err), 3)
		for _, end := range ends {
			end()
		}
	}
	p, l := c.provider(t, "workers"), c.oneOf("workers")
	for code, want := range map[string]provider.Class{
		"RequestLimitExceeded": provider.Throttled, "UnauthorizedOperation": provider.Invalid,
		"MaxSpotInstanceCountExceeded": provider.Quota,
	} {
		c.Inject(awstest.Fault{Operation: "CreateFleet", Times: 1, Status: 400, Code: code})
		_, err := p.Launch(t.Context(), l)
		requireClass(t, want, err)
	}
	_, err := p.Launch(t.Context(), l)
	require.NoError(t, err, "no error has used the token")
}

func TestFleetError(t *testing.T) {
	l := provider.Launch{Placement: fleet.Placement{InstanceType: "a"}, Alternatives: []string{"b", "c"}}
	at := func(kind, code string) types.CreateFleetError {
		return types.CreateFleetError{
			ErrorCode: aws.String(code), ErrorMessage: aws.String("no"),
			LaunchTemplateAndOverrides: &types.LaunchTemplateAndOverridesResponse{
				Overrides: &types.FleetLaunchTemplateOverrides{InstanceType: types.InstanceType(kind)},
			},
		}
	}
	for name, row := range map[string]struct {
		list    []types.CreateFleetError
		class   provider.Class
		refused map[string]provider.Class
	}{
		"no reason": {nil, provider.TokenMismatch, map[string]provider.Class{}},
		"one error for all types": {[]types.CreateFleetError{at("a", "UnfulfillableCapacity")}, provider.Capacity,
			map[string]provider.Class{"a": provider.Capacity, "b": provider.Capacity, "c": provider.Capacity}},
		"an error without a " +
			"type": {[]types.CreateFleetError{{ErrorCode: aws.String("UnfulfillableCapacity")}}, provider.Capacity,
			map[string]provider.Class{"a": provider.Capacity, "b": provider.Capacity, "c": provider.Capacity}},
		"a quota does not refuse types": {
			[]types.CreateFleetError{at("b", "VcpuLimitExceeded")}, provider.Quota,
			map[string]provider.Class{"b": provider.Quota},
		},
		"an error without a code": {[]types.CreateFleetError{{}}, provider.TokenMismatch, map[string]provider.Class{}},
	} {
		err := fleetError(l, row.list)
		require.Equal(t, row.class, provider.ClassOf(err), name)
		got := map[string]provider.Class{}
		for _, r := range provider.RefusalsOf(err) {
			got[r.InstanceType] = r.Class
		}
		require.Equal(t, row.refused, got, name)
	}
	require.ErrorContains(
		t, fleetError(l, []types.CreateFleetError{at("a", "x"), at("b", "x"), at("c", "y")}), "x: no; y: no",
	)
}
