package scheduler

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagevolume "k8s.io/component-helpers/storage/volume"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/controller/daemon"

	"github.com/foresail/foresail/nodepool/provider"
)

const (
	zone    = corev1.LabelTopologyZone
	host    = corev1.LabelHostname
	rack    = "example.com/rack"
	ebs     = "ebs.csi.aws.com"
	ebsZone = "topology.ebs.csi.aws.com/zone"
	gpu     = "example.com/gpu"
)

// features are what worlds may have besides nodes and pods of various sizes.
var features = []string{
	"selectors", "taints", "ports", "spread", "affinity", "namespaces", "volumes", "limits", "devices", "sidecars",
	"nominated",
	"leaving", "joining", "cordoned", "unready", "daemons", "extended",
}

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// generator makes a world of chance.
type generator struct {
	*rand.Rand
	has   map[string]bool
	world *world
	pods  int
}

// generate returns the world of a seed. Which features it has is part of the chance; those without
// are left out.
func generate(ctx context.Context, seed uint64, without []string) (*world, error) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 34)), has: map[string]bool{}, world: &world{Seed: seed}}
	for _, f := range features {
		g.has[f] = g.chance(35)
	}
	for _, f := range without {
		g.has[f] = false
	}
	g.namespaces()
	g.storage()
	g.pool()
	for i := range 2 + g.IntN(4) {
		g.node(i)
	}
	if g.has["daemons"] {
		g.daemonSet()
	}
	for i := range 1 + g.IntN(4) {
		g.app(string(rune('a' + i)))
	}
	if err := g.settle(ctx); err != nil {
		return nil, err
	}
	g.disturb()
	return g.world, nil
}

// chance is true in so many of a hundred cases.
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// with is chance if worlds have a feature.
func (g *generator) with(feature string, percent int) bool {
	return g.has[feature] && g.chance(percent)
}

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

func (g *generator) meta(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name), ResourceVersion: "1",
		Labels:            labels,
		CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
	}
}

func (g *generator) namespaces() {
	for _, n := range []string{"default", "red", "blue"} {
		labels := map[string]string{corev1.LabelMetadataName: n, "team": pick(g, "x", "y")}
		g.world.Namespaces = append(g.world.Namespaces, &corev1.Namespace{ObjectMeta: g.meta("", n, labels)})
	}
}

func (g *generator) storage() {
	if !g.has["volumes"] {
		return
	}
	wait, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	class := func(name, provisioner string, mode storagev1.VolumeBindingMode, zones ...string) {
		c := &storagev1.StorageClass{ObjectMeta: g.meta("", name, nil), Provisioner: provisioner,
			VolumeBindingMode: &mode}
		if len(zones) > 0 {
			c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: pick(g, zone, ebsZone), Values: zones}}}}
		}
		g.world.StorageClasses = append(g.world.StorageClasses, c)
	}
	class("waits", ebs, wait)
	class("waits-in-a", ebs, wait, "a")
	class("now", ebs, now)
	class("local", storagevolume.NotSupportedProvisioner, wait)
}

var sizes = map[string][3]string{"small": {"2", "4Gi", "6"}, "medium": {"4", "8Gi", "10"}, "large": {"8", "16Gi", "20"}}

func allocatable(kind string, gpus int) corev1.ResourceList {
	s := sizes[kind]
	out := list("cpu", s[0], "memory", s[1], "pods", s[2])
	if gpus > 0 {
		out[gpu] = resource.MustParse(strconv.Itoa(gpus))
	}
	return out
}

func list(of ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(of); i += 2 {
		out[corev1.ResourceName(of[i])] = resource.MustParse(of[i+1])
	}
	return out
}

func (g *generator) pool() {
	p := &g.world.Pool
	p.Labels = map[string]string{}
	if g.with("selectors", 50) {
		p.Labels["disk"] = "ssd"
	}
	if g.with("taints", 30) {
		p.Taints = append(p.Taints, g.taint())
	}
	for _, z := range []string{"a", "b", "c"}[:1+g.IntN(3)] {
		for _, kind := range []string{"small", "medium"} {
			if g.chance(70) || len(p.Offers) == 0 {
				g.offer(z, kind)
			}
		}
	}
}

