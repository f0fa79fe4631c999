package scheduling_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/test/env/controlplane"
)

const ebsZone = "topology.ebs.csi.aws.com/zone"

// zonal puts a node into a zone, with the driver of volumes.
func zonal(t *testing.T, client kubernetes.Interface, node, zone string) {
	t.Helper()
	labels := fmt.Sprintf(`{"metadata":{"labels":{%q:%q,%q:%q}}}`, corev1.LabelTopologyZone, zone, ebsZone, zone)
	_, err := client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(labels), metav1.PatchOptions{})
	require.NoError(t, err)
}

// volumeIn makes a volume in a zone, and a claim that the control plane has bound to it. The claim comes second: one
// that names a volume the volume controller has yet to see is lost permanently.
func volumeIn(t *testing.T, client kubernetes.Interface, zone string) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "in-" + zone}}
	v.Spec.Capacity, v.Spec.AccessModes = size, modes
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-" + zone}
	v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: v.Name}
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: ebsZone,
				Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
	_, err := client.CoreV1().PersistentVolumes().Create(t.Context(), v, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(),
		claimNamed(v.Name, size, modes), metav1.CreateOptions{})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		claim, err := client.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), v.Name, metav1.GetOptions{})
		require.NoError(c, err)
		require.Equal(c, corev1.ClaimBound, claim.Status.Phase)
	}, time.Minute, 50*time.Millisecond)
}

func claimNamed(name string, size corev1.ResourceList,
	modes []corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	c.Spec.StorageClassName, c.Spec.AccessModes, c.Spec.Resources.Requests = new(""), modes, size
	return c
}

// use makes a pod that uses the claim of its name.
func use(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "i"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "data",
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	_, err := client.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{})
	require.NoError(t, err)
}

// need packs the pods for which the scheduler has found no node, once there are a number of them.
func need(t *testing.T, client kubernetes.Interface, pending int) scheduling.Result {
	t.Helper()
	var r scheduling.Result
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		seen, err := cluster.List(context.Background(), client, time.Now())
		require.NoError(t, err)
		bound := 0
		for _, n := range seen.Nodes {
			bound += len(n.Pods)
		}
		require.Len(t, seen.Pending, pending)
		require.Equal(t, 5-pending, bound)
		in := scheduling.Input{Pods: seen.Pending, Nodes: seen.Nodes, DaemonSets: seen.DaemonSets}
		for _, zone := range []string{"a", "b"} {
			size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"),
				corev1.ResourceMemory: resource.MustParse("8Gi")}
			in.Offers = append(in.Offers, provider.Offer{Offer: fleet.Offer{Zone: zone, InstanceType: "m"}, Allocatable: size})
		}
		r = scheduling.Pack(in)
	}, time.Minute, 50*time.Millisecond)
	return r
}

// The scheduler refuses the pods for which there is no room in the zones of their volumes, and
// takes a requested node.
func TestSchedulerAgreesOnVolumes(t *testing.T) {
	c, err := controlplane.Start(t.Context(), controlplane.Options{Nodes: 1, Progress: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	client := c.Client()
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	zonal(t, client, nodes.Items[0].Name, "a")
	for _, zone := range []string{"a", "b", "c"} {
		volumeIn(t, client, zone)
		use(t, client, "in-"+zone)
	}
	unbound := claimNamed("unbound", corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce})
	_, err = client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), unbound, metav1.CreateOptions{})
	require.NoError(t, err)
	use(t, client, "unbound")
	use(t, client, "missing")

	unhelped := []fleet.Unhelped{
		{Pod: "default/in-c", Reason: "its volumes are where no new node of the pool can be"},
		{Pod: "default/missing", Reason: "its claim missing does not exist"},
		{Pod: "default/unbound", Reason: "its claim unbound is not bound to a volume, and binding does not wait for a node"},
	}
	r := need(t, client, 4)
	require.Len(t, r.Shapes, 1)
	for _, kind := range r.Shapes[0].Kinds {
		assert.Equal(t, "b", kind.Zone)
	}
	assert.Equal(t, []int{1, 1, 0}, []int{r.Nodes, r.Helped, r.Room})
	assert.Equal(t, unhelped, r.Unhelped)

	added, err := c.AddNodes(t.Context(), 1)
	require.NoError(t, err)
	zonal(t, client, added[0], "b")
	r = need(t, client, 3)
	assert.Equal(t, []int{0, 0, 0}, []int{r.Nodes, r.Helped, r.Room})
	assert.Equal(t, unhelped, r.Unhelped)
}
