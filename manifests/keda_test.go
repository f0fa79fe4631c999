package manifests_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/adapter/door/keda"
	"github.com/foresail/foresail/api/v1alpha1"
)

// scaledObject is what is held to something of a ScaledObject of KEDA.
type scaledObject struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            struct {
		ScaleTargetRef  v1alpha1.ScaleTargetRef `json:"scaleTargetRef"`
		MinReplicaCount int32                   `json:"minReplicaCount"`
		MaxReplicaCount int32                   `json:"maxReplicaCount"`
		Triggers        []struct {
			Type              string            `json:"type"`
			Metadata          map[string]string `json:"metadata"`
			AuthenticationRef struct {
				Name string `json:"name"`
				Kind string `json:"kind"`
			} `json:"authenticationRef"`
		} `json:"triggers"`
		Advanced struct {
			HPA struct {
				Behavior autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
			} `json:"horizontalPodAutoscalerConfig"`
		} `json:"advanced"`
	} `json:"spec"`
}

func scaledObjectOf(t *testing.T, path string) scaledObject {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var o scaledObject
	require.NoError(t, yaml.UnmarshalStrict(data, &o))
	return o
}

func TestTheScaledObjectIsAnAlternativeToTheHPAs(t *testing.T) {
	o := scaledObjectOf(t, "examples/keda-scaledobject.yaml")
	pm := one[*v1alpha1.PredictedMetric](t, loadFile(t, "examples/predictedmetric.yaml"))
	hpa := one[*autoscalingv2.HorizontalPodAutoscaler](t, loadFile(t, "examples/hpa-predicted-load-total.yaml"))
	assert.Equal(t, "keda.sh/v1alpha1, Kind=ScaledObject", o.GroupVersionKind().String())
	assert.Equal(t, pm.Spec.ScaleTargetRef, o.Spec.ScaleTargetRef)
	assert.Equal(t, *pm.Spec.MinReplicas, o.Spec.MinReplicaCount)
	assert.Equal(t, *pm.Spec.MaxReplicas, o.Spec.MaxReplicaCount)
	assert.Equal(t, *hpa.Spec.Behavior, o.Spec.Advanced.HPA.Behavior)

	require.Len(t, o.Spec.Triggers, 1)
	trigger := o.Spec.Triggers[0]
	assert.Equal(t, "external-push", trigger.Type)
	assert.Equal(t, pm.Name, trigger.Metadata["predictedMetric"])
	assert.Equal(t, "ClusterTriggerAuthentication", trigger.AuthenticationRef.Kind)
}

// TestKEDAReachesEveryReplica follows the address of the trigger to the containers, for a
// Deployment and a StatefulSet.
func TestKEDAReachesEveryReplica(t *testing.T) {
	rendered := render(t, "overlays/keda")
	pods := template(t, rendered)
	service := named[*corev1.Service](t, rendered, "foresail-keda")
	address := scaledObjectOf(t, "examples/keda-scaledobject.yaml").Spec.Triggers[0].Metadata["scalerAddress"]
	require.Len(t, service.Spec.Ports, 1)
	assert.Equal(t, fmt.Sprintf("%s.%s.svc:%d", service.Name, service.Namespace, service.Spec.Ports[0].Port), address)
	assert.Equal(t, corev1.ClusterIPNone, service.Spec.ClusterIP, "a connection would stay with one replica")
	assert.False(t, service.Spec.PublishNotReadyAddresses)
	assert.Equal(t, pods.Labels, service.Spec.Selector)
	given := flags(t, pods.Spec.Containers[0])
	ports := map[string]int32{}
	for _, p := range pods.Spec.Containers[0].Ports {
		ports[p.Name] = p.ContainerPort
	}
	assert.Equal(t, fmt.Sprintf(":%d", ports[service.Spec.Ports[0].TargetPort.StrVal]), given["keda-address"])
	assert.NotContains(t, given, "allow-anonymous")
	assert.Equal(t, "foresail-keda-tls", mounted(t, pods.Spec,
		given["keda-cert-dir"]+"/"+corev1.TLSCertKey).Secret.SecretName)
	assert.GreaterOrEqual(t, *named[*appsv1.Deployment](t, rendered, "foresail").Spec.Replicas, int32(2),
		"without an answer no metric of a ScaledObject is read")
	from := reachedFrom(t, rendered)["keda"]
	require.Len(t, from, 1)
	assert.Equal(t, map[string]string{corev1.LabelMetadataName: "keda"}, from[0].NamespaceSelector.MatchLabels)
	assert.Nil(t, from[0].PodSelector)
}