func (g *generator) offer(z, kind string) {
	o := provider.Offer{Offer: fleet.Offer{Zone: z, InstanceType: kind}, Allocatable: allocatable(kind, 0),
		Labels: map[string]string{}}
	if g.with("extended", 40) {
		o.Allocatable = allocatable(kind, 2)
	}
	if g.chance(15) {
		delete(o.Allocatable, corev1.ResourcePods)
	}
	o.Labels[corev1.LabelArchStable] = pick(g, "amd64", "arm64")
	g.world.Pool.Offers = append(g.world.Pool.Offers, o)
}

func (g *generator) taint() corev1.Taint {
	return corev1.Taint{
		Key: pick(g, "dedicated", "spot"), Value: pick(g, "", "x"),
		Effect: pick(g, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule),
	}
}

// node adds a node that is Ready.
func (g *generator) node(i int) {
	name, z, kind := fmt.Sprint("n", i), pick(g, "a", "a", "b", "c"), pick(g, "small", "medium", "large")
	labels := map[string]string{
		host: name, zone: z, corev1.LabelInstanceTypeStable: kind, corev1.LabelOSStable: "linux",
		corev1.LabelArchStable: pick(g, "amd64", "arm64"),
	}
	if g.has["volumes"] {
		labels[ebsZone] = z
	}
	if g.with("selectors", 50) {
		labels["disk"] = pick(g, "ssd", "hdd")
	}
	if g.chance(40) {
		labels[rack] = pick(g, "r1", "r2")
	}
	if g.chance(8) {
		delete(labels, zone)
	}
	n := &corev1.Node{ObjectMeta: g.meta("", name, labels)}
	gpus := 0
	if g.with("extended", 40) {
		gpus = 1 + g.IntN(2)
	}
	n.Status.Allocatable = allocatable(kind, gpus)
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	if g.with("taints", 30) {
		n.Spec.Taints = append(n.Spec.Taints, g.taint())
	}
	g.world.Nodes = append(g.world.Nodes, n)
	g.csiNode(name)
	g.devices(name)
}

// csiNode has the driver of volumes be on a node, with or without a limit.
func (g *generator) csiNode(name string) {
	if !g.has["volumes"] {
		return
	}
	driver := storagev1.CSINodeDriver{Name: ebs, NodeID: name, TopologyKeys: []string{ebsZone}}
	if g.with("limits", 70) {
		driver.Allocatable = &storagev1.VolumeNodeResources{Count: new(int32(1 + g.IntN(2)))}
	}
	c := &storagev1.CSINode{ObjectMeta: g.meta("", name, nil),
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{driver}}}
	g.world.CSINodes = append(g.world.CSINodes, c)
}

// devices gives a node devices for claims of pods.
func (g *generator) devices(node string) {
	if !g.with("devices", 60) {
		return
	}
	if len(g.world.DeviceClasses) == 0 {
		g.world.DeviceClasses = append(g.world.DeviceClasses,
			&resourcev1.DeviceClass{ObjectMeta: g.meta("", "camera", nil)})
	}
	s := &resourcev1.ResourceSlice{ObjectMeta: g.meta("", "devices-of-"+node, nil)}
	s.Spec = resourcev1.ResourceSliceSpec{
		Driver: "camera.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "camera-0"}},
	}
	g.world.Devices = append(g.world.Devices, s)
}

func (g *generator) daemonSet() {
	ds := &appsv1.DaemonSet{ObjectMeta: g.meta("kube-system", "agent", nil)}
	t := &ds.Spec.Template
	t.Labels = map[string]string{"app": "agent"}
	t.Spec.Containers = []corev1.Container{{Name: "main", Image: "i", Resources: corev1.ResourceRequirements{
		Requests: list("cpu", pick(g, "100m", "500m"), "memory", "100Mi")}}}
	if g.chance(20) {
		t.Spec.Containers[0].Resources.Limits = list("cpu", "700m", "memory", "200Mi")
		delete(t.Spec.Containers[0].Resources.Requests, corev1.ResourceMemory)
	}
	if g.with("ports", 40) {
		t.Spec.HostNetwork = true
		t.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80,
			Protocol: corev1.ProtocolTCP}}
	}
	t.Spec.Tolerations = g.tolerations(60)
	if g.with("selectors", 40) {
		t.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	}
	g.world.DaemonSets = append(g.world.DaemonSets, ds)
	for _, n := range g.world.Nodes {
		g.world.Pods = append(g.world.Pods, daemonPods(g.world, n)...)
	}
}

