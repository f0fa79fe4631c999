package live

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/journal"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// TestEC2TakesASpotInstanceBack sends what EventBridge would, through SQS, to a pool of Spot instances.
func TestEC2TakesASpotInstanceBack(t *testing.T) {
	t.Parallel()
	running(t)
	cloud := awstest.Start(t)
	tellAWS(t, cloud)
	network, queue := cloud.Network(t), cloud.Queue(t, "interruptions", 30*time.Second)
	p := newPool(t, "spot")
	shape := map[string]resource.Quantity{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"),
		"pods": resource.MustParse("20")}
	p.create(2, 4, func(s *v1alpha1.WorkerPoolSpec) {
		all := resource.MustParse("1")
		s.Market.SpotRatio = &all
		s.Template.Allocatable = shape
		s.Provider = v1alpha1.PoolProvider{EC2: &v1alpha1.EC2Provider{
			LaunchTemplate: network.Template, Region: awstest.Region, InstanceTypes: []string{"t3.medium"},
			InterruptionQueue: queue,
			Subnets: []v1alpha1.EC2Subnet{{Zone: network.Subnets[0].Zone, ID: network.Subnets[0].ID},
				{Zone: network.Subnets[1].Zone, ID: network.Subnets[1].ID}},
		}}
	})
	kubelets := &kubelets{pool: p, client: ec2.NewFromConfig(cloud.Direct()), shape: shape}
	kubelets.run()
	atRest := func() bool {
		return p.ready() == 2 && len(p.nodes()) == 2 && p.record().Action == nil && len(p.record().Interruptions) == 0
	}
	p.until("two workers", atRest)
	p.deploy(p.name, 6, p.template("shop", ""))
	var before []string
	for id := range p.nodes() {
		before = append(before, id)
	}
	victim := p.occupied(before...)
	instance, node := filepath.Base(victim), p.nodes()[victim].Name

	p.until("the pool to listen", func() bool { return len(cloud.Calls("ReceiveMessage")) > 0 })
	cloud.Forget()
	sent := time.Now()
	cloud.Send(t, queue, cloud.SpotInterruption(instance, sent))
	deadline := sent.Add(2 * time.Minute)
	p.event(journal.EventInterrupted)
	p.away("shop", node)
	p.runs(p.name, "shop", 6)
	rescheduled := time.Now()
	p.until("two workers again", atRest)

	launches := cloud.Calls("RunInstances")
	require.Len(t, launches, 1)
	asked := launches[0].Began.Sub(sent)
	ends := cloud.Calls("TerminateInstances")
	require.NotEmpty(t, ends)
	t.Logf("replacement asked for %s after the message, pods ready elsewhere %s and the instance terminated %s before the deadline",
		asked.Round(time.Millisecond), deadline.Sub(rescheduled).Round(time.Second), deadline.Sub(ends[0].Began).Round(time.Second))
	assert.True(t, launches[0].Began.Before(ends[0].Began), "replaced before it is drained")
	assert.Equal(t, instance, ends[0].Params.Get("InstanceId.1"))
	assert.True(t, ends[0].Began.Before(deadline))
	assert.True(t, rescheduled.Before(deadline))
	assert.NotContains(t, p.nodes(), victim)
	assert.Len(t, cloud.Calls("DeleteMessage"), 1)
}

