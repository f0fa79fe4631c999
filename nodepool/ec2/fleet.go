package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/nodepool/provider"
)

const createFleet = "CreateFleet"

// launchOneOf has EC2 choose among the types of a launch. A fleet of the type instant is a call and no more: it
// launches instances, says of each type that failed why, and looks after nothing. Unlike RunInstances it uses its
// token up if it launches nothing: the same call gets the same answer for good.
func (p *Provider) launchOneOf(ctx context.Context, l provider.Launch) (provider.Launched, error) {
	output, err := p.client.CreateFleet(ctx, p.fleet(l), func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
	if err != nil {
		err = classify(createFleet, err)
	} else if launched := p.launchedBy(l, output); len(launched) > 0 {
		return withOthers(launched, refusals(output.Errors)), nil
	} else {
		err = refused(l, output.Errors)
	}
	if provider.ClassOf(err) == provider.TokenMismatch {
		return p.launchedAs(ctx, l, err)
	}
	return provider.Launched{}, err
}

// fleet names one subnet: EC2 takes no two subnets of a zone.
func (p *Provider) fleet(l provider.Launch) *ec2.CreateFleetInput {
	config := types.FleetLaunchTemplateConfigRequest{LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
		LaunchTemplateId: aws.String(p.options.Spec.LaunchTemplate), Version: aws.String(p.options.Spec.LaunchTemplateVersion),
	}}
	for _, name := range typesOfLaunch(l) {
		override := types.FleetLaunchTemplateOverridesRequest{InstanceType: types.InstanceType(name), SubnetId: aws.String(l.Subnet)}
		if l.Market == fleet.Spot && p.options.MaxPrice != "" {
			override.MaxPrice = aws.String(p.options.MaxPrice)
		}
		config.Overrides = append(config.Overrides, override)
	}
	input := &ec2.CreateFleetInput{
		ClientToken:           aws.String(l.Token),
		Type:                  types.FleetTypeInstant,
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{config},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(count(l)), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand,
		},
		TagSpecifications: p.specifications(l, types.ResourceTypeFleet, types.ResourceTypeInstance, types.ResourceTypeVolume),
	}
	if l.Market == fleet.Spot {
		input.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
		input.SpotOptions = &types.SpotOptionsRequest{
			AllocationStrategy:           types.SpotAllocationStrategyPriceCapacityOptimized,
			InstanceInterruptionBehavior: types.SpotInstanceInterruptionBehaviorTerminate,
		}
	} else {
		input.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice}
	}
	return input
}

func typesOfLaunch(l provider.Launch) []string {
	return append([]string{l.InstanceType}, l.Alternatives...)
}

// launchedBy returns the instances that a fleet has launched.
func (p *Provider) launchedBy(l provider.Launch, output *ec2.CreateFleetOutput) []fleet.Instance {
	var out []fleet.Instance
	for _, i := range output.Instances {
		for _, id := range i.InstanceIds {
			p.remember(id)
			out = append(out, fleet.Instance{
				ID: id, ProviderID: providerID(l.Zone, id), Action: l.Action, Slot: l.Slot, Token: l.Token,
				Placement: l.Of(string(i.InstanceType)), State: fleet.Pending, Launched: p.options.Now(),
			})
		}
	}
	return out
}

// refusals are the types that EC2 tells of. What it says of none in particular is left out.
func refusals(list []types.CreateFleetError) []provider.Refusal {
	var out []provider.Refusal
	for _, e := range list {
		if kind := refusedType(e); kind != "" {
			out = append(out, provider.Refusal{InstanceType: kind, Class: classOfCode(aws.ToString(e.ErrorCode)), Reason: reason(e)})
		}
	}
	return out
}

func refusedType(e types.CreateFleetError) string {
	if e.LaunchTemplateAndOverrides == nil || e.LaunchTemplateAndOverrides.Overrides == nil {
		return ""
	}
	return string(e.LaunchTemplateAndOverrides.Overrides.InstanceType)
}

func reason(e types.CreateFleetError) string {
	return fmt.Sprintf("%s: %s", aws.ToString(e.ErrorCode), aws.ToString(e.ErrorMessage))
}

// refused is the error of a fleet that has launched nothing. Types that it does not tell of had no capacity either, if another
// had none: it has tried all. If it does not tell why, or an error leaves that open, its token is of no use any more, and an
// instance may show up late.
func refused(l provider.Launch, list []types.CreateFleetError) error {
	if len(list) == 0 {
		return &provider.Error{Class: provider.TokenMismatch, Op: createFleet, Err: errors.New("the fleet of the token has no instance, and does not tell why")}
	}
	err := &provider.Error{Class: provider.Invalid, Op: createFleet, Code: aws.ToString(list[0].ErrorCode), Refusals: refusals(list)}
	var reasons []string
	for _, e := range list {
		switch class := classOfCode(aws.ToString(e.ErrorCode)); class {
		case provider.Capacity, provider.ZoneCapacity, provider.Quota, provider.AccountQuota, provider.Address:
			if err.Class == provider.Invalid {
				err.Class, err.Code = class, aws.ToString(e.ErrorCode)
			}
		case provider.Invalid:
		default:
			err.Class = provider.TokenMismatch
		}
		if why := reason(e); !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	err.Err = errors.New(strings.Join(reasons, "; "))
	if err.Class != provider.Capacity {
		return err
	}
	for _, name := range typesOfLaunch(l) {
		if !slices.ContainsFunc(err.Refusals, func(r provider.Refusal) bool { return r.InstanceType == name }) {
			err.Refusals = append(err.Refusals, provider.Refusal{InstanceType: name, Class: err.Class, Reason: err.Err.Error()})
		}
	}
	return err
}
