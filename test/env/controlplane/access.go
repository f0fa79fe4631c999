package controlplane

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

// tokenSeconds is how long a service account's token is valid: longer than any test.
const tokenSeconds = int64(24 * 60 * 60)

// URL returns the address of the API server, such as https://127.0.0.1:21042.
func (c *Cluster) URL() string { return "https://" + c.slot.address(apiServerPort) }

// EtcdURL returns the address of etcd, such as http://127.0.0.1:21041, which takes clients without
// credentials.
func (c *Cluster) EtcdURL() string { return "http://" + c.slot.address(etcdClientPort) }

// Kubeconfig returns the path of a kubeconfig for the administrator, who may do everything.
func (c *Cluster) Kubeconfig() string { return c.file("admin.kubeconfig") }

// RESTConfig returns a client configuration for the administrator, the caller's to change.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Client returns the administrator's client.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Dynamic returns the administrator's client for any kind of object.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// CA returns the certificate, in PEM, of the authority that signs the API server's certificate and those of
// [Cluster.ServingCertificate].
func (c *Cluster) CA() []byte { return c.ca.Cert }

// KubeconfigFor writes a kubeconfig for a user in groups, known by a certificate, and returns its
// path. The user has the permissions that RBAC gives to it, none at first.
func (c *Cluster) KubeconfigFor(user string, groups ...string) (string, error) {
	pair, err := c.ca.Client(user, groups...)
	if err != nil {
		return "", err
	}
	return c.writeUserKubeconfig(certificateUser(pair))
}

// KubeconfigForServiceAccount writes a kubeconfig for an existing service account, known by a token
// valid for a day, and returns its path.
func (c *Cluster) KubeconfigForServiceAccount(ctx context.Context, namespace, name string) (string, error) {
	token, err := c.ServiceAccountToken(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	return c.writeUserKubeconfig(tokenUser(token))
}

// ServiceAccountToken returns a token of an existing service account, valid for a day.
func (c *Cluster) ServiceAccountToken(ctx context.Context, namespace, name string) (string, error) {
	seconds := tokenSeconds
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of service account %s/%s: %w", namespace, name, err)
	}
	return answer.Status.Token, nil
}

// RESTConfigFor returns a client configuration for a user in groups, as [Cluster.KubeconfigFor] does.
func (c *Cluster) RESTConfigFor(user string, groups ...string) (*rest.Config, error) {
	path, err := c.KubeconfigFor(user, groups...)
	if err != nil {
		return nil, err
	}
	return loadKubeconfig(path)
}

func (c *Cluster) writeUserKubeconfig(user *api.AuthInfo) (string, error) {
	path := c.file("user-" + rand.Text() + ".kubeconfig")
	return path, writeKubeconfig(path, c.URL(), c.ca.Cert, user)
}

// ServingCertificate issues a certificate, signed by [Cluster.CA], for a server reached as the
// given host names and addresses, and returns the paths of the certificate and its key. An
// aggregated server is reached as <service>.<namespace>.svc.
func (c *Cluster) ServingCertificate(hosts ...string) (certFile, keyFile string, err error) {
	if len(hosts) == 0 {
		return "", "", fmt.Errorf("serving certificate: no hosts: want at least one name or address")
	}
	pair, err := c.ca.Server(hosts...)
	if err != nil {
		return "", "", err
	}
	dir, err := os.MkdirTemp(c.dir, "serving-")
	if err != nil {
		return "", "", err
	}
	return pair.write(dir, "tls")
}
