package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// client has the operations of EC2 that a provider uses, each as a function. The linker keeps all methods of a type
// that is converted to an interface, which a paginator does with its client, and the 812 operations of [ec2.Client]
// are a fifth of the program.
type client struct {
	CreateFleet                    call[ec2.CreateFleetInput, ec2.CreateFleetOutput]
	CreateTags                     call[ec2.CreateTagsInput, ec2.CreateTagsOutput]
	DescribeImages                 call[ec2.DescribeImagesInput, ec2.DescribeImagesOutput]
	describeInstances              call[ec2.DescribeInstancesInput, ec2.DescribeInstancesOutput]
	describeInstanceStatus         call[ec2.DescribeInstanceStatusInput, ec2.DescribeInstanceStatusOutput]
	describeInstanceTypeOfferings  call[ec2.DescribeInstanceTypeOfferingsInput, ec2.DescribeInstanceTypeOfferingsOutput]
	describeInstanceTypes          call[ec2.DescribeInstanceTypesInput, ec2.DescribeInstanceTypesOutput]
	DescribeLaunchTemplates        call[ec2.DescribeLaunchTemplatesInput, ec2.DescribeLaunchTemplatesOutput]
	DescribeLaunchTemplateVersions call[ec2.DescribeLaunchTemplateVersionsInput, ec2.DescribeLaunchTemplateVersionsOutput]
	describeSpotPriceHistory       call[ec2.DescribeSpotPriceHistoryInput, ec2.DescribeSpotPriceHistoryOutput]
	RunInstances                   call[ec2.RunInstancesInput, ec2.RunInstancesOutput]
	TerminateInstances             call[ec2.TerminateInstancesInput, ec2.TerminateInstancesOutput]
}

// call is an operation of EC2.
type call[In, Out any] func(context.Context, *In, ...func(*ec2.Options)) (*Out, error)

func newClient(c *ec2.Client) *client {
	return &client{
		CreateFleet:                    c.CreateFleet,
		CreateTags:                     c.CreateTags,
		DescribeImages:                 c.DescribeImages,
		describeInstances:              c.DescribeInstances,
		describeInstanceStatus:         c.DescribeInstanceStatus,
		describeInstanceTypeOfferings:  c.DescribeInstanceTypeOfferings,
		describeInstanceTypes:          c.DescribeInstanceTypes,
		DescribeLaunchTemplates:        c.DescribeLaunchTemplates,
		DescribeLaunchTemplateVersions: c.DescribeLaunchTemplateVersions,
		describeSpotPriceHistory:       c.DescribeSpotPriceHistory,
		RunInstances:                   c.RunInstances,
		TerminateInstances:             c.TerminateInstances,
	}
}

func (c *client) DescribeInstances(
	ctx context.Context, in *ec2.DescribeInstancesInput, options ...func(*ec2.Options),
) (*ec2.DescribeInstancesOutput, error) {
	return c.describeInstances(ctx, in, options...)
}

func (c *client) DescribeInstanceStatus(
	ctx context.Context, in *ec2.DescribeInstanceStatusInput, options ...func(*ec2.Options),
) (*ec2.DescribeInstanceStatusOutput, error) {
	return c.describeInstanceStatus(ctx, in, options...)
}

func (c *client) DescribeInstanceTypeOfferings(
	ctx context.Context, in *ec2.DescribeInstanceTypeOfferingsInput, options ...func(*ec2.Options),
) (*ec2.DescribeInstanceTypeOfferingsOutput, error) {
	return c.describeInstanceTypeOfferings(ctx, in, options...)
}

func (c *client) DescribeInstanceTypes(
	ctx context.Context, in *ec2.DescribeInstanceTypesInput, options ...func(*ec2.Options),
) (*ec2.DescribeInstanceTypesOutput, error) {
	return c.describeInstanceTypes(ctx, in, options...)
}

func (c *client) DescribeSpotPriceHistory(
	ctx context.Context, in *ec2.DescribeSpotPriceHistoryInput, options ...func(*ec2.Options),
) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	return c.describeSpotPriceHistory(ctx, in, options...)
}
