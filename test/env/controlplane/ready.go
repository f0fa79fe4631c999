package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pollInterval is how often a condition that cannot be watched is looked at.
const pollInterval = 50 * time.Millisecond

// waitReady waits for the components that need the API server, all at once.
func (c *Cluster) waitReady(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, component := range []Component{ControllerManager, Scheduler, Kwok} {
		group.Go(func() error { return c.waitHealthy(ctx, component) })
	}
	group.Go(func() error { return c.waitDefaultServiceAccount(ctx) })
	return group.Wait()
}

// waitHealthy waits until a component reports that it is healthy.
func (c *Cluster) waitHealthy(ctx context.Context, component Component) error {
	urls := map[Component]string{
		APIServer:         c.URL() + "/readyz",
		ControllerManager: "https://" + c.slot.address(controllerManagerPort) + "/healthz",
		Scheduler:         "https://" + c.slot.address(schedulerPort) + c.schedulerReadiness(),
		Kwok:              "http://" + c.slot.address(kwokPort) + "/readyz",
	}
	client, err := c.healthClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return c.poll(ctx, string(component)+" to be healthy", func(ctx context.Context) error {
		return checkHealth(ctx, client, urls[component])
	})
}

// healthClient trusts the cluster's certificates. It is the administrator, who may read health from
// the first moment.
func (c *Cluster) healthClient() (*http.Client, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.ca.Cert)
	admin, err := tls.X509KeyPair(c.config.CertData, c.config.KeyData)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{admin}},
	}}, nil
}

func checkHealth(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return nil
}

// waitDefaultServiceAccount waits until the controllers work: without its default service account a
// namespace admits no pods.
func (c *Cluster) waitDefaultServiceAccount(ctx context.Context) error {
	return c.poll(ctx, "the controllers to make the default service account", func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(corev1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// poll waits until check succeeds. It gives up when the context ends, with the last failure, or the
// cluster breaks.
func (c *Cluster) poll(ctx context.Context, what string, check func(context.Context) error) error {
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.done:
			if failure := c.Err(); failure != nil {
				return failure
			}
			return fmt.Errorf("waiting for %s: the cluster was stopped", what)
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last: %w", what, context.Cause(ctx), err)
		case <-time.After(pollInterval):
		}
	}
}

// schedulerReadiness is the path at which the scheduler says that it is ready. Kubernetes 1.29 has
// only /healthz.
func (c *Cluster) schedulerReadiness() string {
	if c.options.Binaries.Kubernetes != "" {
		return "/healthz"
	}
	return "/readyz"
}
