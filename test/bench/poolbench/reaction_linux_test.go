package poolbench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	awstest "github.com/foresail/foresail/test/env/aws"
)

const (
	reactingPools  = 3
	samplesPerPool = 4
	// sampleTimeout bounds a sample, on a crowded machine.
	sampleTimeout = 2 * time.Minute
)

// BenchmarkReaction is how long it takes from a pod that the scheduler finds no node for to the
// call that launches an instance, beyond the time that the pool waits for such pods. Three pools of
// one Foresail launch in EC2 as moto plays it.
func BenchmarkReaction(b *testing.B) {
	for _, pendingFor := range []time.Duration{0, 30 * time.Second} {
		b.Run("for="+pendingFor.String(), func(b *testing.B) { benchmarkReaction(b, pendingFor) })
	}
}

func benchmarkReaction(b *testing.B, pendingFor time.Duration) {
	moto := awstest.Start(b)
	r := &reaction{site: startSite(b, moto.Environment()...), aws: moto, network: moto.Network(b),
		unschedulable: map[ktypes.UID]time.Time{}}
	r.direct = awsec2.NewFromConfig(moto.Direct())
	r.watchPods(b, r.see, func(*corev1.Pod) {})
	pools, ctx := errgroup.WithContext(b.Context())
	for k := range reactingPools {
		name := fmt.Sprintf("pool-%d", k)
		random := rand.New(rand.NewPCG(uint64(k), 4))
		pools.Go(func() error { return r.react(ctx, name, pendingFor, random) })
	}
	require.NoError(b, pools.Wait())
	r.report(b)
}

// reaction is one benchmark.
type reaction struct {
	*site
	aws     *awstest.Cloud
	network awstest.Network
	direct  *awsec2.Client

	mu            sync.Mutex
	unschedulable map[ktypes.UID]time.Time // when pods were seen to be
	toMark        []float64                // seconds from the creation of a pod until it was
	toCall        []float64                // seconds from then, and from the end of the pool's patience, to the call
	toAnswer      []float64                // to its answer
}

func (r *reaction) see(p *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unschedulable[p.UID].IsZero() && isUnschedulable(p) {
		r.unschedulable[p.UID] = time.Now()
	}
}

