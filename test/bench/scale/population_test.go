package scale

import (
	"fmt"
	"net/netip"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
)

// population is what a cluster is filled with: applications of a Deployment, its Ready pods and a
// PredictedMetric each.
type population struct {
	apps, podsPerApp int
	namespaces       int
	source           v1alpha1.Source
	network          netip.Prefix // that the pods have their addresses in
	born             time.Time    // when the pods became Ready: long enough ago to carry their full share
}

func (p population) pods() int { return p.apps * p.podsPerApp }

func (p population) namespace(i int) string { return fmt.Sprintf("team-%02d", i) }

// app names an application; its Deployment and its PredictedMetric have the same name.
func (p population) app(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: p.namespace(i % p.namespaces), Name: fmt.Sprintf("app-%05d", i)}
}

func (p population) replicaSet(i int) string { return p.app(i).Name + "-7c6c8d9b5f" }

// pod names pod k of application i.
func (p population) pod(i, k int) types.NamespacedName {
	return types.NamespacedName{Namespace: p.app(i).Namespace, Name: fmt.Sprintf("%s-%05d", p.replicaSet(i), k)}
}

// address is the address of pod k of application i. None is given twice within a network of 65,000.
func (p population) address(i, k int) netip.Addr {
	n := (i*p.podsPerApp+k)%65000 + 256
	a := p.network.Addr().As4()
	a[2], a[3] = byte(n>>8), byte(n)
	return netip.AddrFrom4(a)
}

// uid returns a UID in the form of the API server, derived from what it is for.
func uid(kind, i, k int) types.UID {
	return types.UID(fmt.Sprintf("%08d-0000-4000-8000-%012d", kind, i*1000+k))
}

func (p population) meta(name types.NamespacedName, id types.UID, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: name.Namespace, Name: name.Name, UID: id, Generation: 1, Labels: labels,
		CreationTimestamp: metav1.NewTime(p.born.Add(-30 * time.Second)),
	}
}

func (p population) labels(i int) map[string]string {
	return map[string]string{
		"app": p.app(i).Name, "app.kubernetes.io/part-of": "shop", "app.kubernetes.io/managed-by": "Helm",
		"pod-template-hash": "7c6c8d9b5f",
	}
}

func (p population) deployment(i int) *appsv1.Deployment {
	replicas := int32(p.podsPerApp)
	selector := map[string]string{"app": p.app(i).Name}
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: p.meta(p.app(i), uid(1, i, 0), selector),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.labels(i)}, Spec: podSpec("")},
		},
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: replicas, ReadyReplicas: replicas,
		AvailableReplicas: replicas, UpdatedReplicas: replicas}
	return d
}

func (p population) readyPod(i, k int) *corev1.Pod {
	name, isController := p.pod(i, k), true
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: p.meta(name, uid(2, i, k), p.labels(i)),
		Spec:       podSpec(fmt.Sprintf("node-%04d", (i+k)%1000)),
		Status:     p.readyStatus(p.address(i, k).String()),
	}
	pod.GenerateName = p.replicaSet(i) + "-"
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: p.replicaSet(i), UID: uid(3, i, 0),
		Controller: &isController, BlockOwnerDeletion: &isController,
	}}
	return pod
}

// podSpec is the spec of a usual pod: what an informer has to take in, and drop.
func podSpec(node string) corev1.PodSpec {
	probe := &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz",
			Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds: 5, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
	grace := int64(30)
	return corev1.PodSpec{
		NodeName: node, RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
		SchedulerName: corev1.DefaultSchedulerName, ServiceAccountName: "default",
		TerminationGracePeriodSeconds: &grace,
		SecurityContext:               &corev1.PodSecurityContext{},
		Containers: []corev1.Container{{
			Name: "app", Image: "registry.example.com/shop/app:1.27.4", ImagePullPolicy: corev1.PullIfNotPresent,
			Ports: []corev1.ContainerPort{
				{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
				{Name: "metrics", ContainerPort: podPort, Protocol: corev1.ProtocolTCP},
			},
			Env: []corev1.EnvVar{
				{Name: "NODE_ENV", Value: "production"},
				{Name: "DATABASE_URL", Value: "postgres://db.shop.svc:5432/shop"},
				{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://collector.observability.svc:4317"},
			},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"),
					corev1.ResourceMemory: resource.MustParse("512Mi")},
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
			},
			ReadinessProbe: probe, LivenessProbe: probe,
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}},
	}
}

func (p population) readyStatus(ip string) corev1.PodStatus {
	at := metav1.NewTime(p.born)
	var conditions []corev1.PodCondition
	for _, t := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized,
		corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		conditions = append(conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue,
			LastTransitionTime: at})
	}
	started := true
	return corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: conditions, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		HostIP:    "192.0.2.1",
		StartTime: &at, QOSClass: corev1.PodQOSBurstable,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", Ready: true, Started: &started, Image: "registry.example.com/shop/app:1.27.4",
			ImageID:     "registry.example.com/shop/app@sha256:4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865",
			ContainerID: "containerd://4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865",
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		}},
	}
}

func (p population) predictedMetric(i int) *v1alpha1.PredictedMetric {
	return &v1alpha1.PredictedMetric{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PredictedMetric"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.app(i).Namespace, Name: p.app(i).Name},
		Spec: v1alpha1.PredictedMetricSpec{
			ScaleTargetRef: v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: p.app(i).Name},
			Source:         p.source,
			Threshold:      resource.MustParse("700m"),
			MaxReplicas:    new(int32(2*p.podsPerApp + 2)),
		},
	}
}
