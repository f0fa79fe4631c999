package ec2

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// The calls that launch instances.
const (
	runInstances = "RunInstances"
	createFleet  = "CreateFleet"
)

// requests builds the calls that launch instances. To EC2 the template, the tags and the price of the pool are
// parameters too: the same launch makes the same call only as long as these stay the same.
type requests struct {
	template, version string
	maxPrice          string // "" is the On-Demand price
	owner             identity
}

// run returns the call that launches one instance type.
func (r requests) run(l provider.Launch) *ec2.RunInstancesInput {
	input := &ec2.RunInstancesInput{
		ClientToken: aws.String(l.Token),
		LaunchTemplate: &types.LaunchTemplateSpecification{
			LaunchTemplateId: aws.String(r.template), Version: aws.String(r.version),
		},
		InstanceType:      types.InstanceType(l.InstanceType),
		SubnetId:          aws.String(l.Subnet),
		MinCount:          aws.Int32(1),
		MaxCount:          aws.Int32(instanceCount(l)),
		TagSpecifications: r.owner.specifications(l, types.ResourceTypeInstance, types.ResourceTypeVolume),
	}
	if l.Market == fleet.Spot {
		input.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{
			MarketType: types.MarketTypeSpot,
			SpotOptions: &types.SpotMarketOptions{
				SpotInstanceType:             types.SpotInstanceTypeOneTime,
				InstanceInterruptionBehavior: types.InstanceInterruptionBehaviorTerminate,
				MaxPrice:                     r.spotPrice(l),
			},
		}
	}
	return input
}

// fleet returns the call that launches one of several types. It names one subnet: EC2 takes no two subnets of a zone.
func (r requests) fleet(l provider.Launch) *ec2.CreateFleetInput {
	config := types.FleetLaunchTemplateConfigRequest{
		LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
			LaunchTemplateId: aws.String(r.template), Version: aws.String(r.version),
		},
	}
	for _, name := range typesOfLaunch(l) {
		config.Overrides = append(config.Overrides, types.FleetLaunchTemplateOverridesRequest{
			InstanceType: types.InstanceType(name), SubnetId: aws.String(l.Subnet), MaxPrice: r.spotPrice(l),
		})
	}
	input := &ec2.CreateFleetInput{
		ClientToken:           aws.String(l.Token),
		Type:                  types.FleetTypeInstant,
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{config},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity:       aws.Int32(instanceCount(l)),
			DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand,
		},
		TagSpecifications: r.owner.specifications(l,
			types.ResourceTypeFleet, types.ResourceTypeInstance, types.ResourceTypeVolume),
	}
	if l.Market == fleet.Spot {
		input.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
		input.SpotOptions = &types.SpotOptionsRequest{
			AllocationStrategy:           types.SpotAllocationStrategyPriceCapacityOptimized,
			InstanceInterruptionBehavior: types.SpotInstanceInterruptionBehaviorTerminate,
		}
	} else {
		input.OnDemandOptions = &types.OnDemandOptionsRequest{
			AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice,
		}
	}
	return input
}

// spotPrice returns the highest price of a launch; nil is EC2's default.
func (r requests) spotPrice(l provider.Launch) *string {
	if l.Market != fleet.Spot || r.maxPrice == "" {
		return nil
	}
	return aws.String(r.maxPrice)
}

// instanceCount returns the number of instances that a call requests.
func instanceCount(l provider.Launch) int32 { return int32(max(1, l.Count)) } //nolint:gosec // a call requests dozens

func typesOfLaunch(l provider.Launch) []string {
	return append([]string{l.InstanceType}, l.Alternatives...)
}