// createPool makes a pool of a worker. The forecast is kept from asking: what pods wait for is what
// is measured.
func (r *reaction) createPool(ctx context.Context, name string, pendingFor time.Duration) error {
	spec := v1alpha1.WorkerPoolSpec{
		Min: 1, Max: 20,
		Signals:    []v1alpha1.PoolSignal{{Name: "requests", Threshold: resource.MustParse("1000")}},
		PendingFor: &metav1.Duration{Duration: pendingFor},
		Cooldown:   v1alpha1.PoolCooldown{Up: &metav1.Duration{}},
		Template: v1alpha1.NodeTemplate{Labels: map[string]string{poolLabel: name},
			Allocatable: map[string]resource.Quantity{
				"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("110"),
			}},
		Provider: v1alpha1.PoolProvider{EC2: &v1alpha1.EC2Provider{
			LaunchTemplate: r.network.Template, Region: awstest.Region, InstanceTypes: []string{"t3.medium"},
		}},
	}
	for _, subnet := range r.network.Subnets {
		spec.Provider.EC2.Subnets = append(spec.Provider.EC2.Subnets,
			v1alpha1.EC2Subnet{Zone: subnet.Zone, ID: subnet.ID})
	}
	return r.objects.Create(ctx, &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
}

// react makes a pool and then, again and again, a pod that needs another of its nodes. No node that
// joins has the label that the pods ask for.
func (r *reaction) react(ctx context.Context, pool string, pendingFor time.Duration, random *rand.Rand) error {
	if err := r.createPool(ctx, pool, pendingFor); err != nil {
		return err
	}
	if _, err := r.launch(ctx, pool, 1, 0); err != nil {
		return err
	}
	for k := range samplesPerPool {
		// the ticks of the pool and the samples are not in step
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
		if err := r.sample(ctx, pool, k, pendingFor); err != nil {
			return err
		}
	}
	return nil
}

// sample makes pod k of a pool and waits for the launch.
func (r *reaction) sample(ctx context.Context, pool string, k int, pendingFor time.Duration) error {
	began := time.Now()
	pod, err := r.createPod(ctx, fmt.Sprintf("%s-%d", pool, k), pool)
	if err != nil {
		return err
	}
	call, err := r.launch(ctx, pool, k+2, pendingFor)
	if err != nil {
		return err
	}
	r.mu.Lock()
	marked := r.unschedulable[pod.UID]
	r.toMark = append(r.toMark, marked.Sub(began).Seconds())
	r.toCall = append(r.toCall, call.Began.Sub(marked.Add(pendingFor)).Seconds())
	r.toAnswer = append(r.toAnswer, call.Ended.Sub(call.Began).Seconds())
	r.mu.Unlock()
	return r.Client().CoreV1().Pods(namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
}

// launch waits for the n-th launch of a pool, lets the instance join, and waits until the pool is at rest.
func (r *reaction) launch(ctx context.Context, pool string, n int, pendingFor time.Duration) (call awstest.Call,
	err error) {
	err = until(ctx, fmt.Sprintf("launch %d of %s", n, pool), sampleTimeout+pendingFor, func() (bool, error) {
		all := r.launches(pool)
		if len(all) < n {
			return false, nil
		}
		call = all[n-1]
		return true, nil
	})
	if err != nil {
		return call, err
	}
	if err := r.join(ctx, pool); err != nil {
		return call, err
	}
	return call, until(ctx, pool+" is at rest", sampleTimeout, func() (bool, error) { return r.atRest(ctx, pool, n) })
}

// launches are the answered calls that launched for a pool.
func (r *reaction) launches(pool string) (out []awstest.Call) {
	for _, call := range r.aws.Calls("RunInstances") {
		for key, values := range call.Params {
			if strings.HasPrefix(key, "TagSpecification.1.") && slices.Contains(values, pool) && !call.Ended.IsZero() {
				out = append(out, call)
				break
			}
		}
	}
	return out
}

// join makes Nodes, which kwok keeps Ready, of the pool's instances.
func (r *reaction) join(ctx context.Context, pool string) error {
	out, err := r.direct.DescribeInstances(ctx, &awsec2.DescribeInstancesInput{
		Filters: []types.Filter{{Name: aws.String("tag:foresail.dev/pool"), Values: []string{pool}}},
	})
	if err != nil {
		return err
	}
	for _, reservation := range out.Reservations {
		for _, i := range reservation.Instances {
			zone, id := aws.ToString(i.Placement.AvailabilityZone), aws.ToString(i.InstanceId)
			node := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{
					Name: id, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
					Labels: map[string]string{corev1.LabelTopologyZone: zone,
						corev1.LabelInstanceTypeStable: "t3.medium"},
				},
				Spec:   corev1.NodeSpec{ProviderID: "aws:///" + zone + "/" + id},
				Status: corev1.NodeStatus{Allocatable: nodeShape, Capacity: nodeShape},
			}
			_, err := r.Client().CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			if client.IgnoreAlreadyExists(err) != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reaction) atRest(ctx context.Context, pool string, workers int) (bool, error) {
	var p v1alpha1.WorkerPool
	err := r.objects.Get(ctx, client.ObjectKey{Name: pool}, &p)
	return err == nil && p.Status.Action == nil && p.Status.ReadyWorkers != nil &&
		int(*p.Status.ReadyWorkers) == workers, err
}

func (r *reaction) createPod(ctx context.Context, name, pool string) (*corev1.Pod, error) {
	return r.Client().CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{poolLabel: pool},
			Containers: []corev1.Container{{Name: "app", Image: "example.com/app",
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
				}}},
		},
	}, metav1.CreateOptions{})
}

func (r *reaction) report(b *testing.B) {
	for _, of := range []struct {
		what    string
		seconds []float64
	}{{"mark", r.toMark}, {"call", r.toCall}, {"answer", r.toAnswer}} {
		require.Len(b, of.seconds, reactingPools*samplesPerPool)
		slices.Sort(of.seconds)
		b.Logf("seconds to %s: %.2f", of.what, of.seconds)
		b.ReportMetric(of.seconds[len(of.seconds)/2], "s-to-"+of.what+"-p50")
		b.ReportMetric(of.seconds[len(of.seconds)-1], "s-to-"+of.what+"-max")
	}
	b.ReportMetric(0, "ns/op")
}
