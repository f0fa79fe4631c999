package ec2

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

const (
	// maxPageSize is the largest page that EC2 returns. Calls without a page size are throttled sooner.
	maxPageSize = 1000
	// maxFilterValues bounds the values of one filter of DescribeInstances.
	maxFilterValues = 200
)

// instances reads, terminates and tags existing instances.
type instances struct {
	client   *client
	owner    identity
	recent   *recentLaunches
	region   string
	pageSize int32
}

func newInstances(client *client, owner identity, region string, now func() time.Time) *instances {
	return &instances{
		client: client, owner: owner, recent: newRecentLaunches(now), region: region, pageSize: maxPageSize,
	}
}

// living returns the pool's instances that are not terminated, selected by further tags (keys and values in turn).
func (s *instances) living(ctx context.Context, tags ...string) ([]types.Instance, error) {
	return s.pages(ctx, append(s.owner.filters(tags...), types.Filter{
		Name:   aws.String("instance-state-name"),
		Values: []string{"pending", "running", "stopping", "stopped", "shutting-down"},
	})...)
}

func (s *instances) translate(described []types.Instance) []fleet.Instance {
	list := make([]fleet.Instance, 0, len(described))
	for _, d := range described {
		list = append(list, translated(d, s.owner))
	}
	return list
}

// find returns instances by id. It filters by id rather than naming ids, as one unknown id would fail the whole call.
func (s *instances) find(ctx context.Context, refs []fleet.Ref) (map[string]fleet.Instance, error) {
	found := map[string]fleet.Instance{}
	var ids []string
	for _, ref := range refs {
		if s.findable(ref) {
			ids = append(ids, ref.ID)
		}
	}
	for some := range slices.Chunk(ids, maxFilterValues) {
		described, err := s.pages(ctx, types.Filter{Name: aws.String("instance-id"), Values: some})
		if err != nil {
			return nil, err
		}
		for _, d := range described {
			instance := translated(d, s.owner)
			instance.Disowned = s.owner.disowned(tagsOf(d))
			found[instance.ID] = instance
		}
	}
	for _, id := range ids {
		if _, ok := found[id]; !ok && !s.recent.mayAppear(id) {
			found[id] = fleet.Instance{ID: id, State: fleet.Absent}
		}
	}
	return found, nil
}

var (
	instanceID = regexp.MustCompile(`^i-[0-9a-f]+$`)
	zoneName   = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]`)
)

// findable reports whether EC2 in the pool's region can know an instance: that it denies an instance of another region
// proves nothing.
func (s *instances) findable(ref fleet.Ref) bool {
	if !instanceID.MatchString(ref.ID) {
		return false
	}
	parts := strings.Split(ref.ProviderID, "/")
	zone := parts[max(0, len(parts)-2)]
	return !zoneName.MatchString(zone) || strings.HasPrefix(zone, s.region)
}

// pages returns all instances that the filters select.
func (s *instances) pages(ctx context.Context, filters ...types.Filter) ([]types.Instance, error) {
	pages := ec2.NewDescribeInstancesPaginator(s.client, &ec2.DescribeInstancesInput{
		Filters: filters, MaxResults: aws.Int32(s.pageSize),
	})
	var list []types.Instance
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeInstances", err)
		}
		list = append(list, instancesOf(page)...)
	}
	return list, nil
}

// instancesOf returns the instances of an answer, of all its reservations.
func instancesOf(output *ec2.DescribeInstancesOutput) []types.Instance {
	var list []types.Instance
	for _, reservation := range output.Reservations {
		list = append(list, reservation.Instances...)
	}
	return list
}

func (s *instances) terminate(ctx context.Context, id string) error {
	return s.change(ctx, "TerminateInstances", id, func() error {
		_, err := s.client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
		return err
	})
}

func (s *instances) markJoinFailed(ctx context.Context, id string) error {
	return s.change(ctx, "CreateTags", id, func() error {
		_, err := s.client.CreateTags(ctx, &ec2.CreateTagsInput{
			Resources: []string{id},
			Tags:      []types.Tag{{Key: aws.String(s.owner.prefix + joinFailedTag), Value: aws.String("true")}},
		})
		return err
	})
}

// change calls EC2 if the instance exists, after it has checked that the instance is the pool's.
func (s *instances) change(ctx context.Context, op, id string, call func() error) error {
	exists, err := s.changeable(ctx, op, id)
	if err != nil || !exists {
		return err
	}
	return s.unlessAbsent(op, id, call())
}

// changeable reports whether an instance exists and is not ending yet. It fails if the instance is not the pool's.
func (s *instances) changeable(ctx context.Context, op, id string) (bool, error) {
	output, err := s.client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return false, s.unlessAbsent(op, id, err)
	}
	list := instancesOf(output)
	if len(list) == 0 || hasState(list[0], types.InstanceStateNameTerminated) {
		return false, nil // EC2 drops a terminated instance after an hour, and its tags sooner
	}
	if why := s.owner.foreign(tagsOf(list[0])); why != "" {
		return false, &provider.Error{Class: provider.NotOwned, Op: op, Err: fmt.Errorf("%s: %s", id, why)}
	}
	return !hasState(list[0], types.InstanceStateNameShuttingDown), nil
}

// unlessAbsent classifies the error of a call about one instance; nil if EC2 does not know the instance.
func (s *instances) unlessAbsent(op, id string, err error) error {
	if err == nil {
		return nil
	}
	if codeOf(err) != "InvalidInstanceID.NotFound" {
		return classify(op, err)
	}
	if s.recent.mayAppear(id) {
		return &provider.Error{Class: provider.Unknown, Op: op, Code: codeOf(err),
			Err: fmt.Errorf("%s was launched just now and is not known yet: %w", id, err)}
	}
	return nil
}
