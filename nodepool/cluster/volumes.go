package cluster

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	storagevolume "k8s.io/component-helpers/storage/volume"

	"github.com/foresail/foresail/internal/objectcache"
)

// claim is the part of a PersistentVolumeClaim that decisions need.
type claim struct {
	class, volume string
	bound         bool              // the volume is bound permanently
	node          string            // for which a volume is being provisioned, "" = none
	size          resource.Quantity // that a volume needs
	why           string            // why no pod can use it, whatever its volume is
}

func claimOf(c *corev1.PersistentVolumeClaim) *claim {
	_, bound := c.Annotations[storagevolume.AnnBindCompleted]
	out := &claim{
		class: objectcache.Intern(storagevolume.GetPersistentVolumeClaimClass(c)), volume: c.Spec.VolumeName,
		node: objectcache.Intern(c.Annotations[storagevolume.AnnSelectedNode]),
		size: c.Spec.Resources.Requests[corev1.ResourceStorage],
	}
	out.bound = bound && out.volume != ""
	switch {
	case c.Status.Phase == corev1.ClaimLost:
		out.why = "has lost its volume"
	case c.DeletionTimestamp != nil:
		out.why = "is being deleted"
	}
	return out
}

// volume is the part of a PersistentVolume that decisions need.
type volume struct {
	class  string
	driver string               // that attaches it, "" = none
	of     types.NamespacedName // the claim that has it, or that it is reserved for; zero = none
	gone   bool                 // it is being deleted
	size   resource.Quantity
	at     *corev1.NodeSelector // of the nodes that can use it; nil = all
}

func volumeOf(v *corev1.PersistentVolume) *volume {
	out := &volume{
		class: objectcache.Intern(storagevolume.GetPersistentVolumeClass(v)), size: v.Spec.Capacity[corev1.ResourceStorage],
		gone: v.DeletionTimestamp != nil, driver: driverOf(&v.Spec.PersistentVolumeSource),
	}
	if ref := v.Spec.ClaimRef; ref != nil {
		out.of = types.NamespacedName{Namespace: objectcache.Intern(ref.Namespace), Name: ref.Name}
	}
	var terms []corev1.NodeSelectorTerm
	if v.Spec.NodeAffinity != nil && v.Spec.NodeAffinity.Required != nil {
		terms = v.Spec.NodeAffinity.Required.NodeSelectorTerms
		out.at = &corev1.NodeSelector{}
	}
	if zones := zonesOf(v); len(zones) > 0 {
		if out.at == nil {
			terms = []corev1.NodeSelectorTerm{{}}
		}
		out.at = &corev1.NodeSelector{}
		terms = slices.Clone(terms)
		for i := range terms {
			terms[i].MatchExpressions = append(slices.Clone(terms[i].MatchExpressions), zones...)
		}
	}
	if out.at != nil {
		out.at.NodeSelectorTerms = withAliases(terms)
	}
	return out
}

// zonesOf reads the labels that old volumes have instead of a node affinity.
func zonesOf(v *corev1.PersistentVolume) []corev1.NodeSelectorRequirement {
	var out []corev1.NodeSelectorRequirement
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone} {
		if zones := v.Labels[key]; zones != "" {
			out = append(out, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn,
				Values: strings.Split(zones, "__")})
		}
	}
	return out
}

// aliases maps topology labels of volumes to equivalent labels of nodes. A node may lack the former
// if it does not exist yet, or if the driver of the volume has not started on it.
var aliases = map[string]string{
	"topology.ebs.csi.aws.com/zone":     corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
}

// withAliases returns terms, and for each term with labels that have an alias another one with the
// alias.
func withAliases(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
	out := slices.Clone(terms)
	for _, term := range terms {
		renamed := false
		expressions := slices.Clone(term.MatchExpressions)
		for i := range expressions {
			if alias := aliases[expressions[i].Key]; alias != "" {
				expressions[i].Key, renamed = alias, true
			}
		}
		if renamed {
			out = append(out, corev1.NodeSelectorTerm{MatchExpressions: expressions, MatchFields: term.MatchFields})
		}
	}
	return out
}

