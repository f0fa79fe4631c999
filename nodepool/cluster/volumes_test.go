package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagevolume "k8s.io/component-helpers/storage/volume"
)

const ebsZone = "topology.ebs.csi.aws.com/zone"

// using makes a pod use claims.
func using(claims ...string) change {
	return func(p *corev1.Pod) {
		for _, name := range claims {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v-" + name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
		}
	}
}

// usingDevices makes a pod claim a device.
func usingDevices(p *corev1.Pod) {
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("gpu")}}
}

func claimed(class, size string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}
	c.Spec.StorageClassName = &class
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	for _, change := range changes {
		change(c)
	}
	return c
}

func boundTo(volume string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName = volume
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, storagevolume.AnnBindCompleted, "yes")
	}
}

// volumeIn is a free volume of 10 GiB of the class local.
func volumeIn(key string, values ...string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{}
	v.Spec.StorageClassName = "local"
	v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	if key != "" {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{oneOf(key, values...)}}}
	}
	return v
}

func oneOf(key string, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key,
		Operator: corev1.NodeSelectorOpIn, Values: values}}}
}

func classNamed(provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{Provisioner: provisioner, VolumeBindingMode: &mode}
}

func TestVolumes(t *testing.T) {
	const zone = corev1.LabelTopologyZone
	taken := func(namespace, name string) *corev1.PersistentVolume {
		v := volumeIn(zone, "b")
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name}
		return v
	}
	labelled := func(v *corev1.PersistentVolume, key, value string) *corev1.PersistentVolume {
		v.Labels = map[string]string{key: value}
		return v
	}
	claims := func(c ...*corev1.PersistentVolumeClaim) map[string]*corev1.PersistentVolumeClaim {
		out := map[string]*corev1.PersistentVolumeClaim{}
		for i := range c {
			out[string(rune('c'+i))] = c[i]
		}
		return out
	}
	volumes := func(v ...*corev1.PersistentVolume) map[string]*corev1.PersistentVolume {
		out := map[string]*corev1.PersistentVolume{}
		for i := range v {
			out[string(rune('v'+i))] = v[i]
		}
		return out
	}
	terms := func(t ...corev1.NodeSelectorTerm) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: t}
	}
	waits, immediate := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	classes := map[string]*storagev1.StorageClass{
		"ebs": classNamed("ebs.csi.aws.com", waits), "now": classNamed("ebs.csi.aws.com", immediate),
		"unset": {Provisioner: "ebs.csi.aws.com"},
		"local": classNamed(storagevolume.NotSupportedProvisioner, waits), "zonal": classNamed("ebs.csi.aws.com", waits),
	}
	classes["zonal"].AllowedTopologies = []corev1.TopologySelectorTerm{{
		MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zone, Values: []string{"a", "b"}}}}}
	for name, test := range map[string]struct {
		uses    change
		claims  map[string]*corev1.PersistentVolumeClaim
		volumes map[string]*corev1.PersistentVolume
		want    []*corev1.NodeSelector
		stuck   string
	}{
		"none": {uses: using()},
		"devices": {uses: usingDevices,
			stuck: "it claims devices (spec.resourceClaims), and Foresail does not know which nodes have any"},
		"other volumes": {uses: func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "c"}} }},
		"no such claim": {uses: using("c"), stuck: "its claim c does not exist"},
		"claim of another namespace": {uses: using("c"),
			claims: claims(claimed("ebs", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Namespace = "other" })),
			stuck:  "its claim c does not exist"},
		"bound, anywhere": {uses: using("c"), claims: claims(claimed("ebs", "1Gi", boundTo("v"))),
			volumes: volumes(volumeIn(""))},
		"bound, in a zone": {uses: using("c"), claims: claims(claimed("ebs", "1Gi", boundTo("v"))),
			volumes: volumes(volumeIn(zone, "b")), want: []*corev1.NodeSelector{terms(oneOf(zone, "b"))}},
		"bound, of no class": {uses: using("c"), claims: claims(claimed("", "1Gi", boundTo("v"))),
			volumes: volumes(volumeIn(zone, "b")), want: []*corev1.NodeSelector{terms(oneOf(zone, "b"))}},
		"bound, by a driver's label": {uses: using("c"), claims: claims(claimed("ebs", "1Gi", boundTo("v"))),
			volumes: volumes(volumeIn(ebsZone, "b")),
			want:    []*corev1.NodeSelector{terms(oneOf(ebsZone, "b"), oneOf(zone, "b"))}},
		"bound, by a label of its": {uses: using("c"), claims: claims(claimed("ebs", "1Gi", boundTo("v"))),
			volumes: volumes(labelled(volumeIn(""), zone, "a__b")), want: []*corev1.NodeSelector{terms(oneOf(zone, "a", "b"))}},
		"bound, by both": {uses: using("c"), claims: claims(claimed("ebs", "1Gi", boundTo("v"))),
			volumes: volumes(labelled(volumeIn("disk", "x"), zone, "a")),
			want: []*corev1.NodeSelector{terms(corev1.NodeSelectorTerm{MatchExpressions: append(oneOf("disk",
				"x").MatchExpressions, oneOf(zone, "a").MatchExpressions...)})}},
		"bound, to one that is gone": {uses: using("c"), claims: claims(claimed("ebs", "1Gi", boundTo("v"))),
			stuck: "its claim c is bound to the volume v, which does not exist"},
		"two in one zone": {uses: using("c", "d"),
			claims:  claims(claimed("ebs", "1Gi", boundTo("v")), claimed("ebs", "1Gi", boundTo("w"))),
			volumes: volumes(volumeIn(zone, "b"), volumeIn(zone, "b")), want: []*corev1.NodeSelector{terms(oneOf(zone, "b"))}},
		"two in two zones": {uses: using("c", "d"),
			claims:  claims(claimed("ebs", "1Gi", boundTo("v")), claimed("ebs", "1Gi", boundTo("w"))),
			volumes: volumes(volumeIn(zone, "b"), volumeIn(zone, "a")),
			want:    []*corev1.NodeSelector{terms(oneOf(zone, "b")), terms(oneOf(zone, "a"))}},
		"one bound, one missing": {uses: using("c", "d"), claims: claims(claimed("ebs", "1Gi", boundTo("v"))),
			volumes: volumes(volumeIn(zone, "b")), stuck: "its claim d does not exist"},
		"waiting for a node": {uses: using("c"), claims: claims(claimed("ebs", "1Gi"))},
		"waiting, made for some": {uses: using("c"), claims: claims(claimed("zonal", "1Gi")),
			want: []*corev1.NodeSelector{terms(oneOf(zone, "a", "b"))}},
		"being made for a node": {uses: using("c"),
			claims: claims(claimed("ebs", "1Gi", func(c *corev1.PersistentVolumeClaim) {
				metav1.SetMetaDataAnnotation(&c.ObjectMeta, storagevolume.AnnSelectedNode, "n")
			})), want: []*corev1.NodeSelector{terms(corev1.NodeSelectorTerm{MatchFields: oneOf("metadata.name",
				"n").MatchExpressions})}},
		"not waiting": {uses: using("c"), claims: claims(claimed("now", "1Gi")),
			stuck: "its claim c is not bound to a volume, and binding does not wait for a node"},
		"not waiting, as is usual": {uses: using("c"), claims: claims(claimed("unset", "1Gi")),
			stuck: "its claim c is not bound to a volume, and binding does not wait for a node"},
		"of no class": {uses: using("c"), claims: claims(claimed("", "1Gi")),
			stuck: "its claim c is not bound to a volume, and binding does not wait for a node"},
		"of an unknown class": {uses: using("c"), claims: claims(claimed("what", "1Gi")),
			stuck: "its claim c is not bound to a volume, and binding does not wait for a node"},
		"to be bound to one": {uses: using("c"),
			claims:  claims(claimed("ebs", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" })),
			volumes: volumes(volumeIn(zone, "b")),
			stuck:   "its claim c is not bound to a volume, and binding does not wait for a node"},
		"lost": {uses: using("c"),
			claims: claims(claimed("ebs", "1Gi", boundTo("v"), func(c *corev1.PersistentVolumeClaim) {
				c.Status.Phase = corev1.ClaimLost
			})), stuck: "its claim c has lost its volume"},
		"being deleted": {uses: using("c"),
			claims: claims(claimed("ebs", "1Gi", boundTo("v"), func(c *corev1.PersistentVolumeClaim) {
				c.DeletionTimestamp = &metav1.Time{}
			})), volumes: volumes(volumeIn("")), stuck: "its claim c is being deleted"},
		"one of those made by people": {uses: using("c"), claims: claims(claimed("local", "10Gi")),
			volumes: volumes(volumeIn(zone, "b"), volumeIn(zone, "a"), taken("default", "other")),
			want:    []*corev1.NodeSelector{terms(oneOf(zone, "b"), oneOf(zone, "a"))}},
		"one kept for it": {uses: using("c"), claims: claims(claimed("local", "10Gi")),
			volumes: volumes(taken("default", "c")), want: []*corev1.NodeSelector{terms(oneOf(zone, "b"))}},
		"one of them anywhere": {uses: using("c"), claims: claims(claimed("local", "1Gi")),
			volumes: volumes(volumeIn(zone, "b"), volumeIn(""))},
		"all of them taken": {uses: using("c"), claims: claims(claimed("local", "1Gi")),
			volumes: volumes(taken("other", "c")),
			stuck:   "its claim c needs a volume of the class local, and no free one is large enough"},
		"all of them too small": {uses: using("c"), claims: claims(claimed("local", "11Gi")),
			volumes: volumes(volumeIn("")),
			stuck:   "its claim c needs a volume of the class local, and no free one is large enough"},
		"ephemeral": {uses: func(p *corev1.Pod) {
			p.Name = "web"
			p.Spec.Volumes = []corev1.Volume{{Name: "data",
				VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
		}, claims: map[string]*corev1.PersistentVolumeClaim{"web-data": claimed("ebs", "1Gi", boundTo("v"))},
			volumes: volumes(volumeIn(zone, "b")), want: []*corev1.NodeSelector{terms(oneOf(zone, "b"))}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStorage()
			for name, c := range test.claims {
				s.claims[types.NamespacedName{Namespace: c.Namespace, Name: name}] = claimOf(c)
			}
			for name, v := range test.volumes {
				s.volumes[types.NamespacedName{Name: name}] = volumeOf(v)
			}
			for name, c := range classes {
				s.classes[types.NamespacedName{Name: name}] = classOf(c)
			}
			pending := seeStorage(s, nodeNamed("n"), []*corev1.Pod{onNode("p", unschedulable(epoch), test.uses)}).Pending
			require.Len(t, pending, 1)
			assert.Equal(t, test.want, pending[0].Volumes)
			assert.Equal(t, test.stuck, pending[0].Stuck)
		})
	}
}
