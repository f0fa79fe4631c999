package manifests_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/test/env/controlplane"
)

// TestTheSecondSchedulerMayDoItsWork runs a real kube-scheduler with the configuration of the
// overlay and the rights of its account, and has it place a pod. Nothing answers it in the place of
// Foresail; then, with the certificates of the example, a server that wants to know who asks.
func TestTheSecondSchedulerMayDoItsWork(t *testing.T) {
	binaries, err := controlplane.Build(t.Context(), os.Stderr)
	require.NoError(t, err)
	cluster := controlplane.BorrowFor(t)
	for _, file := range []string{"base/namespace.yaml", "overlays/second-scheduler/rbac.yaml"} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = cluster.Apply(t.Context(), content)
		require.NoError(t, err)
	}
	addRoomyNode(t, cluster)

	t.Run("alone", func(t *testing.T) {
		said := placeWith(t, cluster, binaries, secondScheduler, func(extender map[string]any) {
			extender["urlPrefix"] = "https://127.0.0.1:1/scheduler"
		})
		assert.NotContains(t, said, "forbidden")
		lease, err := cluster.Client().CoordinationV1().Leases("foresail-system").Get(t.Context(), "foresail-scheduler",
			metav1.GetOptions{})
		require.NoError(t, err)
		assert.NotNil(t, lease.Spec.HolderIdentity)
	})
	t.Run("with certificates", func(t *testing.T) {
		folder := t.TempDir()
		issueCertificates(t, folder)
		address, asked := answerWhoIsKnown(t, folder)
		placeWith(t, cluster, binaries, "examples/extender-certificates/configuration/kubescheduler.yaml",
			func(extender map[string]any) {
				extender["urlPrefix"] = address + "/scheduler"
				known := extender["tlsConfig"].(map[string]any)
				for field, path := range known {
					known[field] = filepath.Join(folder, filepath.Base(path.(string)))
				}
			})
		select {
		case name := <-asked:
			assert.Equal(t, "foresail-scheduler", name)
		default:
			assert.Fail(t, "it was placed without a question of whom both know")
		}
	})
}

// placeWith runs a scheduler with a configuration, of which what is changed leads to the extender,
// until it has placed a pod. It returns what the scheduler said.
func placeWith(t *testing.T, cluster *controlplane.Cluster, binaries controlplane.Binaries, file string,
	change func(extender map[string]any)) string {
	t.Helper()
	kubeconfig, err := cluster.KubeconfigForServiceAccount(t.Context(), "foresail-system", "foresail-scheduler")
	require.NoError(t, err)
	home := t.TempDir()
	log := filepath.Join(home, "log")
	scheduler, err := controlplane.StartProcess("second scheduler", binaries.Path(controlplane.Scheduler), log, home,
		[]string{
			"--config=" + outsideOfAPod(t, file, kubeconfig, change), "--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--secure-port=0", // nobody asks it anything here
		})
	require.NoError(t, err)
	defer func() { require.NoError(t, scheduler.Stop(3*time.Second)) }()

	pods := cluster.Client().CoreV1().Pods("default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "placed-"},
		Spec: corev1.PodSpec{SchedulerName: "foresail-scheduler"}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main"}}
	pod, err = pods.Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	for deadline := time.Now().Add(time.Minute); pod.Spec.NodeName == ""; time.Sleep(100 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "it is not placed: %s", scheduler.LogTail())
		pod, err = pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
		require.NoError(t, err)
	}
	assert.Equal(t, "roomy", pod.Spec.NodeName)
	said, err := os.ReadFile(log)
	require.NoError(t, err)
	return string(said)
}

// outsideOfAPod is a configuration for a scheduler that is no pod: where the API server is has to
// be told, and the name of the Service means nothing.
func outsideOfAPod(t *testing.T, file, kubeconfig string, change func(extender map[string]any)) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var document map[string]any
	require.NoError(t, yaml.Unmarshal(data, &document))
	document["clientConnection"].(map[string]any)["kubeconfig"] = kubeconfig
	change(document["extenders"].([]any)[0].(map[string]any))
	data, err = yaml.Marshal(document)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "kubescheduler.yaml")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// issueCertificates writes what the Secrets of the example hold: an authority (ca.crt), the
// certificate of a scheduler (tls.crt, tls.key), and the one of a server (server.crt, server.key).
func issueCertificates(t *testing.T, folder string) {
	t.Helper()
	valid := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour)}
	authority := valid
	authority.IsCA, authority.BasicConstraintsValid, authority.Subject.CommonName = true, true, "authority"
	signer := issue(t, folder, "ca", &authority, &authority, nil)
	client := valid
	client.Subject.CommonName, client.ExtKeyUsage = "foresail-scheduler", []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	issue(t, folder, "tls", &client, &authority, signer)
	server := valid
	server.IPAddresses, server.ExtKeyUsage = []net.IP{net.IPv4(127, 0, 0,
		1)}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	issue(t, folder, "server", &server, &authority, signer)
}

// issue writes a certificate, signed by itself if there is no signer, with its key, which it returns.
func issue(t *testing.T, folder, name string, of, by *x509.Certificate, signer *ecdsa.PrivateKey) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	if signer == nil {
		signer = key
	}
	content, err := x509.CreateCertificate(rand.Reader, of, by, key.Public(), signer)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{name + ".crt": {Type: "CERTIFICATE", Bytes: content},
		name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(block), 0o600))
	}
	return key
}

// answerWhoIsKnown lets a scheduler pass that the authority knows, by the server of the extender,
// and tells the name of the first.
func answerWhoIsKnown(t *testing.T, folder string) (address string, asked <-chan string) {
	t.Helper()
	names := make(chan string, 1)
	file := func(name string) string { return filepath.Join(folder, name) }
	server, err := extender.NewServer(extender.ServerOptions{
		Address: "127.0.0.1:0", CertFile: file("server.crt"), KeyFile: file("server.key"), ClientCAFile: file("ca.crt"),
		ClientNames: []string{extender.DefaultClientName},
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case names <- r.TLS.PeerCertificates[0].Subject.CommonName:
		default:
		}
		http.Error(w, "it goes on without an answer", http.StatusServiceUnavailable)
	}))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return "https://" + server.Addr().String(), names
}

// addRoomyNode adds a Node that is Ready, and the account that pods have.
func addRoomyNode(t *testing.T, cluster *controlplane.Cluster) {
	t.Helper()
	core := cluster.Client().CoreV1()
	_, err := core.ServiceAccounts("default").Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	node, err := core.Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "roomy"}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	node.Spec.Taints = nil // of being new; what takes it off does not run
	node, err = core.Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = core.Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
}
