package keda

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/ports"
)

// Namespace is where KEDA would run if it had pods, and where it looks for the Secrets of
// ClusterTriggerAuthentications.
const Namespace = "keda"

// KEDA is a running operator and its metrics adapter, which has the external metrics of the cluster.
type KEDA struct {
	cluster  *controlplane.Cluster
	binaries Binaries

	operator, adapter *controlplane.Process
	metrics           int // port at which the operator serves the adapter
	api               controlplane.AggregatedAPI
}

// AdapterURL is where the metrics adapter serves external metrics, beside the API server.
func (k *KEDA) AdapterURL() string { return "https://localhost:" + strconv.Itoa(k.api.Port) }

// Start makes KEDA's namespace, installs its CRDs, runs its programs as the cluster's administrator
// (what they may do is not what is tested), and waits until the API server sends them the reads of
// external metrics. Stop ends them.
func Start(ctx context.Context, cluster *controlplane.Cluster, binaries Binaries) (*KEDA, error) {
	k := &KEDA{cluster: cluster, binaries: binaries}
	if err := k.start(ctx); err != nil {
		return nil, errors.Join(err, k.Stop())
	}
	return k, nil
}

func (k *KEDA) start(ctx context.Context) error {
	if err := k.cluster.ApplyFiles(ctx, filepath.Join(k.binaries.path(crds), "*.yaml")); err != nil {
		return err
	}
	var err error
	if k.metrics, err = ports.Take(); err != nil {
		return err
	}
	if err := k.startOperator(); err != nil {
		return err
	}
	return k.startAdapter(ctx)
}

// RestartOperator has the operator forget all that it knows.
func (k *KEDA) RestartOperator() error {
	if err := k.operator.Stop(10 * time.Second); err != nil {
		return err
	}
	return k.startOperator()
}

// Stop ends both programs.
func (k *KEDA) Stop() error {
	var errs []error
	for _, process := range []*controlplane.Process{k.adapter, k.operator} {
		if process != nil {
			errs = append(errs, process.Stop(10*time.Second))
		}
	}
	return errors.Join(errs...)
}

// OperatorLog returns the end of the operator's log.
func (k *KEDA) OperatorLog() string { return k.operator.LogTail() }

func (k *KEDA) startOperator() error {
	certFile, keyFile, err := k.cluster.ServingCertificate("localhost")
	if err != nil {
		return err
	}
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	certs, err := k.certificates("operator", cert, key)
	if err != nil {
		return err
	}
	args := []string{
		"--kubeconfig=" + k.cluster.Kubeconfig(),
		"--metrics-service-bind-address=" + ports.Loopback(k.metrics),
		"--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--cert-dir=" + certs,
		"--enable-webhook-patching=false",
		"--kube-api-qps=200", "--kube-api-burst=300", // 20 a second are few for hundreds of ScaledObjects
	}
	if k.binaries.release.patchesAPIServices {
		args = append(args, "--enable-apiservice-patching=false")
	}
	k.operator, err = k.run(operatorBinary, args)
	return err
}

// startAdapter has the operator know the adapter by a client's certificate, and the API server by a
// server's. It serves its own metrics at every address: there is no flag for one.
func (k *KEDA) startAdapter(ctx context.Context) error {
	client, err := k.cluster.RESTConfigFor("keda-metrics-adapter")
	if err != nil {
		return err
	}
	certs, err := k.certificates("adapter", client.CertData, client.KeyData)
	if err != nil {
		return err
	}
	k.api = controlplane.AggregatedAPI{
		Group: "external.metrics.k8s.io", Version: "v1beta1", Namespace: Namespace, Service: "keda-metrics-apiserver",
	}
	if k.api.Port, err = ports.Take(); err != nil {
		return err
	}
	own, err := ports.Take()
	if err != nil {
		return err
	}
	cert, key, err := k.cluster.ServingCertificate(k.api.Service+"."+k.api.Namespace+".svc", "localhost")
	if err != nil {
		return err
	}
	kubeconfig := k.cluster.Kubeconfig()
	k.adapter, err = k.run(adapterBinary, []string{
		"--kubeconfig=" + kubeconfig, "--lister-kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(k.api.Port), "--port=" + strconv.Itoa(own),
		"--cert-dir=" + certs, "--tls-cert-file=" + cert, "--tls-private-key-file=" + key,
		"--metrics-service-address=" + net.JoinHostPort("localhost", strconv.Itoa(k.metrics)),
	})
	if err != nil {
		return err
	}
	return k.Register(ctx)
}

// Register has the API server send the reads of external metrics to KEDA's adapter, and waits until it does.
func (k *KEDA) Register(ctx context.Context) error {
	if err := k.cluster.RegisterAggregated(ctx, k.api); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute,
		errors.New("KEDA's metrics adapter did not answer within two minutes"))
	defer cancel()
	return k.cluster.WaitAggregated(ctx, k.api.Name())
}

func (k *KEDA) run(name string, args []string) (*controlplane.Process, error) {
	dir := k.cluster.Dir()
	return controlplane.StartProcess(name, k.binaries.path(name), filepath.Join(dir, name+".log"), dir, args,
		"WATCH_NAMESPACE=", "POD_NAMESPACE="+Namespace, "KEDA_CLUSTER_OBJECT_NAMESPACE="+Namespace)
}

// certificates makes a folder as KEDA expects one, and returns its path.
func (k *KEDA) certificates(name string, cert, key []byte) (string, error) {
	dir := filepath.Join(k.cluster.Dir(), "keda-"+name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for file, content := range map[string][]byte{"ca.crt": k.cluster.CA(), "tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			return "", fmt.Errorf("certificates of KEDA: %w", err)
		}
	}
	return dir, nil
}
