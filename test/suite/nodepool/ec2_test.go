package nodepool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/ec2"
	"github.com/foresail/foresail/nodepool/prices"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
	"github.com/foresail/foresail/nodepool/state/dynamodb"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// startMoto starts the server that all stages on EC2 share, once one of them asks for it.
var startMoto = sync.OnceValues(func() (*awstest.Moto, error) {
	m, err := awstest.RunMoto(context.Background(), os.Stderr)
	if err == nil {
		atEnd = append(atEnd, m.Stop)
	}
	return m, err
})

// awsTransport carries the calls of all stages to it.
var awsTransport = &http.Transport{MaxIdleConnsPerHost: 16}

const (
	instanceType = "m5.large"
	otherType    = "m5a.large" // costs a little more
	table        = "journals"
)

// shape is what pods can use of a node.
var shape = map[string]resource.Quantity{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"),
	"pods": resource.MustParse("110")}

// onEC2 has instances in EC2 and the journal in DynamoDB. What kubelets and the cloud do by
// themselves is played here.
type onEC2 struct {
	stage   *stage
	cloud   *awstest.Cloud
	network awstest.Network
	direct  *awsec2.Client

	mu       sync.Mutex
	first    map[string]time.Time // instance → when it was seen first, by the clock of the stage: EC2 has another
	never    map[string]bool      // instances that never join
	joined   map[string]bool
	stopped  map[string]bool
	taken    map[string]time.Time // instance → when EC2 takes it back
	messages []provider.Message
	stranded bool
}

func newOnEC2(s *stage) cloud {
	moto, err := startMoto()
	require.NoError(s.t, err)
	c := &onEC2{
		stage: s, cloud: moto.Cloud(s.t), first: map[string]time.Time{},
		never: map[string]bool{}, joined: map[string]bool{}, stopped: map[string]bool{}, taken: map[string]time.Time{},
	}
	c.network = c.cloud.Network(s.t)
	c.direct = awsec2.NewFromConfig(c.cloud.Direct())
	_, err = awsdynamodb.NewFromConfig(c.cloud.Direct()).CreateTable(s.t.Context(), &awsdynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: dynamodbtypes.BillingModePayPerRequest,
		KeySchema: []dynamodbtypes.KeySchemaElement{{AttributeName: aws.String(dynamodb.DefaultHashKey),
			KeyType: dynamodbtypes.KeyTypeHash}},
		AttributeDefinitions: []dynamodbtypes.AttributeDefinition{{AttributeName: aws.String(dynamodb.DefaultHashKey),
			AttributeType: "S"}},
	})
	require.NoError(s.t, err)
	return c
}

func (c *onEC2) httpClient(p *process) *http.Client {
	return &http.Client{Transport: p.wire.wrap(awsTransport)}
}

func (c *onEC2) provider(p *process) provider.Provider {
	spec := v1alpha1.EC2Provider{
		LaunchTemplate: c.network.Template, LaunchTemplateVersion: "$Default", Region: awstest.Region,
		InstanceTypes: []string{instanceType},
	}
	for _, subnet := range c.network.Subnets[:2] {
		spec.Subnets = append(spec.Subnets, v1alpha1.EC2Subnet{Zone: subnet.Zone, ID: subnet.ID})
	}
	options := ec2.Options{
		Cluster: "uid-1", Pool: c.stage.name, Spec: spec, Template: v1alpha1.NodeTemplate{Allocatable: shape},
		Now:    p.now,
		Limits: ec2.NewLimits(1000), // they are in real time
		Load: []func(*config.LoadOptions) error{
			config.WithCredentialsProvider(c.cloud.Config().Credentials), config.WithHTTPClient(c.httpClient(p)),
			config.WithBaseEndpoint(c.cloud.URL()),
		},
	}
	if c.stage.scenario.several {
		options.Spec.InstanceTypes, options.Spot = nil, true
		options.Spec.Requirements = &v1alpha1.EC2Requirements{
			VCPU: v1alpha1.EC2CPURange{Min: 2}, Memory: v1alpha1.EC2MemoryRange{Min: resource.MustParse("4Gi")},
			AllowedTypes: []string{instanceType, otherType},
		}
		options.Prices = prices.Prices{
			instanceType: {OnDemand: new(1.0), Spot: new(0.5)}, otherType: {OnDemand: new(1.1), Spot: new(0.6)},
		}
	}
	made, err := ec2.New(c.stage.t.Context(), options)
	require.NoError(c.stage.t, err)
	return dated{Provider: made, cloud: c}
}

func (c *onEC2) store(p *process) state.Store {
	config := c.cloud.Config()
	config.HTTPClient, config.RetryMaxAttempts = c.httpClient(p), 1
	return dynamodb.New(awsdynamodb.NewFromConfig(config), dynamodb.Options{Table: table})
}

func (c *onEC2) notices(p *process) provider.Notices { return queue{c, p} }

func (c *onEC2) all(ctx context.Context) ([]fleet.Instance, error) {
	pages := awsec2.NewDescribeInstancesPaginator(c.direct, &awsec2.DescribeInstancesInput{
		Filters: []types.Filter{{Name: aws.String("tag:foresail.dev/pool"), Values: []string{c.stage.name}}},
	})
	var out []fleet.Instance
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, reservation := range page.Reservations {
			for _, i := range reservation.Instances {
				instance, err := c.instance(i)
				if err != nil {
					return nil, err
				}
				out = append(out, instance)
			}
		}
	}
	return out, nil
}