// daemonPods returns the pods that the DaemonSet controller would create for a node.
func daemonPods(w *world, n *corev1.Node) []*corev1.Pod {
	var out []*corev1.Pod
	for _, ds := range w.DaemonSets {
		if run, _ := daemon.NodeShouldRunDaemonPod(logr.Discard(), n, ds); !run {
			continue
		}
		p := daemon.NewPod(ds, n.Name)
		p.Name, p.UID = ds.Name+"-"+n.Name, types.UID("uid-"+ds.Name+"-"+n.Name)
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: ds.Name,
			UID: ds.UID, Controller: new(true)}}
		p.Spec = *p.Spec.DeepCopy()
		p.Status.Phase = corev1.PodRunning
		corev1defaults.SetObjectDefaults_Pod(p)
		out = append(out, p)
	}
	return out
}

func (g *generator) tolerations(percent int) []corev1.Toleration {
	if !g.chance(percent) {
		return nil
	}
	if g.chance(15) {
		return []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	t := corev1.Toleration{Key: pick(g, "dedicated", "spot", "agent"), Operator: corev1.TolerationOpExists}
	if g.chance(30) {
		t.Operator, t.Value = corev1.TolerationOpEqual, "x"
	}
	t.Effect = pick(g, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
	return []corev1.Toleration{t}
}

// app adds the pods of one controller. All are pending until settle finds nodes for some.
func (g *generator) app(name string) {
	template := &corev1.Pod{ObjectMeta: g.meta(pick(g, "default", "default", "red", "blue"), name, nil)}
	template.Labels = map[string]string{"app": name, "tier": pick(g, "x", "y"), "version": "v1"}
	template.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1",
		Kind: pick(g, "ReplicaSet", "StatefulSet"), Name: name, UID: types.UID("uid-" + name), Controller: new(true)}}
	template.Status.Phase = corev1.PodPending
	g.resources(&template.Spec)
	g.where(&template.Spec)
	g.others(template)
	for i := range 1 + g.IntN(4) {
		p := template.DeepCopy()
		p.Name = fmt.Sprint(name, "-", i)
		p.UID = types.UID("uid-" + p.Name)
		if g.chance(25) {
			p.Labels["version"] = "v2"
		}
		g.volumes(p, i)
		g.claims(p)
		merge(p, g.has["spread"] && g.Uint64()%2 == 0)
		corev1defaults.SetObjectDefaults_Pod(p)
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute)),
		}}
		g.world.Pods = append(g.world.Pods, p)
		g.pods++
	}
}

func (g *generator) requests() corev1.ResourceRequirements {
	out := list("cpu", pick(g, "100m", "500m", "1", "1500m", "2", "3"), "memory", pick(g, "100Mi", "1Gi", "3Gi"))
	if g.with("extended", 30) {
		out[gpu] = resource.MustParse("1")
	}
	if g.chance(10) {
		delete(out, corev1.ResourceCPU)
		delete(out, corev1.ResourceMemory)
	}
	r := corev1.ResourceRequirements{Requests: out}
	if q, ok := out[gpu]; ok {
		r.Limits = corev1.ResourceList{gpu: q}
	}
	return r
}

func (g *generator) resources(s *corev1.PodSpec) {
	s.Containers = []corev1.Container{{Name: "main", Image: "i", Resources: g.requests()}}
	if g.chance(20) {
		s.Containers = append(s.Containers, corev1.Container{Name: "more", Image: "i", Resources: g.requests()})
	}
	if g.with("sidecars", 60) {
		for i := range 1 + g.IntN(2) {
			c := corev1.Container{Name: fmt.Sprint("init", i), Image: "i", Resources: g.requests()}
			if g.chance(50) {
				c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			}
			s.InitContainers = append(s.InitContainers, c)
		}
	}
	if g.with("sidecars", 20) {
		s.Overhead = list("cpu", "250m", "memory", "100Mi")
	}
	if g.with("sidecars", 20) {
		s.Resources = &corev1.ResourceRequirements{Requests: list("cpu", pick(g, "6", "7"), "memory", "15Gi")}
		if g.chance(70) {
			s.Resources.Requests = list("cpu", "3500m", "memory", "6Gi")
		}
	}
	if g.with("ports", 50) {
		p := corev1.ContainerPort{ContainerPort: 80, HostPort: pick(g, int32(80), 81),
			Protocol: pick(g, corev1.ProtocolTCP, corev1.ProtocolUDP)}
		p.HostIP = pick(g, "", "0.0.0.0", "127.0.0.1", "10.0.0.1")
		c := &s.Containers[0]
		if len(s.InitContainers) > 0 && g.chance(30) {
			c = &s.InitContainers[0]
		}
		c.Ports = []corev1.ContainerPort{p}
	}
}

