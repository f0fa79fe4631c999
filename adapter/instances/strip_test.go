package instances

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

func fullPod() *corev1.Pod {
	return podWith(readyAt(20), restarts(3), terminating(50, 30), func(p *corev1.Pod) {
		p.ResourceVersion = "7"
		p.Annotations = map[string]string{"long": "text"}
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
		p.Spec.NodeName = "node"
		p.Spec.Containers[0].Image = "image"
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "B"}}
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "image"}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", Image: "image"}}
	})
}

func TestStripPodKeepsWhatIsRead(t *testing.T) {
	obj, err := StripPod(fullPod())
	require.NoError(t, err)
	p := obj.(*corev1.Pod)
	assert.Equal(t, statusOf(fullPod()), statusOf(p))
	assert.Equal(t, "7", p.ResourceVersion)
	assert.Empty(t, p.Annotations)
	assert.Empty(t, p.ManagedFields)
	assert.Empty(t, p.Spec.NodeName)
	assert.Empty(t, p.Spec.Containers[0].Image)
	assert.Empty(t, p.Spec.InitContainers)
	assert.Empty(t, p.Status.InitContainerStatuses)
	assert.Len(t, p.Status.Conditions, 1)

	again, err := StripPod(p)
	require.NoError(t, err)
	assert.Equal(t, p, again)

	tombstone := cache.DeletedFinalStateUnknown{Key: "shop/a", Obj: p}
	other, err := StripPod(tombstone)
	require.NoError(t, err)
	assert.Equal(t, tombstone, other)
}

// A Tracker behind a real informer that strips its pods.
func TestInformerFeedsTracker(t *testing.T) {
	client := fake.NewClientset(podWith(readyAt(20)), podWith(named("b")))
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	require.NoError(t, informer.SetTransform(StripPod))
	tracker := NewTracker(Options{})
	registration, err := informer.AddEventHandler(tracker)
	require.NoError(t, err)
	started := make(chan string, 10)
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"), channelObserver{started: started})
	factory.StartWithContext(t.Context())
	require.True(t, cache.WaitForCacheSync(t.Context().Done(), registration.HasSynced))
	assert.Equal(t, "uid-a", <-started)

	pods := client.CoreV1().Pods("shop")
	_, err = pods.UpdateStatus(context.Background(), podWith(named("b"), readyAt(40)), metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.Equal(t, "uid-b", <-started)
	require.NoError(t, pods.Delete(context.Background(), "a", metav1.DeleteOptions{}))
	assert.Equal(t, "-uid-a", <-started)
	assert.Len(t, fleet.Active(), 1)
	assert.Equal(t, map[string]int32{"metrics": 9090}, fleet.Active()[0].Ports)
}

type channelObserver struct{ started chan string }

func (c channelObserver) Started(i Instance) { c.started <- i.ID }
func (c channelObserver) Ended(i Instance)   { c.started <- "-" + i.ID }
func (c channelObserver) Changed()           {}
