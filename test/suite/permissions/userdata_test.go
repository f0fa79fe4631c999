package permissions

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// joinToken is what the stub of the AWS CLI prints.
const joinToken = "K10::server:secret" //nolint:gosec // made up

// stubs play the programs that user data calls. Each notes its arguments.
var stubs = map[string]string{
	"aws": `echo "aws $*" >> "$CALLS"; echo "` + joinToken + `"`,
	"kubeadm": `echo "kubeadm $*" >> "$CALLS"
		if [ "$1" = version ]; then echo v1.34.1; else cp "$FOLDER/discovery.conf" "$CALLS.discovery"; fi`,
	"curl": `echo "curl $*" >> "$CALLS"
		case "$*" in
		*api/token) echo session;;
		*availability-zone) echo eu-central-1a;;
		*placement/region) echo eu-central-1;;
		*instance-id) echo i-0123456789abcdef0;;
		*instance-type) echo m5.large;;
		*install.sh) echo 'echo "install $INSTALL_K3S_VERSION $INSTALL_K3S_EXEC" >> "$CALLS"';;
		*) exit 22;;
		esac`,
}

// boot runs user data on a machine of stubs, and returns the folder of its files and the calls that it made.
func boot(t *testing.T, file string) (folder, calls string) {
	t.Helper()
	bin := t.TempDir()
	for name, script := range stubs {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700)) //nolint:gosec // a program
	}
	folder, noted := filepath.Join(t.TempDir(), "etc"), filepath.Join(t.TempDir(), "calls")
	cmd := exec.CommandContext(t.Context(), "sh", examples+"user-data/"+file)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "FOLDER="+folder, "CALLS="+noted)
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", output)
	text, err := os.ReadFile(noted)
	require.NoError(t, err)
	return folder, string(text)
}

func yamlOf(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var o map[string]any
	require.NoError(t, yaml.UnmarshalStrict(text, &o))
	return o
}

func TestUserDataOfK3s(t *testing.T) {
	folder, calls := boot(t, "k3s.sh")
	token := filepath.Join(folder, "token")
	assert.Equal(t, map[string]any{
		"server": "https://SERVER:6443", "token-file": token,
		"kubelet-arg": []any{"provider-id=aws:///eu-central-1a/i-0123456789abcdef0"},
		"node-label":  []any{"topology.kubernetes.io/zone=eu-central-1a", "node.kubernetes.io/instance-type=m5.large"},
	}, yamlOf(t, filepath.Join(folder, "config.yaml")))
	text, err := os.ReadFile(token)
	require.NoError(t, err)
	assert.Equal(t, joinToken+"\n", string(text))
	info, err := os.Stat(token)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode(), "for root alone")
	assert.Contains(t, calls, "--name "+tokenParameter+" --with-decryption")
	assert.Contains(t, calls, "/k3s/v1.34.1+k3s1/install.sh\ninstall v1.34.1+k3s1 agent\n")
	assert.NotContains(t, calls, joinToken, "other programs would see it")
}

func TestUserDataOfKubeadm(t *testing.T) {
	folder, calls := boot(t, "kubeadm.sh")
	file := filepath.Join(folder, "discovery.conf")
	join := yamlOf(t, filepath.Join(folder, "join.yaml"))
	assert.Equal(t, "JoinConfiguration", join["kind"])
	assert.Equal(t, map[string]any{"file": map[string]any{"kubeConfigPath": file}}, join["discovery"])
	assert.Equal(t, map[string]any{"kubeletExtraArgs": []any{
		map[string]any{"name": "provider-id", "value": "aws:///eu-central-1a/i-0123456789abcdef0"},
		map[string]any{"name": "node-labels",
			"value": "topology.kubernetes.io/zone=eu-central-1a,node.kubernetes.io/instance-type=m5.large"},
	}}, join["nodeRegistration"])
	assert.Contains(t, calls, "kubeadm join --config "+filepath.Join(folder, "join.yaml")+"\n")
	assert.NotContains(t, calls, joinToken)
	assert.NoFileExists(t, file, "it is not needed any more")
}

func TestUserDataOfEKS(t *testing.T) {
	o := yamlOf(t, examples+"user-data/eks.yaml")
	assert.Equal(t, "node.eks.aws/v1alpha1", o["apiVersion"])
	assert.Equal(t, "NodeConfig", o["kind"])
	spec, ok := o["spec"].(map[string]any)
	require.True(t, ok)
	for _, key := range []string{"name", "apiServerEndpoint", "certificateAuthority", "cidr"} {
		assert.Contains(t, spec["cluster"], key, "nodeadm needs it")
	}
}

// TestUserDataFits fails if user data is too large for a parameter of CloudFormation, or has a
// secret of its own.
func TestUserDataFits(t *testing.T) {
	for _, file := range []string{"k3s.sh", "kubeadm.sh", "eks.yaml"} {
		text := read(t, "user-data/"+file)
		assert.LessOrEqual(t, base64.StdEncoding.EncodedLen(len(text)), 4096, file)
		assert.False(t, strings.Contains(text, "K3S_TOKEN") || strings.Contains(text, "--token"), file)
	}
}