// where says on which nodes a pod may run.
func (g *generator) where(s *corev1.PodSpec) {
	if g.has["taints"] || g.has["joining"] || g.has["cordoned"] || g.has["unready"] {
		s.Tolerations = g.tolerations(40)
	}
	if g.with("selectors", 40) {
		s.NodeSelector = pick(g, map[string]string{"disk": "ssd"}, map[string]string{zone: pick(g, "a", "b")},
			map[string]string{corev1.LabelArchStable: "amd64"})
	}
	if g.with("selectors", 40) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}}
		required := s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		for range 1 + g.IntN(2) {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, g.nodeTerm())
		}
	}
	s.Priority = new(pick(g, int32(0), 0, 10))
}

func (g *generator) nodeTerm() corev1.NodeSelectorTerm {
	if g.chance(10) {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: pick(g, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn),
				Values: []string{"n0"}}}}
	}
	r := corev1.NodeSelectorRequirement{
		Key: pick(g, zone, "disk", rack, corev1.LabelInstanceTypeStable),
		Operator: pick(g, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
			corev1.NodeSelectorOpDoesNotExist),
	}
	if r.Operator == corev1.NodeSelectorOpIn || r.Operator == corev1.NodeSelectorOpNotIn {
		r.Values = map[string][]string{zone: {"a", "b"}, "disk": {"ssd"}, rack: {"r1"},
			corev1.LabelInstanceTypeStable: {"medium", "large"}}[r.Key]
	}
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}}
}

// others are the rules of a pod about other pods.
func (g *generator) others(p *corev1.Pod) {
	if g.has["spread"] && g.chance(60) {
		for range 1 + g.IntN(2) {
			g.spread(p)
		}
	}
	if !g.has["affinity"] {
		return
	}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if g.chance(40) {
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: g.terms(p)}
	}
	if g.chance(50) {
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: g.terms(p)}
	}
}

// selector selects pods, often those of the same controller.
func (g *generator) selector(p *corev1.Pod) *metav1.LabelSelector {
	switch n := g.IntN(20); {
	case n == 0:
		return nil
	case n == 1:
		return &metav1.LabelSelector{}
	case n < 6:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"tier": pick(g, "x", "y")}}
	case n < 9:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(g, "a", "b")}}
	case n < 11:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: pick(g, "tier", "app", "none"),
				Operator: pick(g, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}}
}

func (g *generator) spread(p *corev1.Pod) {
	c := corev1.TopologySpreadConstraint{
		MaxSkew: int32(1 + g.IntN(2)), TopologyKey: pick(g, host, zone, zone,
			rack), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: g.selector(p),
	}
	for _, other := range p.Spec.TopologySpreadConstraints {
		if other.TopologyKey == c.TopologyKey { // the API server lets no two be of one key
			return
		}
	}
	if g.chance(15) {
		c.WhenUnsatisfiable = corev1.ScheduleAnyway
	} else if g.chance(20) {
		c.MinDomains = new(int32(1 + g.IntN(4)))
	}
	policies := []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}
	if g.chance(40) {
		c.NodeAffinityPolicy = new(pick(g, policies...))
	}
	if g.chance(40) {
		c.NodeTaintsPolicy = new(pick(g, policies...))
	}
	if c.LabelSelector != nil && g.chance(20) {
		c.MatchLabelKeys = []string{"version"}
	}
	p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
}

