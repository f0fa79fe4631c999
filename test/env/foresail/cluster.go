package foresail

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/ports"
)

// Where the manifests put Foresail.
const (
	Namespace      = "foresail-system"
	ServiceName    = "foresail"
	ServiceAccount = "foresail"
)

// ReadManifest reads a file of the folder manifests.
func ReadManifest(file string) ([]byte, error) {
	root, err := controlplane.Root()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(root, "manifests", file))
}

// Apply applies files of the folder manifests, by patterns, in the order of these.
func Apply(ctx context.Context, c *controlplane.Cluster, patterns ...string) error {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	for _, pattern := range patterns {
		files, err := fs.Glob(os.DirFS(filepath.Join(root, "manifests")), pattern)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("manifests/%s: no such file", pattern)
		}
		for _, file := range files {
			if path.Base(file) == "kustomization.yaml" {
				continue
			}
			content, err := ReadManifest(file)
			if err != nil {
				return err
			}
			if _, err := c.Apply(ctx, content); err != nil {
				return fmt.Errorf("manifests/%s: %w", file, err)
			}
		}
	}
	return nil
}

// ApplyBase applies an installation of the adapter. The namespace comes first: no other file of the
// base needs another.
func ApplyBase(ctx context.Context, c *controlplane.Cluster) error {
	return Apply(ctx, c, "base/namespace.yaml", "crds/*.yaml", "base/*.yaml")
}

// NewClient returns a client that knows the kinds of Kubernetes and Foresail.
func NewClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// AdapterFlags returns the flags of an adapter under the service account of the manifests, with a
// certificate of the cluster, and its secure port. Pods have loopback addresses here.
func AdapterFlags(ctx context.Context, c *controlplane.Cluster) (flags []string, securePort int, err error) {
	flags, securePort, err = SigningAdapterFlags(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	cert, _, err := c.ServingCertificate(ServiceName+"."+Namespace+".svc", "localhost")
	return append(flags, "--cert-dir", filepath.Dir(cert)), securePort, err
}

// SigningAdapterFlags returns the flags of an adapter that signs its own certificate and registers itself.
func SigningAdapterFlags(ctx context.Context, c *controlplane.Cluster) (flags []string, securePort int, err error) {
	kubeconfig, err := c.KubeconfigForServiceAccount(ctx, Namespace, ServiceAccount)
	if err != nil {
		return nil, 0, err
	}
	if securePort, err = ports.Take(); err != nil {
		return nil, 0, err
	}
	return []string{
		"--kubeconfig", kubeconfig,
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(securePort),
		"--foresail-namespace", Namespace, "test:scrape-allow-loopback=true",
	}, securePort, nil
}

// Register has the API server send requests for external metrics to a port, and waits until it does.
func Register(ctx context.Context, c *controlplane.Cluster, securePort int) error {
	api := controlplane.AggregatedAPI{
		Group: "external.metrics.k8s.io", Version: "v1beta1", Port: securePort, Namespace: Namespace,
		Service: ServiceName,
	}
	if err := c.RegisterAggregated(ctx, api); err != nil {
		return err
	}
	return c.WaitAggregated(ctx, api.Name())
}
