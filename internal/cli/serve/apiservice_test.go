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
	target, err := o.target()
	require.NoError(t, err)
	assert.Equal(t, service.Name, target.Name)
	assert.Equal(t, service.Spec.Ports[0].Port, target.Port)

	file, err := os.Open("../../../manifests/base/rbac-apiservice.yaml")
	require.NoError(t, err)
	defer file.Close()
	documents := utilyaml.NewYAMLOrJSONDecoder(file, 4096)
	var role rbacv1.ClusterRole
	require.NoError(t, documents.Decode(&role))
	assert.Equal(t, role.Name, apiServiceOwner)
	assert.Equal(t, []string{apiServiceOwner}, role.Rules[2].ResourceNames)
	var binding rbacv1.ClusterRoleBinding
	require.NoError(t, documents.Decode(&binding))
	var secrets rbacv1.Role
	require.NoError(t, documents.Decode(&secrets))
	assert.Equal(t, []string{apiServiceSecret}, secrets.Rules[1].ResourceNames)
}

func TestFlagsOfTheRegistrationAreChecked(t *testing.T) {
	given := []string{"--foresail-namespace=a", "--cert-dir=" + certDir(t, "localhost")}[:2:2]
	for _, c := range []struct {
		args []string
		want string // "" accepts
	}{
		{nil, `--foresail-namespace: "": must be the namespace that this runs in, or outside of a cluster that of the Service which leads here, unless --apiservice=none`},
		{[]string{"--apiservice=none"}, ""},
		{[]string{"--apiservice=maybe"}, `--apiservice: "maybe": must be create, take-over or none`},
		{[]string{"--foresail-namespace=foresail-system"}, ""},
		{[]string{"--foresail-namespace=Foresail"}, `--foresail-namespace: "Foresail": must be`},
		{[]string{"--foresail-namespace=a", "--apiservice-service="},
			`--apiservice-service: "": must be the name of a Service`},
		{[]string{"--foresail-namespace=a", "--apiservice-service=b:6443"}, ""},
		{[]string{"--foresail-namespace=a", "--apiservice-service=b:0"},
			`--apiservice-service: "b:0": must be the name of a Service, and perhaps a port from 1 to 65535`},
		{[]string{"--foresail-namespace=a", "--apiservice-service=b:https"},
			`--apiservice-service: "b:https": must be the name of a Service`},
		{[]string{"--foresail-namespace=a", "--apiservice=take-over"}, ""},
		{[]string{"--apiservice=none", "--apiservice-inject-ca-from=a/b"},
			`--apiservice-inject-ca-from: "a/b": must be left out with --apiservice=none`},
		{[]string{"--foresail-namespace=a", "--apiservice-inject-ca-from=a/b"},
			`--apiservice-inject-ca-from: "a/b": must be left out unless --cert-dir is given`},
		{append(given, "--apiservice-inject-ca-from=a/b"), ""},
		{append(given, "--apiservice-inject-ca-from=a"),
			`--apiservice-inject-ca-from: "a": must be a namespace and a name, such as foresail-system/foresail`},
		{append(given, "--apiservice=take-over"),
			"--apiservice: take-over: must be given with --apiservice-inject-ca-from, as the certificate is given by --cert-dir"},
		{append(given, "--apiservice=take-over", "--apiservice-inject-ca-from=a/b"), ""},
		{[]string{"--foresail-namespace=a", "--cert-dir=/nonexistent"},
			`--cert-dir: "/nonexistent": must be a folder with a certificate and its key in PEM, tls.crt and tls.key: `},
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
