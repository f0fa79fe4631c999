package ec2

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/nodepool/provider"
)

// maxPageSize is how many instances an answer can have at most. Calls that name no size are throttled sooner.
const maxPageSize = 1000

// List implements [provider.Provider].
func (p *Provider) List(ctx context.Context) ([]fleet.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	described, err := p.describe(ctx, p.tagged()...)
	if err != nil {
		return nil, err
	}
	instances := make([]fleet.Instance, 0, len(described))
	for _, d := range described {
		instances = append(instances, p.instance(d))
	}
	p.judge(ctx, described, instances)
	p.inspect(ctx, instances)
	return instances, nil
}

// maxFilterValues is how many values a filter of DescribeInstances may have.
const maxFilterValues = 200

// Find implements [provider.Provider]. It filters by id rather than naming ids, as one unknown id would fail the whole call.
func (p *Provider) Find(ctx context.Context, refs []fleet.Ref) (map[string]fleet.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found := map[string]fleet.Instance{}
	var ids []string
	for _, ref := range refs {
		if p.findable(ref) {
			ids = append(ids, ref.ID)
		}
	}
	for some := range slices.Chunk(ids, maxFilterValues) {
		described, err := p.pages(ctx, types.Filter{Name: aws.String("instance-id"), Values: some})
		if err != nil {
			return nil, err
		}
		for _, d := range described {
			instance := p.instance(d)
			instance.Disowned = p.disowned(tagsOf(d))
			found[instance.ID] = instance
		}
	}
	for _, id := range ids {
		if _, ok := found[id]; !ok && !p.mayAppear(id) {
			found[id] = fleet.Instance{ID: id, State: fleet.Absent}
		}
	}
	return found, nil
}

var (
	instanceID = regexp.MustCompile(`^i-[0-9a-f]+$`)
	zoneName   = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]`)
)

// findable reports whether EC2 in the region of the pool can know an instance. That it knows none of another region proves
// nothing.
func (p *Provider) findable(ref fleet.Ref) bool {
	if !instanceID.MatchString(ref.ID) {
		return false
	}
	parts := strings.Split(ref.ProviderID, "/")
	zone := parts[max(0, len(parts)-2)]
	return !zoneName.MatchString(zone) || strings.HasPrefix(zone, p.options.Spec.Region)
}

// describe lists instances that have not been terminated.
func (p *Provider) describe(ctx context.Context, filters ...types.Filter) ([]types.Instance, error) {
	return p.pages(ctx, append(filters, types.Filter{
		Name: aws.String("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped", "shutting-down"},
	})...)
}

// pages lists all instances that filters choose.
func (p *Provider) pages(ctx context.Context, filters ...types.Filter) ([]types.Instance, error) {
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
	if why := p.foreign(tagsOf(instances[0])); why != "" {
		return false, &provider.Error{Class: provider.NotOwned, Op: op, Err: fmt.Errorf("%s: %s", id, why)}
	}
	return !hasState(instances[0], types.InstanceStateNameShuttingDown), nil
}

// foreign returns why an instance is not the pool's to change, "" if it is.
func (p *Provider) foreign(tags map[string]string) string {
	if why := p.disowned(tags); why != "" {
		return why
	}
	if owner := ownedBy(tags); owner != "" {
		return "it belongs to " + owner
	}
	return ""
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
func (p *Provider) instance(i types.Instance) fleet.Instance {
	tags := tagsOf(i)
	instance := fleet.Instance{
		ID:     aws.ToString(i.InstanceId),
		Action: tags[p.prefix+actionTag],
		Token:  tags[p.prefix+tokenTag],
		Placement: fleet.Placement{
			Subnet: aws.ToString(i.SubnetId), InstanceType: string(i.InstanceType), Market: fleet.OnDemand,
		},
		State:     stateOf(i),
		Launched:  aws.ToTime(i.LaunchTime),
		Addresses: addressesOf(i),
		OwnedBy:   ownedBy(tags),
	}
	instance.Stopped = hasState(i, types.InstanceStateNameStopped) || hasState(i, types.InstanceStateNameStopping)
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
		instance.Market = fleet.Spot
	}
	instance.ProviderID = providerID(instance.Zone, instance.ID)
	return instance
}

// addressesOf returns the private addresses and the host name of an instance: a kubelet reports one of the addresses, and the host
// name is what a Node is called by default.
func addressesOf(i types.Instance) []string {
	all := []string{aws.ToString(i.PrivateIpAddress), aws.ToString(i.PrivateDnsName), aws.ToString(i.Ipv6Address)}
	for _, n := range i.NetworkInterfaces {
		all = append(all, aws.ToString(n.PrivateIpAddress))
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(address string) bool { return address == "" })
}

// providerID is what the cloud provider for AWS gives a node.
func providerID(zone, id string) string { return "aws:///" + zone + "/" + id }

// stateOf counts an instance that is stopped as one that leaves: workers are never started again.
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
