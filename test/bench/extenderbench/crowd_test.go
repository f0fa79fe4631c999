package extenderbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/etcdseed"
)

const (
	nodesOfCrowd = 5000
	apps         = 300
	teams        = 40
)

// crowd is a large cluster: nodes of 16 cores and 64 GiB that have as many pods each, of 300 applications.
type crowd struct {
	nodes, podsOnNode int
	born              time.Time // of nodes and pods, and when they became Ready
}

// zones are what the scheduler takes its samples from in turn.
var zones = []string{"eu-central-1a", "eu-central-1b", "eu-central-1c"}

func (c crowd) names() []string {
	out := make([]string, c.nodes)
	for i := range out {
		out[i] = c.name(i)
	}
	return out
}

func (c crowd) name(i int) string {
	return fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/250, i%250)
}

func team(app int) string { return fmt.Sprintf("team-%02d", app%teams) }

func (c crowd) node(i int) *corev1.Node {
	at, name, zone := metav1.NewTime(c.born), c.name(i), zones[i%len(zones)]
	n := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprintf("00000001-0000-4000-8000-%012d", i)),
			CreationTimestamp: at, Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "eu-central-1",
				corev1.LabelInstanceTypeStable: "m5.4xlarge", corev1.LabelOSStable: "linux",
				corev1.LabelArchStable: "amd64",
			}},
		Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///%s/i-%017x", zone, i)},
		Status: corev1.NodeStatus{
			Allocatable: shape(), Capacity: shape(),
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP,
				Address: fmt.Sprintf("10.0.%d.%d", i/250, i%250)}, {Type: corev1.NodeHostName, Address: name}},
		},
	}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure, corev1.NodeReady} {
		status := corev1.ConditionFalse
		if kind == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions,
			corev1.NodeCondition{Type: kind, Status: status, LastTransitionTime: at, LastHeartbeatTime: at})
	}
	for k := range 30 { // as kubelets tell them, with a digest and a tag
		image := fmt.Sprintf("registry.example.com/shop/app-%d", (i+k)%apps)
		n.Status.Images = append(n.Status.Images,
			corev1.ContainerImage{Names: []string{image + "@sha256:4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865", image + ":1.27.4"}, SizeBytes: 187 << 20})
	}
	return n
}

func shape() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("15890m"),
		corev1.ResourceMemory: resource.MustParse("60Gi"), corev1.ResourcePods: resource.MustParse("110")}
}

// bound is pod k of a node, which runs and is Ready.
func (c crowd) bound(node, k int) *corev1.Pod {
	i := node*c.podsOnNode + k
	p := c.pod(i)
	p.Spec.NodeName = c.name(node)
	at := metav1.NewTime(c.born)
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, StartTime: &at}
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized,
		corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		p.Status.Conditions = append(p.Status.Conditions,
			corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	started := true
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", Ready: true, Started: &started, Image: p.Spec.Containers[0].Image,
		ImageID:     "registry.example.com/shop/app@sha256:4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865",
		ContainerID: "containerd://4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865",
		State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
	}}
	return p
}

// pod is pod i as its ReplicaSet makes it, of the application i%300.
func (c crowd) pod(i int) *corev1.Pod {
	app, controller, grace := fmt.Sprintf("app-%d", i%apps), true, int64(30)
	probe := &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz",
			Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds: 5, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: team(i % apps), Name: fmt.Sprintf("%s-7c6c8d9b5f-%06d", app,
				i), UID: types.UID(fmt.Sprintf("00000002-0000-4000-8000-%012d", i)),
			CreationTimestamp: metav1.NewTime(c.born),
			Labels: map[string]string{"app.kubernetes.io/name": app, "app.kubernetes.io/instance": app,
				"pod-template-hash": "7c6c8d9b5f", "team": team(i % apps), "tier": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet",
				Name: app + "-7c6c8d9b5f", UID: types.UID("00000003-0000-4000-8000-" + fmt.Sprintf("%012d",
					i%apps)), Controller: &controller, BlockOwnerDeletion: &controller}},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
			SchedulerName:      corev1.DefaultSchedulerName,
			ServiceAccountName: "default", TerminationGracePeriodSeconds: &grace,
			SecurityContext: &corev1.PodSecurityContext{},
			Containers: []corev1.Container{{
				Name: "app", Image: "registry.example.com/shop/" + app + ":1.27.4",
				ImagePullPolicy: corev1.PullIfNotPresent,
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
					{Name: "metrics", ContainerPort: 9090, Protocol: corev1.ProtocolTCP}},
				Env: []corev1.EnvVar{
					{Name: "NODE_ENV", Value: "production"}, {Name: "DATABASE_URL",
						Value: "postgres://db.shop.svc:5432/shop"},
					{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://collector.observability.svc:4317"},
				},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"),
						corev1.ResourceMemory: resource.MustParse("512Mi")},
					Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
				},
				ReadinessProbe: probe, LivenessProbe: probe,
				TerminationMessagePath:   "/dev/termination-log",
				TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable},
	}
}

// fill brings the crowd into a cluster.
func (c crowd) fill(ctx context.Context, cluster *controlplane.Cluster) (err error) {
	for i := range teams {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team(i)}}
		if _, err := cluster.Client().CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	v, err := etcdseed.Open(cluster.EtcdURL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	for i := range c.nodes {
		if err := v.Put(ctx, "nodes", c.node(i)); err != nil {
			return err
		}
		for k := range c.podsOnNode {
			if err := v.Put(ctx, "pods", c.bound(i, k)); err != nil {
				return err
			}
		}
	}
	return v.Flush(ctx)
}