// class is the part of a StorageClass that decisions need.
type class struct {
	waits   bool                 // volumes are bound only when a pod needs them
	makes   bool                 // it provisions volumes; otherwise people create them
	driver  string               // that provisions and attaches them
	allowed *corev1.NodeSelector // nodes for which volumes can be provisioned; nil = all
}

func classOf(c *storagev1.StorageClass) *class {
	out := &class{
		waits: c.VolumeBindingMode != nil && *c.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer,
		makes: c.Provisioner != "" && c.Provisioner != storagevolume.NotSupportedProvisioner,
	}
	if out.makes {
		out.driver = objectcache.Intern(cmp.Or(migrated[c.Provisioner], c.Provisioner))
	}
	if len(c.AllowedTopologies) == 0 {
		return out
	}
	var terms []corev1.NodeSelectorTerm
	for _, t := range c.AllowedTopologies {
		var term corev1.NodeSelectorTerm
		for _, e := range t.MatchLabelExpressions {
			term.MatchExpressions = append(term.MatchExpressions,
				corev1.NodeSelectorRequirement{Key: e.Key, Operator: corev1.NodeSelectorOpIn, Values: e.Values})
		}
		terms = append(terms, term)
	}
	out.allowed = &corev1.NodeSelector{NodeSelectorTerms: withAliases(terms)}
	return out
}

// storage is the known state of volumes, by namespace and name.
type storage struct {
	claims  map[types.NamespacedName]*claim
	volumes map[types.NamespacedName]*volume
	classes map[types.NamespacedName]*class
}

func newStorage() storage {
	return storage{map[types.NamespacedName]*claim{}, map[types.NamespacedName]*volume{},
		map[types.NamespacedName]*class{}}
}

// waiting is a pending pod with the requirements of its volumes.
type waiting struct {
	*record
	volumeRules
}

// demands returns pending pods with the requirements of their volumes.
func (s storage) demands(pods []*record) []waiting {
	out := make([]waiting, len(pods))
	for i, r := range pods {
		out[i] = waiting{r, s.volumeRulesOf(r)}
	}
	return out
}

// whyDevices is why no node is known that could run a pod: ResourceSlices describe existing nodes,
// and no API describes new ones.
const whyDevices = "it claims devices (spec.resourceClaims), and Foresail does not know which nodes have any"

// volumeRulesOf returns where the claims of a pod allow it to run, or for a bound pod its replacement,
// and what is attached there.
func (s storage) volumeRulesOf(r *record) (out volumeRules) {
	if r.devices {
		return volumeRules{stuck: whyDevices}
	}
	out.attach = s.attachments(r)
	for _, c := range r.claims {
		if c.ephemeral && r.pod != nil {
			continue // it would be recreated, wherever the pod runs
		}
		at, why := s.demand(types.NamespacedName{Namespace: r.key.Namespace, Name: c.name})
		if why != "" {
			return volumeRules{stuck: "its claim " + c.name + " " + why}
		}
		alike := func(other *corev1.NodeSelector) bool { return equality.Semantic.DeepEqual(other, at) }
		if at != nil && !slices.ContainsFunc(out.at, alike) {
			out.at = append(out.at, at)
		}
	}
	return out
}

// volumeRulesOfBound returns the requirements of the volumes of bound pods on other nodes, and what is
// attached to their own nodes.
func (s storage) volumeRulesOfBound(pods iter.Seq[*record]) (out map[*Pod]volumeRules, attached map[*Pod][]Attachment) {
	out, attached = map[*Pod]volumeRules{}, map[*Pod][]Attachment{}
	for r := range pods {
		if r.pod != nil && (len(r.claims) > 0 || r.devices) {
			out[r.pod] = s.volumeRulesOf(r)
			attached[r.pod] = s.attachments(r)
		}
	}
	return out, attached
}

