package ec2

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
)

// maxPageSize is how many instances an answer can have at most. Calls that name no size are throttled sooner.
const maxPageSize = 1000

// List implements [provider.Provider].
func (p *Provider) List(ctx context.Context) ([]provider.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	described, err := p.describe(ctx, p.tagged()...)
	if err != nil {
		return nil, err
	}
	instances := make([]provider.Instance, 0, len(described))
	for _, d := range described {
		instances = append(instances, p.instance(d))
	}
	p.judge(ctx, described, instances)
	p.inspect(ctx, instances)
	return instances, nil
}

// describe lists instances that have not been terminated.
func (p *Provider) describe(ctx context.Context, filters ...types.Filter) ([]types.Instance, error) {
	filters = append(filters, types.Filter{
		Name: aws.String("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped", "shutting-down"},
	})
	pages := ec2.NewDescribeInstancesPaginator(p.client, &ec2.DescribeInstancesInput{
		Filters: filters, MaxResults: aws.Int32(p.pageSize),
	})
	var instances []types.Instance
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeInstances", err)
		}
		instances = append(instances, instancesOf(page)...)
	}
	return instances, nil
}

// instancesOf returns the instances of an answer, whatever calls launched them.
func instancesOf(output *ec2.DescribeInstancesOutput) []types.Instance {
	var instances []types.Instance
	for _, reservation := range output.Reservations {
		instances = append(instances, reservation.Instances...)
	}
	return instances
}

// Terminate implements [provider.Provider]. Of an instance that was launched minutes ago and that EC2 denies it is not known
// whether it is gone.
func (p *Provider) Terminate(ctx context.Context, id string) error {
	const op = "TerminateInstances"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	there, err := p.own(ctx, op, id)
	if err != nil || !there {
		return err
	}
	_, err = p.client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	return p.gone(op, id, err)
}

// MarkJoinFailed implements [provider.Provider]. An instance that is gone needs no mark.
func (p *Provider) MarkJoinFailed(ctx context.Context, id string) error {
	const op = "CreateTags"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	there, err := p.own(ctx, op, id)
	if err != nil || !there {
		return err
	}
	_, err = p.client.CreateTags(ctx, &ec2.CreateTagsInput{
		Resources: []string{id},
		Tags:      []types.Tag{{Key: aws.String(p.prefix + joinFailedTag), Value: aws.String("true")}},
	})
	return p.gone(op, id, err)
}

// own tells whether an instance is there, and is an error if it is not the pool's.
func (p *Provider) own(ctx context.Context, op, id string) (there bool, err error) {
	output, err := p.client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return false, p.gone(op, id, err)
	}
	instances := instancesOf(output)
	if len(instances) == 0 || hasState(instances[0], types.InstanceStateNameTerminated) {
		return false, nil // EC2 forgets what was terminated an hour ago, and its tags sooner
	}
	if why := p.disowned(instances[0]); why != "" {
		return false, &provider.Error{Class: provider.NotOwned, Op: op, Err: fmt.Errorf("%s: %s", id, why)}
	}
	return !hasState(instances[0], types.InstanceStateNameShuttingDown), nil
}

// gone turns the error of a call about one instance into that of a provider: none if EC2 does not know the instance.
func (p *Provider) gone(op, id string, err error) error {
	if err == nil {
		return nil
	}
	if codeOf(err) != "InvalidInstanceID.NotFound" {
		return classify(op, err)
	}
	if p.mayAppear(id) {
		return &provider.Error{Class: provider.Unknown, Op: op, Code: codeOf(err),
			Err: fmt.Errorf("%s was launched just now and is not known yet: %w", id, err)}
	}
	return nil
}

func hasState(instance types.Instance, state types.InstanceStateName) bool {
	return instance.State != nil && instance.State.Name == state
}

// instance translates what EC2 tells.
func (p *Provider) instance(i types.Instance) provider.Instance {
	tags := tagsOf(i)
	instance := provider.Instance{
		ID:     aws.ToString(i.InstanceId),
		Action: tags[p.prefix+actionTag],
		Token:  tags[p.prefix+tokenTag],
		Placement: plan.Placement{
			Subnet: aws.ToString(i.SubnetId), InstanceType: string(i.InstanceType), Market: plan.OnDemand,
		},
		State:    stateOf(i),
		Launched: aws.ToTime(i.LaunchTime),
	}
	instance.Stopped = hasState(i, types.InstanceStateNameStopped)
	_, instance.JoinFailed = tags[p.prefix+joinFailedTag]
	slot, err := strconv.Atoi(tags[p.prefix+slotTag])
	if err != nil {
		slot = -1 // of an instance that somebody else has tagged
	}
	instance.Slot = slot
	if i.Placement != nil {
		instance.Zone = aws.ToString(i.Placement.AvailabilityZone)
	}
	if i.InstanceLifecycle == types.InstanceLifecycleTypeSpot {
		instance.Market = plan.Spot
	}
	instance.ProviderID = providerID(instance.Zone, instance.ID)
	return instance
}

// providerID is what the cloud provider for AWS gives a node.
func providerID(zone, id string) string { return "aws:///" + zone + "/" + id }

// stateOf counts an instance that is stopped as one that leaves: workers are never started again.
func stateOf(i types.Instance) provider.InstanceState {
	if i.State == nil {
		return provider.Pending
	}
	switch i.State.Name {
	case types.InstanceStateNamePending:
		return provider.Pending
	case types.InstanceStateNameRunning:
		return provider.Running
	default:
		return provider.Leaving
	}
}
