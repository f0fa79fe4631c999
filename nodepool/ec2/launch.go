package ec2

import (
	"context"
	"errors"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/nodepool/provider"
)

// Launch implements [provider.Provider]: RunInstances launches one type, and CreateFleet one of several. To EC2 the
// template, the tags and the price of the pool are parameters too. If these have changed since the token was used, the
// instances are looked for by their tag.
func (p *Provider) Launch(ctx context.Context, l provider.Launch) (provider.Launched, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	const op = "RunInstances"
	if err := p.options.Limits.waitForInstances(ctx, p.options.Spec.Region, int(count(l))); err != nil {
		return provider.Launched{}, classify(op, err)
	}
	if len(l.Alternatives) > 0 {
		return p.launchOneOf(ctx, l)
	}
	output, err := p.client.RunInstances(ctx, p.input(l), func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
	if err != nil {
		err = classify(op, err)
		if provider.ClassOf(err) == provider.TokenMismatch {
			return p.launchedAs(ctx, l, err)
		}
		return provider.Launched{}, err
	}
	if len(output.Instances) == 0 {
		return provider.Launched{}, &provider.Error{Class: provider.Unknown, Op: op, Err: errors.New("the answer has no instance")}
	}
	var launched []fleet.Instance
	for _, i := range output.Instances {
		launched = append(launched, p.instance(i))
		p.remember(launched[len(launched)-1].ID)
	}
	return withOthers(launched, nil), nil
}

// withOthers returns the first of the instances that one call has launched, with the others.
func withOthers(launched []fleet.Instance, refusals []provider.Refusal) provider.Launched {
	first := provider.Launched{Instance: launched[0], Refusals: refusals}
	if len(launched) > 1 {
		first.Others = launched[1:]
	}
	return first
}

// count returns how many instances a call asks for.
func count(l provider.Launch) int32 { return int32(max(1, l.Count)) } //nolint:gosec // a call asks for dozens

// launchedAs returns the instances that a token has launched as requested, if EC2 lists any, and else the mismatch.
func (p *Provider) launchedAs(ctx context.Context, l provider.Launch, mismatch error) (provider.Launched, error) {
	described, err := p.describe(ctx, p.tagged(tokenTag, l.Token)...)
	if err != nil {
		return provider.Launched{}, err
	}
	var launched []fleet.Instance
	for _, d := range described {
		if i := p.instance(d); l.Takes(i) && i.OwnedBy == "" {
			launched = append(launched, i)
		}
	}
	if len(launched) == 0 {
		return provider.Launched{}, mismatch
	}
	return withOthers(launched, nil), nil
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
		MaxCount:          aws.Int32(count(l)),
		TagSpecifications: p.specifications(l, types.ResourceTypeInstance, types.ResourceTypeVolume),
	}
	if l.Market == fleet.Spot {
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