func (c *onEC2) instance(i types.Instance) (fleet.Instance, error) {
	tags := map[string]string{}
	for _, tag := range i.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	slot, err := strconv.Atoi(tags["foresail.dev/slot"])
	if err != nil {
		return fleet.Instance{}, fmt.Errorf("instance %s: the tag of its slot: %w", aws.ToString(i.InstanceId), err)
	}
	out := fleet.Instance{
		ID: aws.ToString(i.InstanceId), Action: tags["foresail.dev/action"], Slot: slot,
		Token: tags["foresail.dev/token"],
		Placement: fleet.Placement{Zone: aws.ToString(i.Placement.AvailabilityZone),
			InstanceType: string(i.InstanceType)}, State: gone,
	}
	out.ProviderID = "aws:///" + out.Zone + "/" + out.ID
	if i.State.Name == types.InstanceStateNameRunning || i.State.Name == types.InstanceStateNamePending {
		out.State = fleet.Running
	}
	return out, nil
}

// seen returns when an instance was seen first.
func (c *onEC2) seen(id string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.first[id]; !ok {
		c.first[id], c.never[id] = c.stage.clock.Now(), c.stranded
	}
	return c.first[id]
}

// step lists instances once: moto takes its time.
func (c *onEC2) step(ctx context.Context) ([]fleet.Instance, error) {
	all, err := c.all(ctx)
	if err != nil {
		return nil, err
	}
	now := c.stage.clock.Now()
	for n, i := range all {
		first := c.seen(i.ID)
		at, taken := c.taken[i.ID]
		var err error
		switch {
		case i.State == gone:
			err = c.stop(ctx, i)
		case taken && !now.Before(at):
			_, err = c.direct.TerminateInstances(ctx, &awsec2.TerminateInstancesInput{InstanceIds: []string{i.ID}})
			all[n].State = gone
		case !c.never[i.ID] && !c.joined[i.ID] && now.Sub(first) >= joinDelay:
			err = c.join(ctx, i)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// join makes the Node of an instance, Ready.
func (c *onEC2) join(ctx context.Context, i fleet.Instance) error {
	allocatable := corev1.ResourceList{}
	for name, quantity := range shape {
		allocatable[corev1.ResourceName(name)] = quantity
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: c.stage.name + "-" + i.ID, Labels: map[string]string{
			stageLabel: c.stage.name, corev1.LabelTopologyZone: i.Zone, corev1.LabelInstanceTypeStable: i.InstanceType,
		}},
		Spec: corev1.NodeSpec{ProviderID: i.ProviderID},
		Status: corev1.NodeStatus{Capacity: allocatable, Allocatable: allocatable,
			Conditions: c.readiness(corev1.ConditionTrue)},
	}
	if _, err := c.stage.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	c.joined[i.ID] = true
	return nil
}

func (c *onEC2) readiness(status corev1.ConditionStatus) []corev1.NodeCondition {
	now := metav1.NewTime(c.stage.clock.Now())
	return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: now,
		LastHeartbeatTime: now}}
}

// stop has the Node of an instance lose its kubelet.
func (c *onEC2) stop(ctx context.Context, i fleet.Instance) error {
	if c.stopped[i.ID] {
		return nil
	}
	c.stopped[i.ID] = true
	for _, node := range c.stage.nodes() {
		if node.Spec.ProviderID == i.ProviderID {
			node.Status.Conditions = c.readiness(corev1.ConditionUnknown)
			_, err := c.stage.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
			return err
		}
	}
	return nil
}

func (c *onEC2) interrupt(_ context.Context, id string, after time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken[id] = c.stage.clock.Now().Add(after)
	c.messages = append(c.messages, provider.Message{InstanceID: id, Kind: provider.MessageInterruption,
		Deadline: c.taken[id], Handle: id})
	return nil
}

func (c *onEC2) strand(_ context.Context, on bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stranded = on
	return nil
}

// dated tells the launch of instances by the clock of the stage.
type dated struct {
	provider.Provider
	cloud *onEC2
}

func (d dated) Launch(ctx context.Context, l provider.Launch) (provider.Launched, error) {
	i, err := d.Provider.Launch(ctx, l)
	if err == nil {
		i.Launched = d.cloud.seen(i.ID)
		for n := range i.Others {
			i.Others[n].Launched = d.cloud.seen(i.Others[n].ID)
		}
	}
	return i, err
}

func (d dated) List(ctx context.Context) ([]fleet.Instance, error) {
	all, err := d.Provider.List(ctx)
	for n := range all {
		all[n].Launched = d.cloud.seen(all[n].ID)
	}
	return all, err
}

func (d dated) Find(ctx context.Context, refs []fleet.Ref) (map[string]fleet.Instance, error) {
	found, err := d.Provider.Find(ctx, refs)
	for id, i := range found {
		i.Launched = d.cloud.seen(id)
		found[id] = i
	}
	return found, err
}

// queue tells a process what EC2 says by itself, again and again until that is done with. SQS
// cannot be had by this clock.
type queue struct {
	*onEC2
	process *process
}

var errNoMessage = errors.New("no such message")

func (q queue) Receive(context.Context) ([]provider.Message, error) {
	if q.process.wire.isDead() {
		return nil, errDead
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.messages), nil
}

func (q queue) Done(ctx context.Context, m provider.Message) error {
	return q.process.wire.do(ctx, "delete message", func() error {
		q.mu.Lock()
		defer q.mu.Unlock()
		at := slices.IndexFunc(q.messages, func(other provider.Message) bool { return other.Handle == m.Handle })
		if at < 0 {
			return errNoMessage
		}
		q.messages = slices.Delete(q.messages, at, at+1)
		return nil
	})
}
