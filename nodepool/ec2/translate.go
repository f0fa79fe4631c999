package ec2

import (
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/nodepool/fleet"
)

// translated returns an instance as EC2 describes it, in the terms of the pool; owner names the tags to read.
func translated(i types.Instance, owner identity) fleet.Instance {
	tags := tagsOf(i)
	instance := fleet.Instance{
		ID:     aws.ToString(i.InstanceId),
		Action: tags[owner.prefix+actionTag],
		Token:  tags[owner.prefix+tokenTag],
		Placement: fleet.Placement{
			Subnet: aws.ToString(i.SubnetId), InstanceType: string(i.InstanceType), Market: fleet.OnDemand,
		},
		State:     stateOf(i),
		Launched:  aws.ToTime(i.LaunchTime),
		Addresses: addressesOf(i),
		OwnedBy:   ownedBy(tags),
	}
	instance.Stopped = hasState(i, types.InstanceStateNameStopped) || hasState(i, types.InstanceStateNameStopping)
	_, instance.JoinFailed = tags[owner.prefix+joinFailedTag]
	slot, err := strconv.Atoi(tags[owner.prefix+slotTag])
	if err != nil {
		slot = -1 // the tags were not set by a launch
	}
	instance.Slot = slot
	if i.Placement != nil {
		instance.Zone = aws.ToString(i.Placement.AvailabilityZone)
	}
	if i.InstanceLifecycle == types.InstanceLifecycleTypeSpot {
		instance.Market = fleet.Spot
	}
	instance.ProviderID = providerID(instance.Zone, instance.ID)
	return instance
}

// addressesOf returns the private addresses and the host name of an instance: a kubelet reports one of the addresses,
// and the host name is the default name of its Node.
func addressesOf(i types.Instance) []string {
	all := []string{aws.ToString(i.PrivateIpAddress), aws.ToString(i.PrivateDnsName), aws.ToString(i.Ipv6Address)}
	for _, n := range i.NetworkInterfaces {
		all = append(all, aws.ToString(n.PrivateIpAddress))
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(address string) bool { return address == "" })
}

// providerID returns the provider ID that AWS's cloud provider sets on a Node.
func providerID(zone, id string) string { return "aws:///" + zone + "/" + id }

// stateOf returns Leaving for a stopped instance too: the pool does not start workers again.
func stateOf(i types.Instance) fleet.InstanceState {
	if i.State == nil {
		return fleet.Pending
	}
	switch i.State.Name {
	case types.InstanceStateNamePending:
		return fleet.Pending
	case types.InstanceStateNameRunning:
		return fleet.Running
	case types.InstanceStateNameTerminated:
		return fleet.Gone
	default:
		return fleet.Leaving
	}
}

func hasState(instance types.Instance, state types.InstanceStateName) bool {
	return instance.State != nil && instance.State.Name == state
}
