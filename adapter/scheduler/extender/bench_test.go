package extender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// realPod is what a Deployment with the usual of everything makes: some 6 KB of JSON, a third of it managedFields.
func realPod(i int) *corev1.Pod {
	yes, seconds := true, int64(300)
	env := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: name,
			ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "checkout-secrets"}, Key: name}}}
	}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready",
		Port: intstr.FromString("http"), Scheme: "HTTP"}}, PeriodSeconds: 5, TimeoutSeconds: 1,
		SuccessThreshold: 1, FailureThreshold: 3}
	container := func(name string) corev1.Container {
		return corev1.Container{
			Name: name, Image: "registry.example.com/shop/" + name +
				":v2.14.3@sha256:8f3a6c0c1a4b9e7a1a3d0b5f6c2e9d8b7a6f5e4d3c2b1a09f8e7d6c5b4a39281",
			Args: []string{"--listen=:8080", "--log-format=json", "--upstream=http://payments.shop.svc:8080"},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"},
				{Name: "metrics", ContainerPort: 9090, Protocol: "TCP"}},
			Env: []corev1.EnvVar{{Name: "GOMAXPROCS", Value: "2"}, env("DATABASE_URL"),
				env("QUEUE_TOKEN"), env("SESSION_KEY")},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"),
					corev1.ResourceMemory: resource.MustParse("256Mi")},
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access-x7k2p", ReadOnly: true,
				MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}, {Name: "config",
				MountPath: "/etc/checkout"}},
			ReadinessProbe: probe, LivenessProbe: probe, TerminationMessagePath: "/dev/termination-log",
			TerminationMessagePolicy: "File", ImagePullPolicy: "IfNotPresent",
			SecurityContext: &corev1.SecurityContext{RunAsNonRoot: &yes, ReadOnlyRootFilesystem: &yes},
		}
	}
	const fields = `{"f:metadata":{"f:annotations":{".":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{},"f:team":{},"f:version":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"5a8b0f0e-8b0e-4a8e-9d0c-2f6c1d1f7a10\"}":{}}},"f:spec":{"f:affinity":{".":{},"f:podAntiAffinity":{".":{},"f:preferredDuringSchedulingIgnoredDuringExecution":{}}},"f:containers":{"k:{\"name\":\"checkout\"}":{".":{},"f:args":{},"f:env":{".":{},"k:{\"name\":\"DATABASE_URL\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:secretKeyRef":{}}},"k:{\"name\":\"GOMAXPROCS\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"QUEUE_TOKEN\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:secretKeyRef":{}}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:securityContext":{".":{},"f:readOnlyRootFilesystem":{},"f:runAsNonRoot":{}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{},"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/etc/checkout\"}":{".":{},"f:mountPath":{},"f:name":{}}}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{},"f:topologySpreadConstraints":{".":{},"k:{\"topologyKey\":\"topology.kubernetes.io/zone\",\"whenUnsatisfiable\":\"ScheduleAnyway\"}":{".":{},"f:labelSelector":{},"f:maxSkew":{},"f:topologyKey":{},"f:whenUnsatisfiable":{}}},"f:volumes":{".":{},"k:{\"name\":\"config\"}":{".":{},"f:configMap":{".":{},"f:defaultMode":{},"f:name":{}},"f:name":{}}}}}`
	labels := map[string]string{"app": "checkout", "team": "payments", "version": "v2",
		"pod-template-hash": "7c9d6f8b5"}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("checkout-7c9d6f8b5-%05d", i), GenerateName: "checkout-7c9d6f8b5-",
			UID:             types.UID(fmt.Sprintf("9b1d2c3e-0f4a-4b5c-8d6e-%012d", i)),
			ResourceVersion: "81237123", CreationTimestamp: metav1.NewTime(epoch.Add(-time.Second)), Labels: labels,
			Annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet",
				Name: "checkout-7c9d6f8b5",
				UID:  "5a8b0f0e-8b0e-4a8e-9d0c-2f6c1d1f7a10", Controller: &yes, BlockOwnerDeletion: &yes}},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Operation: "Update",
				APIVersion: "v1", Time: &metav1.Time{Time: epoch}, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(fields)}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container("checkout")}, RestartPolicy: "Always", DNSPolicy: "ClusterFirst",
			SchedulerName: "default-scheduler", ServiceAccountName: "checkout",
			TerminationGracePeriodSeconds: &seconds, EnableServiceLinks: &yes,
			SecurityContext: &corev1.PodSecurityContext{},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "checkout"}}}},
				{Name: "kube-api-access-x7k2p",
					VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
						{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token",
							ExpirationSeconds: &seconds}},
						{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{
							Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
					}}}},
			},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute",
					TolerationSeconds: &seconds},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute",
					TolerationSeconds: &seconds},
			},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1,
				TopologyKey:       "topology.kubernetes.io/zone",
				WhenUnsatisfiable: "ScheduleAnyway", LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}},
		},
		Status: corev1.PodStatus{Phase: "Pending", QOSClass: "Burstable"},
	}
}

// fleet is a snapshot of n nodes of which some are refused, and their names as clouds give them.
func fleet(n int) (*clusterSnapshot, []string) {
	random := rand.New(rand.NewPCG(1, 2))
	v, names := testSnapshot(), make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i>>16, i>>8&255, i&255)
		node := testNode(names[i], 4*random.Float64(), 15*random.Float64())
		node.requested.add(use{2000, 8 * gib})
		v.nodes[names[i]] = node
	}
	return v, names
}

// BenchmarkHandler answers a real pod, body to body. Each request is of another pod.
func BenchmarkHandler(b *testing.B) {
	for _, size := range []int{500, 5000} {
		for _, verb := range []string{verbFilter, verbPrioritize} {
			b.Run(fmt.Sprintf("%s/names=%d", verb, size), func(b *testing.B) {
				v, names := fleet(size)
				handler := newRig(DefaultRules(), v).Handler()
				bodies := make([][]byte, 64)
				for i := range bodies {
					body, err := json.Marshal(argsOf(realPod(i), names...))
					require.NoError(b, err)
					bodies[i] = body
				}
				took := make([]time.Duration, 0, 1<<20)
				b.ReportAllocs()
				cpu := cpuTime(b)
				for i := 0; b.Loop(); i++ {
					body := bodies[i%len(bodies)]
					began := time.Now()
					r := httptest.NewRequest(http.MethodPost, Prefix+"/"+verb, bytes.NewReader(body))
					w := discard{header: http.Header{}}
					handler.ServeHTTP(&w, r)
					took = append(took, time.Since(began))
					if w.code != http.StatusOK {
						b.Fatal(w.code)
					}
				}
				// of a core, also if others use it
				b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(len(took)), "cpu-µs")
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			})
		}
	}
}

// cpuTime is what the process has used of the cores.
func cpuTime(b *testing.B) time.Duration {
	var use syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// discard is a ResponseWriter that keeps nothing of the body.
type discard struct {
	header http.Header
	code   int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return io.Discard.Write(b) }
func (d *discard) WriteHeader(code int)        { d.code = code }

func TestBenchmarkPodSize(t *testing.T) {
	body, err := json.Marshal(realPod(1))
	require.NoError(t, err)
	require.InDelta(t, 6000, len(body), 1000)
}