// TestPodsGetTheCheapestType has a pool choose types by requirements and by the prices that AWS
// tells: one large node is cheaper for many pods than several small ones, and the signal of
// requests asks for no more.
func TestPodsGetTheCheapestType(t *testing.T) {
	t.Parallel()
	running(t)
	cloud := awstest.Start(t)
	tellAWS(t, cloud)
	cloud.Sell(map[string]awstest.Price{
		"m5.large": {OnDemand: "0.1150000000"}, "m5.4xlarge": {OnDemand: "0.5000000000"},
		"c5.4xlarge": {OnDemand: "9.0000000000"},
	})
	network := cloud.Network(t)
	p := newPool(t, "priced")
	p.create(1, 1, func(s *v1alpha1.WorkerPoolSpec) {
		s.PendingFor.Duration = 0
		s.Provider = v1alpha1.PoolProvider{EC2: &v1alpha1.EC2Provider{
			LaunchTemplate: network.Template, Region: awstest.Region,
			Requirements: &v1alpha1.EC2Requirements{
				VCPU:         v1alpha1.EC2CPURange{Min: 2, Max: new(int32(16))},
				Memory:       v1alpha1.EC2MemoryRange{Min: resource.MustParse("8Gi")},
				AllowedTypes: []string{"m5.*", "c5.*"},
			},
			Subnets: []v1alpha1.EC2Subnet{{Zone: network.Subnets[0].Zone, ID: network.Subnets[0].ID},
				{Zone: network.Subnets[1].Zone, ID: network.Subnets[1].ID}},
		}}
	})
	size := func(cores string) map[string]resource.Quantity {
		return map[string]resource.Quantity{"cpu": resource.MustParse(cores), "memory": resource.MustParse("8Gi"),
			"pods": resource.MustParse("110")}
	}
	kubelets := &kubelets{pool: p, client: ec2.NewFromConfig(cloud.Direct()), shape: size("1930m"),
		shapes: map[types.InstanceType]map[string]resource.Quantity{"m5.4xlarge": size("15890m")}}
	kubelets.run()
	p.until("one worker", func() bool { return p.ready() == 1 && p.record().Action == nil })
	require.Equal(t, []string{"m5.large"}, launchedTypes(cloud), "no pod asks for more")

	template := p.template("shop", "")
	template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
	p.apply(p.name, 15, template)
	// Nodes are chosen for the pods that are there. These come one by one, for seconds on a busy
	// machine, so the pool may not grow until it knows all.
	p.until("14 pods to be pending", func() bool { n := p.get().Status.PendingPods; return n != nil && *n == 14 })
	p.change(func(s *v1alpha1.WorkerPoolSpec) { s.Max = 9 })
	p.runs(p.name, "shop", 15)
	p.until("the pool at rest", func() bool { return p.record().Action == nil && p.ready() == 2 })
	require.Equal(t, []string{"m5.large", "m5.4xlarge"}, launchedTypes(cloud))
	require.Empty(t, p.told(journal.EventPricesUnknown))
}

// launchedTypes are the types that were launched, in order.
func launchedTypes(cloud *awstest.Cloud) (out []string) {
	for _, call := range cloud.Calls("RunInstances") {
		out = append(out, call.Params.Get("InstanceType"))
	}
	return out
}

// oneCloud is held by the test whose cloud the SDK finds.
var oneCloud sync.Mutex

// tellAWS has the SDK in foresail find a cloud until the test ends. It reads its settings when a
// pool is made.
func tellAWS(t *testing.T, cloud *awstest.Cloud) {
	t.Helper()
	oneCloud.Lock()
	t.Cleanup(oneCloud.Unlock)
	text := fmt.Sprintf("[default]\nregion = %s\naws_access_key_id = test\naws_secret_access_key = test\nendpoint_url = %s\n", awstest.Region, cloud.URL())
	require.NoError(t, os.WriteFile(filepath.Join(settings, ".aws", "config"), []byte(text), 0o600))
}

// kubelets join instances to the cluster, as the user data of a launch template would. Then kwok plays them.
type kubelets struct {
	pool   *pool
	client *ec2.Client
	shape  map[string]resource.Quantity
	shapes map[types.InstanceType]map[string]resource.Quantity // of types with another
}

// run lets them work until the test ends.
func (k *kubelets) run() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(k.pool.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := k.join(ctx); err != nil && ctx.Err() == nil {
				k.pool.Errorf("join the cluster: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	k.pool.Cleanup(func() {
		cancel()
		<-ended
	})
}

func (k *kubelets) join(ctx context.Context) error {
	answer, err := k.client.DescribeInstances(ctx,
		&ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: aws.String("instance-state-name"),
			Values: []string{"running"}}}})
	if err != nil {
		return err
	}
	for _, r := range answer.Reservations {
		for _, i := range r.Instances {
			if _, err := cluster.Client().CoreV1().Nodes().Create(ctx, k.nodeOf(i),
				metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
	}
	return nil
}

func (k *kubelets) nodeOf(i types.Instance) *corev1.Node {
	zone, id := aws.ToString(i.Placement.AvailabilityZone), aws.ToString(i.InstanceId)
	name := aws.ToString(i.PrivateDnsName)
	resources := corev1.ResourceList{}
	shape := k.shape
	if other, ok := k.shapes[i.InstanceType]; ok {
		shape = other
	}
	for what, quantity := range shape {
		resources[corev1.ResourceName(what)] = quantity
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				poolLabel: k.pool.name, corev1.LabelHostname: name, corev1.LabelTopologyZone: zone,
				corev1.LabelInstanceTypeStable: string(i.InstanceType), corev1.LabelArchStable: "amd64",
				corev1.LabelOSStable: "linux",
			},
		},
		Spec:   corev1.NodeSpec{ProviderID: "aws:///" + zone + "/" + id},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources.DeepCopy()},
	}
}
