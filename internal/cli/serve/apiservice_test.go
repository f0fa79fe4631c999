package serve

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// TestRegistrationFitsTheManifests compares the defaults of the flags with the names in the manifests.
func TestRegistrationFitsTheManifests(t *testing.T) {
	o := parsedRun(t).adapter.api.apiService
	text, err := os.ReadFile("../../../manifests/base/service.yaml")
	require.NoError(t, err)
	var service corev1.Service
	require.NoError(t, yaml.UnmarshalStrict(text, &service))
	assert.Equal(t, service.Name, o.service.Name)
	assert.Equal(t, service.Spec.Ports[0].Port, o.service.Port)

	file, err := os.Open("../../../manifests/base/rbac-apiservice.yaml")
	require.NoError(t, err)
	defer file.Close()
	documents := utilyaml.NewYAMLOrJSONDecoder(file, 4096)
	var role rbacv1.ClusterRole
	require.NoError(t, documents.Decode(&role))
	assert.Equal(t, role.Name, o.owner)
	assert.Equal(t, []string{o.owner}, role.Rules[2].ResourceNames)
	var binding rbacv1.ClusterRoleBinding
	require.NoError(t, documents.Decode(&binding))
	var secrets rbacv1.Role
	require.NoError(t, documents.Decode(&secrets))
	assert.Equal(t, []string{o.secret}, secrets.Rules[1].ResourceNames)
}

func TestFlagsOfTheRegistrationAreChecked(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // "" accepts
	}{
		{nil, `--apiservice-namespace: "": must be the namespace that this runs in, or outside of a cluster that of the Service which leads here, unless --apiservice=false`},
		{[]string{"--apiservice=false"}, ""},
		{[]string{"--apiservice-namespace=foresail-system"}, ""},
		{[]string{"--apiservice-namespace=Foresail"}, `--apiservice-namespace: "Foresail": must be`},
		{[]string{"--apiservice-namespace=a", "--apiservice-service="}, `--apiservice-service: "": must be the name of a Service`},
		{[]string{"--apiservice-namespace=a", "--apiservice-ca-secret="}, `--apiservice-ca-secret: "": must be the name of a Secret`},
		{[]string{"--apiservice-namespace=a", "--apiservice-port=0"}, "--apiservice-port: 0: must be from 1 to 65535"},
		{[]string{"--apiservice-namespace=a", "--apiservice-ca-validity=1s"}, "--apiservice-ca-validity: 1s: must be at least 30s"},
		{[]string{"--apiservice-namespace=a", "--apiservice-take-over"}, ""},
		{[]string{"--apiservice=false", "--apiservice-take-over"}, "--apiservice-take-over: true: must be left out with --apiservice=false"},
		{[]string{"--apiservice=false", "--apiservice-inject-ca-from=a/b"}, `--apiservice-inject-ca-from: "a/b": must be left out with --apiservice=false`},
		{[]string{"--apiservice-namespace=a", "--apiservice-inject-ca-from=a/b"}, `--apiservice-inject-ca-from: "a/b": must be left out unless --tls-cert-file is given`},
		{append(certificateFlags, "--apiservice-inject-ca-from=a/b"), ""},
		{append(certificateFlags, "--apiservice-inject-ca-from=a"), `--apiservice-inject-ca-from: "a": must be a namespace and a name, such as foresail-system/foresail`},
		{append(certificateFlags, "--apiservice-take-over"), "--apiservice-take-over: true: must be given with --apiservice-inject-ca-from, as the certificate is given by --tls-cert-file"},
		{append(certificateFlags, "--apiservice-take-over", "--apiservice-inject-ca-from=a/b"), ""},
		{[]string{"--enable=nodepool"}, ""},
	} {
		o := parsedRun(t, append([]string{"--leader-elect=false"}, c.args...)...)
		if c.want == "" {
			assert.NoError(t, o.validate(), c.args)
		} else {
			assert.ErrorContains(t, o.validate(), c.want, c.args)
		}
	}
}

var certificateFlags = []string{"--apiservice-namespace=a", "--tls-cert-file=tls.crt", "--tls-private-key-file=tls.key"}[:3:3]
