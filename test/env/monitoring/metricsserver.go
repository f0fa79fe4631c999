package monitoring

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/ports"
)

// MetricsServerOptions say how a metrics-server differs from one that reads every 15 s.
type MetricsServerOptions struct {
	// Binaries are what runs; the zero value stands for those of [Build].
	Binaries Binaries
	// Progress receives lines about the build, if there is one; nil for none.
	Progress io.Writer

	// Resolution is the time from one reading of the kubelets to the next, at least 10 s; 0 for 15
	// s, as in its manifests. A pod's use is the mean of the time between two readings.
	Resolution time.Duration
	// Selector is a label selector of the pods whose use the kubelets know; "" for all that the
	// workload serves.
	Selector string
	// ExtraArgs are further flags.
	ExtraArgs []string
}

// MetricsServer is a metrics-server that is registered with a cluster's API server. Its methods may
// be called from any goroutine.
type MetricsServer struct{ *server }

const (
	minResolution      = 10 * time.Second
	defaultResolution  = 15 * time.Second
	kubeletTimeout     = 5 * time.Second
	metricsServerSpace = "kube-system"
	metricsServerName  = "metrics-server"
)

//go:embed metricsserver.yaml
var metricsServerManifest []byte

// StartMetricsServer runs metrics-server and the kubelets' endpoints that it reads, registers it
// with the API server, and returns when that passes requests on. It builds metrics-server first if
// need be. A pod's use is known after the second reading that saw it. All of it ends with ctx at
// the latest. A cluster has one at a time.
func StartMetricsServer(ctx context.Context, cluster *controlplane.Cluster,
	options MetricsServerOptions) (*MetricsServer, error) {
	if options.Resolution == 0 {
		options.Resolution = defaultResolution
	}
	if options.Resolution < minResolution {
		return nil, fmt.Errorf("MetricsServerOptions.Resolution: %s: want %s or more", options.Resolution,
			minResolution)
	}
	m, api, err := newMetricsServer(ctx, cluster, options)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", metricsServerName, err)
	}
	if err := m.run(ctx); err != nil {
		return nil, err
	}
	if err := m.register(ctx, cluster, api); err != nil {
		return nil, errors.Join(err, m.Kill())
	}
	return m, nil
}

func newMetricsServer(ctx context.Context, cluster *controlplane.Cluster, options MetricsServerOptions) (*MetricsServer,
	controlplane.AggregatedAPI, error) {
	api := controlplane.AggregatedAPI{
		Group: "metrics.k8s.io", Version: "v1beta1", Namespace: metricsServerSpace, Service: metricsServerName,
	}
	binaries, err := options.Binaries.orBuild(ctx, options.Progress)
	if err != nil {
		return nil, api, err
	}
	if _, err := cluster.Apply(ctx, metricsServerManifest); err != nil {
		return nil, api, err
	}
	if api.Port, err = ports.Take(); err != nil {
		return nil, api, err
	}
	kubelets, err := startKubelets(ctx, cluster, options.Selector)
	if err != nil {
		return nil, api, err
	}
	args, err := metricsServerArguments(ctx, cluster, options.Resolution, kubelets.port(), api)
	if err != nil {
		return nil, api, err
	}
	home := filepath.Join(cluster.Dir(), metricsServerName)
	return &MetricsServer{&server{
		name: metricsServerName, binary: binaries.path(metricsServerBinary), home: home,
		args: append(args, options.ExtraArgs...),
	}}, api, os.MkdirAll(home, 0o700)
}

func metricsServerArguments(ctx context.Context, cluster *controlplane.Cluster, resolution time.Duration,
	kubeletPort int, api controlplane.AggregatedAPI) ([]string, error) {
	kubeconfig, err := cluster.KubeconfigForServiceAccount(ctx, metricsServerSpace, metricsServerName)
	if err != nil {
		return nil, err
	}
	cert, key, err := cluster.ServingCertificate(api.Service+"."+api.Namespace+".svc", "localhost")
	if err != nil {
		return nil, err
	}
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", api.Port),
		"--tls-cert-file=" + cert,
		"--tls-private-key-file=" + key,
		"--metric-resolution=" + resolution.String(),
		// The nodes have one address between them; which of them is meant says the path, by their
		// annotation. The certificate is trusted by the kubeconfig's CA.
		"--kubelet-preferred-address-types=InternalIP",
		fmt.Sprintf("--kubelet-port=%d", kubeletPort),
		"--kubelet-request-timeout=" + kubeletTimeout.String(),
	}, nil
}

// register has the API server pass requests on, and waits until it does.
func (m *MetricsServer) register(ctx context.Context, cluster *controlplane.Cluster,
	api controlplane.AggregatedAPI) error {
	if err := cluster.RegisterAggregated(ctx, api); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	process := m.current()
	go func() {
		select {
		case <-process.Ended():
			cancel(process.Failure())
		case <-ctx.Done():
		}
	}()
	return cluster.WaitAggregated(ctx, api.Name())
}