func (g *generator) terms(p *corev1.Pod) []corev1.PodAffinityTerm {
	var out []corev1.PodAffinityTerm
	for range 1 + g.IntN(2) {
		t := corev1.PodAffinityTerm{LabelSelector: g.selector(p), TopologyKey: pick(g, host, host, zone, rack)}
		if g.with("namespaces", 30) {
			t.Namespaces = []string{pick(g, "default", "red", "blue")}
		}
		if g.with("namespaces", 40) {
			t.NamespaceSelector = pick(g, &metav1.LabelSelector{},
				&metav1.LabelSelector{MatchLabels: map[string]string{"team": pick(g, "x", "y")}})
		}
		if t.LabelSelector != nil && g.chance(20) {
			if g.chance(50) {
				t.MatchLabelKeys = []string{"version"}
			} else {
				t.MismatchLabelKeys = []string{"version"}
			}
		}
		out = append(out, t)
	}
	return out
}

// merge adds the keys of labels to the selectors that they belong to, as the API server does when
// it admits a pod. That of spread constraints is newer than the field.
func merge(p *corev1.Pod, spread bool) {
	add := func(s *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator) {
		for _, key := range keys {
			if value, ok := p.Labels[key]; ok {
				s.MatchExpressions = append(s.MatchExpressions,
					metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
			}
		}
	}
	terms := func(all []corev1.PodAffinityTerm) {
		for i := range all {
			add(all[i].LabelSelector, all[i].MatchLabelKeys, metav1.LabelSelectorOpIn)
			add(all[i].LabelSelector, all[i].MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
		}
	}
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		terms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		terms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	for i := range p.Spec.TopologySpreadConstraints {
		if c := &p.Spec.TopologySpreadConstraints[i]; spread {
			add(c.LabelSelector, c.MatchLabelKeys, metav1.LabelSelectorOpIn)
		}
	}
}

// volumes gives a pod a claim: of its own, or one that all pods of its controller share.
func (g *generator) volumes(p *corev1.Pod, i int) {
	if !g.with("volumes", 60) {
		return
	}
	name := "data-" + p.Name
	if i > 0 && g.chance(15) {
		name = "data-" + p.Labels["app"] + "-0"
	}
	p.Spec.Volumes = []corev1.Volume{{Name: "data",
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	exists := slices.ContainsFunc(g.world.Claims, func(c *corev1.PersistentVolumeClaim) bool { return c.Name == name })
	if exists || g.chance(4) {
		return
	}
	mode := pick(g, corev1.ReadWriteOnce, corev1.ReadWriteOnce, corev1.ReadWriteOncePod)
	class := pick(g, "waits", "waits", "waits-in-a", "now", "local")
	c := &corev1.PersistentVolumeClaim{ObjectMeta: g.meta(p.Namespace, name, nil)}
	c.Spec.StorageClassName, c.Spec.AccessModes = &class, []corev1.PersistentVolumeAccessMode{mode}
	c.Spec.Resources.Requests = list("storage", "1Gi")
	c.Status.Phase = corev1.ClaimPending
	g.world.Claims = append(g.world.Claims, c)
	switch {
	case class == "local":
		if g.chance(70) {
			g.world.Volumes = append(g.world.Volumes, g.volume("local-"+name, c, host, pick(g, "n0", "n1")))
		}
	case g.chance(50):
		bind(g.world, c, g.volume("pv-"+name, c, pick(g, zone, ebsZone), pick(g, "a", "a", "b")))
	}
}

// volume returns a volume on nodes with a label, of the class, mode and size of a claim.
func (g *generator) volume(name string, c *corev1.PersistentVolumeClaim, key, value string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: g.meta("", name, nil)}
	v.Spec.StorageClassName, v.Spec.AccessModes, v.Spec.Capacity = *c.Spec.StorageClassName, c.Spec.AccessModes, list("storage", pick(g, "1Gi", "2Gi"))
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: ebs, VolumeHandle: name}
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn,
			Values: []string{value}}}}}}}
	v.Status.Phase = corev1.VolumeAvailable
	return v
}

// bind binds a claim to a volume for good.
func bind(w *world, c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
	c.Annotations = map[string]string{storagevolume.AnnBindCompleted: "yes"}
	c.Spec.VolumeName, c.Status.Phase = v.Name, corev1.ClaimBound
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	v.Status.Phase = corev1.VolumeBound
	w.Volumes = append(w.Volumes, v)
}

// claims has a pod claim a device.
func (g *generator) claims(p *corev1.Pod) {
	if !g.with("devices", 25) || len(g.world.DeviceClasses) == 0 {
		return
	}
	name := "device-" + p.Name
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "camera", ResourceClaimName: &name}}
	c := &resourcev1.ResourceClaim{ObjectMeta: g.meta(p.Namespace, name, nil)}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "camera", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "camera", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
	g.world.DeviceClaims = append(g.world.DeviceClaims, c)
}

