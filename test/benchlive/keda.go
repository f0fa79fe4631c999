package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/foresail/foresail/test/controlplane"
	"github.com/foresail/foresail/test/ports"
)

// kedaNamespace is where KEDA would run if it had pods.
const kedaNamespace = "keda"

// startKEDA runs KEDA's operator and its metrics adapter as the cluster's administrator: what it may do is not what is
// measured.
func (s *stage) startKEDA(ctx context.Context) error {
	crds, err := filepath.Glob(filepath.Join(s.binaries.keda, kedaCRDs, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range crds {
		definition, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := s.stack.Cluster.Apply(ctx, definition); err != nil {
			return err
		}
	}
	metrics, err := ports.Take()
	if err != nil {
		return err
	}
	if err := s.startKEDAOperator(metrics); err != nil {
		return err
	}
	return s.startKEDAAdapter(ctx, metrics)
}

func (s *stage) startKEDAOperator(metricsPort int) error {
	certFile, keyFile, err := s.stack.Cluster.ServingCertificate("localhost")
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
	certs, err := s.kedaCertificates("operator", cert, key)
	if err != nil {
		return err
	}
	return s.startProgram(kedaOperatorBinary, []string{
		"--kubeconfig=" + s.stack.Cluster.Kubeconfig(),
		"--metrics-service-bind-address=" + ports.Loopback(metricsPort),
		"--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--cert-dir=" + certs,
		"--enable-webhook-patching=false", "--enable-apiservice-patching=false",
	})
}

// startKEDAAdapter has the operator know the adapter by a client's certificate, and the API server by a server's. What it tells
// of itself, at a port of its own, it tells at every address: there is no flag for one.
func (s *stage) startKEDAAdapter(ctx context.Context, metricsPort int) error {
	client, err := s.stack.Cluster.RESTConfigFor("keda-metrics-adapter")
	if err != nil {
		return err
	}
	certs, err := s.kedaCertificates("adapter", client.CertData, client.KeyData)
	if err != nil {
		return err
	}
	api := controlplane.AggregatedAPI{
		Group: "external.metrics.k8s.io", Version: "v1beta1", Namespace: kedaNamespace, Service: "keda-metrics-apiserver",
	}
	if api.Port, err = ports.Take(); err != nil {
		return err
	}
	own, err := ports.Take()
	if err != nil {
		return err
	}
	cert, key, err := s.stack.Cluster.ServingCertificate(api.Service+"."+api.Namespace+".svc", "localhost")
	if err != nil {
		return err
	}
	kubeconfig := s.stack.Cluster.Kubeconfig()
	err = s.startProgram(kedaAdapterBinary, []string{
		"--kubeconfig=" + kubeconfig, "--lister-kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(api.Port), "--port=" + strconv.Itoa(own),
		"--cert-dir=" + certs, "--tls-cert-file=" + cert, "--tls-private-key-file=" + key,
		"--metrics-service-address=" + net.JoinHostPort("localhost", strconv.Itoa(metricsPort)),
	})
	if err != nil {
		return err
	}
	if err := s.stack.Cluster.RegisterAggregated(ctx, api); err != nil {
		return err
	}
	ctx, cancel := withPatience(ctx)
	defer cancel()
	return s.stack.Cluster.WaitAggregated(ctx, api.Name())
}

// startProgram runs a program of KEDA's until close.
func (s *stage) startProgram(name string, args []string) error {
	dir := s.stack.Cluster.Dir()
	process, err := controlplane.StartProcess(name, filepath.Join(s.binaries.keda, name), filepath.Join(dir, name+".log"), dir, args,
		"WATCH_NAMESPACE=", "POD_NAMESPACE="+kedaNamespace, "KEDA_CLUSTER_OBJECT_NAMESPACE="+kedaNamespace)
	if err != nil {
		return err
	}
	s.stops = append(s.stops, func() error { return process.Stop(time.Second) })
	return nil
}

// kedaCertificates makes a folder as KEDA expects one, and returns its path.
func (s *stage) kedaCertificates(name string, cert, key []byte) (string, error) {
	dir := filepath.Join(s.stack.Cluster.Dir(), "keda-"+name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	for file, content := range map[string][]byte{"ca.crt": s.stack.Cluster.CA(), "tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			return "", fmt.Errorf("certificates of KEDA: %w", err)
		}
	}
	return dir, nil
}