func TestCertificatesOfKEDA(t *testing.T) {
	const folder = "examples/keda-certificates/"
	certificates := certificatesOf(t, folder+"certificates.yaml")
	address := scaledObjectOf(t, "examples/keda-scaledobject.yaml").Spec.Triggers[0].Metadata["scalerAddress"]
	host, _, err := net.SplitHostPort(address)
	require.NoError(t, err)
	server, client := certificates["foresail-keda-tls"], certificates["foresail-keda-client"]
	assert.ElementsMatch(t, []string{host, "foresail-keda.foresail-system",
		"foresail-keda.foresail-system.svc.cluster.local"}, server.DNSNames)
	assert.Contains(t, server.Usages, "server auth")
	assert.NotContains(t, server.Usages, "client auth")
	assert.Contains(t, client.Usages, "client auth")
	assert.NotContains(t, client.Usages, "server auth")
	assert.Equal(t, keda.DefaultClientName, client.CommonName)
	assert.Empty(t, client.DNSNames, "they would count in place of the common name")

	data, err := os.ReadFile(folder + "authentication.yaml")
	require.NoError(t, err)
	var authentication struct {
		Kind     string            `json:"kind"`
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			SecretTargetRef []struct{ Parameter, Name, Key string } `json:"secretTargetRef"`
		} `json:"spec"`
	}
	require.NoError(t, yaml.Unmarshal(data, &authentication))
	reference := scaledObjectOf(t, "examples/keda-scaledobject.yaml").Spec.Triggers[0].AuthenticationRef
	assert.Equal(t, reference.Kind, authentication.Kind)
	assert.Equal(t, reference.Name, authentication.Metadata.Name)
	keys := map[string]string{}
	for _, r := range authentication.Spec.SecretTargetRef {
		assert.Equal(t, "foresail-keda-client", r.Name)
		keys[r.Parameter] = r.Key
	}
	assert.Equal(t, map[string]string{"caCert": "ca.crt", "tlsClientCert": corev1.TLSCertKey,
		"tlsClientKey": corev1.TLSPrivateKeyKey}, keys)
}

// TestCertificatesAreSignedForForesailsNamespaceAlone finds authorities that would sign for clients
// elsewhere: a ClusterIssuer signs whatever a Certificate of any namespace says.
func TestCertificatesAreSignedForForesailsNamespaceAlone(t *testing.T) {
	issuers, references := map[string]bool{}, 0
	eachYAML(t, func(path string, text []byte) {
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			assert.NotContains(t, string(document), "ClusterIssuer", path)
			if !bytes.Contains(document, []byte("cert-manager.io/v1\n")) || strings.Contains(path, "/templates/") {
				continue
			}
			var o struct {
				Kind     string
				Metadata metav1.ObjectMeta
				Spec     struct {
					IssuerRef struct{ Name, Kind string } `json:"issuerRef"`
				}
			}
			require.NoError(t, yaml.Unmarshal(document, &o), path)
			assert.Equal(t, "foresail-system", o.Metadata.Namespace, path)
			if o.Kind == "Issuer" {
				issuers[o.Metadata.Name] = true
				continue
			}
			references++
			assert.Equal(t, "Issuer", o.Spec.IssuerRef.Kind, path)
		}
	})
	assert.Len(t, issuers, 4)
	assert.Greater(t, references, len(issuers))
}