// attachments returns the volumes that must be attached to the node of a pod, without duplicates.
func (s storage) attachments(r *record) []Attachment {
	var out []Attachment
	for _, c := range r.claims {
		key := types.NamespacedName{Namespace: r.key.Namespace, Name: c.name}
		if a := s.attachment(key); a.Driver != "" && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// attachment returns the volume of a claim with its driver, "" if that attaches none or is unknown.
func (s storage) attachment(key types.NamespacedName) Attachment {
	c := s.claims[key]
	if c == nil {
		return Attachment{}
	}
	if v := s.volumes[types.NamespacedName{Name: c.volume}]; c.volume != "" && v != nil {
		return Attachment{v.driver, c.volume}
	}
	if k := s.classes[types.NamespacedName{Name: c.class}]; k != nil {
		return Attachment{k.driver, key.String()}
	}
	return Attachment{}
}

// migrated maps in-tree volume plugins of Kubernetes to the drivers that replaced them.
var migrated = map[string]string{
	"kubernetes.io/aws-ebs":         "ebs.csi.aws.com",
	"kubernetes.io/azure-disk":      "disk.csi.azure.com",
	"kubernetes.io/azure-file":      "file.csi.azure.com",
	"kubernetes.io/cinder":          "cinder.csi.openstack.org",
	"kubernetes.io/gce-pd":          "pd.csi.storage.gke.io",
	"kubernetes.io/portworx-volume": "pxd.portworx.com",
	"kubernetes.io/vsphere-volume":  "csi.vsphere.vmware.com",
}

// driverOf returns the driver of a volume, "" if none attaches it.
func driverOf(v *corev1.PersistentVolumeSource) string {
	switch {
	case v.CSI != nil:
		return objectcache.Intern(v.CSI.Driver)
	case v.AWSElasticBlockStore != nil:
		return migrated["kubernetes.io/aws-ebs"]
	case v.AzureDisk != nil:
		return migrated["kubernetes.io/azure-disk"]
	case v.Cinder != nil:
		return migrated["kubernetes.io/cinder"]
	case v.GCEPersistentDisk != nil:
		return migrated["kubernetes.io/gce-pd"]
	case v.VsphereVolume != nil:
		return migrated["kubernetes.io/vsphere-volume"]
	}
	return ""
}

// limitsOf returns the number of volumes of each driver that can be attached to a node, for drivers
// with a limit.
func limitsOf(n *storagev1.CSINode) map[string]int {
	out := map[string]int{}
	for _, d := range n.Spec.Drivers {
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			out[objectcache.Intern(d.Name)] = int(*d.Allocatable.Count)
		}
	}
	return out
}

// demand returns the nodes that can use the volume of a claim, nil for all, or a predicate that
// says why none can.
func (s storage) demand(key types.NamespacedName) (at *corev1.NodeSelector, why string) {
	c := s.claims[key]
	switch {
	case c == nil:
		return nil, "does not exist"
	case c.why != "":
		return nil, c.why
	case c.bound:
		v := s.volumes[types.NamespacedName{Name: c.volume}]
		if v == nil {
			return nil, "is bound to the volume " + c.volume + ", which does not exist"
		}
		return v.at, ""
	}
	k := s.classes[types.NamespacedName{Name: c.class}]
	switch {
	case k == nil || !k.waits || c.volume != "":
		return nil, "is not bound to a volume, and binding does not wait for a node"
	case c.node != "":
		name := corev1.NodeSelectorRequirement{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{c.node},
		}
		term := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{name}}
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}, ""
	case k.makes:
		return k.allowed, ""
	}
	return s.free(key, c)
}

// free returns the nodes that can use one of the volumes to which a claim could be bound.
func (s storage) free(claim types.NamespacedName, c *claim) (at *corev1.NodeSelector, why string) {
	var keys []types.NamespacedName
	for key, v := range s.volumes {
		taken := v.gone || v.of != (types.NamespacedName{}) && v.of != claim
		if taken || v.class != c.class || v.size.Cmp(c.size) < 0 {
			continue
		}
		if v.at == nil {
			return nil, ""
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, "needs a volume of the class " + c.class + ", and no free one is large enough"
	}
	slices.SortFunc(keys, compareKeys)
	at = &corev1.NodeSelector{}
	for _, key := range keys {
		at.NodeSelectorTerms = append(at.NodeSelectorTerms, s.volumes[key].at.NodeSelectorTerms...)
	}
	return at, ""
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