// settle has the scheduler bind some of the pods, and sometimes binds others where they would not go now.
func (g *generator) settle(ctx context.Context) error {
	s, err := newScheduler(ctx, g.world)
	if err != nil {
		return err
	}
	wild := g.chance(25) // rules and labels have changed since the pods came
	for _, i := range g.Perm(len(g.world.Pods)) {
		p := g.world.Pods[i]
		if p.Spec.NodeName != "" || !g.chance(70) || len(p.Spec.ResourceClaims) > 0 || g.unbound(p, true) {
			continue
		}
		if s.place(p, g.Rand, func(string) bool { return true }) {
			g.run(p, s.pods[len(s.pods)-1].Spec.NodeName)
		} else if wild && g.chance(50) && !g.unbound(p, false) {
			g.run(p, pick(g, g.world.Nodes...).Name)
		}
	}
	return nil
}

// unbound reports whether a pod has a claim without a volume: of any class, or of one for which
// none are made.
func (g *generator) unbound(p *corev1.Pod, local bool) bool {
	for _, v := range p.Spec.Volumes {
		for _, c := range g.world.Claims {
			if c.Namespace == p.Namespace && c.Name == v.PersistentVolumeClaim.ClaimName && c.Spec.VolumeName == "" &&
				(!local || *c.Spec.StorageClassName == "local") {
				return true
			}
		}
	}
	return false
}

// run has a pod run on a node, where a volume is made for its claim.
func (g *generator) run(p *corev1.Pod, node string) {
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	for _, v := range p.Spec.Volumes {
		for _, c := range g.world.Claims {
			if c.Namespace == p.Namespace && c.Name == v.PersistentVolumeClaim.ClaimName && c.Spec.VolumeName == "" {
				bind(g.world, c, g.volume("pv-"+c.Name, c, ebsZone, g.world.node(node).Labels[ebsZone]))
			}
		}
	}
}

// disturb changes what runs: pods leave, nodes are cordoned, fail or have just joined.
func (g *generator) disturb() {
	for _, p := range g.world.bound() {
		if g.with("leaving", 25) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(noon)), new(int64(30))
		}
	}
	for _, p := range g.world.pending() {
		if g.with("nominated", 30) {
			p.Status.NominatedNodeName = pick(g, g.world.Nodes...).Name
		}
	}
	for _, n := range g.world.Nodes {
		switch {
		case g.with("cordoned", 25):
			cordon(n)
		case g.with("unready", 25):
			n.Status.Conditions[0].Status = corev1.ConditionFalse
			for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: effect})
			}
		case g.with("joining", 25):
			g.join(n)
		}
	}
	if g.with("joining", 30) {
		o := pick(g, g.world.Pool.Offers...)
		g.world.Pool.OnTheWay = append(g.world.Pool.OnTheWay,
			fleet.Placement{Zone: o.Zone, InstanceType: o.InstanceType})
	}
}

// join makes of a node one of the pool that has just joined and waits for an agent.
func (g *generator) join(n *corev1.Node) {
	offers := slices.DeleteFunc(slices.Clone(g.world.Pool.Offers), func(o provider.Offer) bool {
		return o.Zone != n.Labels[zone] || o.InstanceType != n.Labels[corev1.LabelInstanceTypeStable]
	})
	if len(offers) == 0 {
		return
	}
	p := &g.world.Pool
	if p.Joining == nil {
		p.Joining = map[string]fleet.Placement{}
		p.StartupTaints = []corev1.Taint{{Key: "agent", Effect: corev1.TaintEffectNoSchedule}}
	}
	p.Joining[n.Name] = fleet.Placement{Zone: offers[0].Zone, InstanceType: offers[0].InstanceType}
	maps.Copy(n.Labels, p.Labels)
	n.Status.Allocatable = maps.Clone(offers[0].Allocatable)
	if _, ok := n.Status.Allocatable[corev1.ResourcePods]; !ok {
		n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
	}
	n.Spec.Taints = slices.Clone(p.Taints)
	if g.chance(70) {
		n.Spec.Taints = append(n.Spec.Taints, p.StartupTaints...)
	}
	if g.chance(50) {
		delete(n.Status.Allocatable, gpu)
	}
}
