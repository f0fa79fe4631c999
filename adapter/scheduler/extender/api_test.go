package extender

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/test/env/controlplane"
)

// churn changes a cluster at random through the API, and takes conflicts with itself lightly.
type churn struct {
	kubernetes.Interface
	random *rand.Rand
}

func (c *churn) step(ctx context.Context) error {
	pods, nodes := c.CoreV1().Pods("default"), c.CoreV1().Nodes()
	pod, node := fmt.Sprintf("p-%d", c.random.IntN(20)), fmt.Sprintf("n-%d", c.random.IntN(4))
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	switch c.random.IntN(10) {
	case 0:
		_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
		return err
	case 1:
		return nodes.Delete(ctx, node, now)
	case 2, 3, 4:
		p := podOf(declared("a", fmt.Sprint(1+c.random.IntN(5)), "", "100Mi", ""))
		p.Namespace, p.Name, p.Spec.Containers[0].Image = "", pod, "i"
		p.Spec.AutomountServiceAccountToken = new(false)
		_, err := pods.Create(ctx, p, metav1.CreateOptions{})
		return err
	case 5, 6, 7:
		return pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod},
			Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
	case 8:
		return pods.Delete(ctx, pod, now)
	default:
		p, err := pods.Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		p.Status.Phase = []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded}[c.random.IntN(2)]
		_, err = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
		return err
	}
}

// recount lists what is requested of each node, and what the assumed has of pods that no sample shows.
func recount(t assert.TestingT, client kubernetes.Interface) map[string][2]use {
	out := map[string][2]use{}
	nodes, err := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	assert.NoError(t, err)
	for i := range nodes.Items {
		out[nodes.Items[i].Name] = [2]use{}
	}
	pods, err := client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	assert.NoError(t, err)
	for i := range pods.Items {
		p := &pods.Items[i]
		sum, known := out[p.Spec.NodeName]
		if known && p.Status.Phase != corev1.PodSucceeded {
			out[p.Spec.NodeName] = [2]use{sum[0].plus(requestsOf(p)), sum[1].plus(estimateOf(p, nil))}
		}
	}
	return out
}

func TestTotalsOnARealAPI(t *testing.T) {
	api := controlplane.BorrowFor(t)

	c := churn{api.Client(), rand.New(rand.NewPCG(1, 2))}
	change := func(times int) {
		for range times {
			err := c.step(t.Context())
			if !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
				require.NoError(t, err)
			}
		}
	}
	change(60)
	e, err := New(Options{Client: api.Client(), Forecasts: newTold(), RemovalMark: removalMark, Rules: DefaultRules(),
		Registry: prometheus.NewRegistry()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	counted := 0
	for range 6 {
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			got := map[string][2]use{}
			for name, n := range e.snapshot().nodes {
				got[name] = [2]use{n.requested.load(), n.assumed.load()}
				counted += int(got[name][1].cpu)
			}
			assert.NoError(t, e.Ready())
			assert.Equal(t, recount(t, api.Client()), got)
		}, 30*time.Second, 100*time.Millisecond)
		change(60)
	}
	assert.Positive(t, counted, "there was something to count")
}
