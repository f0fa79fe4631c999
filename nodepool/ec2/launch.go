package ec2

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
)

// Launch implements [provider.Provider]: one type is launched as an instance, and one of several by a fleet. To EC2 the template, the tags and the price of the pool are parameters too; if these
// have changed since the token was used, the instance is looked for by its tag.
func (p *Provider) Launch(ctx context.Context, l provider.Launch) (provider.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if len(l.Alternatives) > 0 {
		return p.launchOneOf(ctx, l)
	}
	const op = "RunInstances"
	output, err := p.client.RunInstances(ctx, p.input(l), func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
	if err != nil {
		err = classify(op, err)
		if provider.ClassOf(err) == provider.TokenMismatch {
			return p.launchedAs(ctx, l, err)
		}
		return provider.Instance{}, err
	}
	if len(output.Instances) != 1 {
		return provider.Instance{}, &provider.Error{Class: provider.Unknown, Op: op, Err: errors.New("the answer has no instance")}
	}
	instance := p.instance(output.Instances[0])
	p.remember(instance.ID)
	return instance, nil
}

// launchedAs returns the instance that a token has launched with what is asked for, if EC2 lists one, and else the mismatch.
func (p *Provider) launchedAs(ctx context.Context, l provider.Launch, mismatch error) (provider.Instance, error) {
	described, err := p.describe(ctx, p.tagged(tokenTag, l.Token)...)
	if err != nil {
		return provider.Instance{}, err
	}
	for _, d := range described {
		if i := p.instance(d); l.Takes(i) && i.OwnedBy == "" {
			return i, nil
		}
	}
	return provider.Instance{}, mismatch
}

func (p *Provider) input(l provider.Launch) *ec2.RunInstancesInput {
	template := &types.LaunchTemplateSpecification{
		LaunchTemplateId: aws.String(p.options.Spec.LaunchTemplate), Version: aws.String(p.options.Spec.LaunchTemplateVersion),
	}
	input := &ec2.RunInstancesInput{
		ClientToken:       aws.String(l.Token),
		LaunchTemplate:    template,
		InstanceType:      types.InstanceType(l.InstanceType),
		SubnetId:          aws.String(l.Subnet),
		MinCount:          aws.Int32(1),
		MaxCount:          aws.Int32(1),
		TagSpecifications: p.specifications(l, types.ResourceTypeInstance, types.ResourceTypeVolume),
	}
	if l.Market == plan.Spot {
		input.InstanceMarketOptions = p.spot()
	}
	return input
}

func (p *Provider) spot() *types.InstanceMarketOptionsRequest {
	options := &types.SpotMarketOptions{
		SpotInstanceType:             types.SpotInstanceTypeOneTime,
		InstanceInterruptionBehavior: types.InstanceInterruptionBehaviorTerminate,
	}
	if p.options.MaxPrice != "" {
		options.MaxPrice = aws.String(p.options.MaxPrice)
	}
	return &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot, SpotOptions: options}
}

// specifications has EC2 tag what it makes from the first moment.
func (p *Provider) specifications(l provider.Launch, kinds ...types.ResourceType) []types.TagSpecification {
	out := make([]types.TagSpecification, len(kinds))
	for i, kind := range kinds {
		out[i] = types.TagSpecification{ResourceType: kind, Tags: p.tags(l)}
	}
	return out
}
