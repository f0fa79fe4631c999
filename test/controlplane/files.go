package controlplane

import (
	"os"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	serviceAccountIssuer = "https://kubernetes.default.svc"
	// frontProxyUser is the name by which aggregated servers know the API server.
	frontProxyUser = "front-proxy-client"
	adminUser      = "kubernetes-admin"
	// mastersGroup may do everything, by the API server's own rule and not by RBAC.
	mastersGroup = "system:masters"
)

// writeFiles makes the certificates, kubeconfigs and configuration files that the components read.
func (c *Cluster) writeFiles() error {
	var err error
	if c.ca, err = newAuthority("kubernetes-ca"); err != nil {
		return err
	}
	if c.frontProxyCA, err = newAuthority("front-proxy-ca"); err != nil {
		return err
	}
	if err := c.writeCertificates(); err != nil {
		return err
	}
	if err := c.writeComponentKubeconfigs(); err != nil {
		return err
	}
	if err := writeKwokConfig(c.file("kwok.yaml"), c.options.Binaries, c.options.ReadyDelay, c.options.Stages); err != nil {
		return err
	}
	return writeSchedulerConfig(c.file("kube-scheduler.yaml"), c.file("kube-scheduler.kubeconfig"), c.options.SchedulerConfig)
}

func (c *Cluster) writeCertificates() error {
	apiServer, err := c.ca.server("localhost", "127.0.0.1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "10.96.0.1")
	if err != nil {
		return err
	}
	loopback, err := c.ca.server("localhost", "127.0.0.1")
	if err != nil {
		return err
	}
	frontProxy, err := c.frontProxyCA.client(frontProxyUser)
	if err != nil {
		return err
	}
	pairs := map[string]keyPair{
		"ca":             c.ca.keyPair,
		"front-proxy-ca": c.frontProxyCA.keyPair,
		"apiserver":      apiServer,
		"loopback":       loopback,
		"front-proxy":    frontProxy,
	}
	for name, pair := range pairs {
		if _, _, err := pair.write(c.dir, name); err != nil {
			return err
		}
	}
	_, key, err := newKey()
	if err != nil {
		return err
	}
	return os.WriteFile(c.file("service-account.key"), key, 0o600)
}

func (c *Cluster) writeComponentKubeconfigs() error {
	identities := []struct {
		path, user string
		groups     []string
	}{
		{c.Kubeconfig(), adminUser, []string{mastersGroup}},
		{c.file("kube-controller-manager.kubeconfig"), "system:kube-controller-manager", nil},
		{c.file("kube-scheduler.kubeconfig"), "system:kube-scheduler", nil},
		// kwok has no role of its own among those that the API server brings along.
		{c.file("kwok.kubeconfig"), "kwok", []string{mastersGroup}},
	}
	for _, id := range identities {
		pair, err := c.ca.client(id.user, id.groups...)
		if err != nil {
			return err
		}
		if err := writeKubeconfig(id.path, c.URL(), c.ca.cert, certificateUser(pair)); err != nil {
			return err
		}
	}
	return nil
}

// makeClients makes the clients that this package itself works with.
func (c *Cluster) makeClients() error {
	var err error
	if c.config, err = loadKubeconfig(c.Kubeconfig()); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	if c.dynamic, err = dynamic.NewForConfig(c.config); err != nil {
		return err
	}
	c.applier, err = newApplier(c.config, c.dynamic)
	return err
}

// loadKubeconfig turns a kubeconfig into a client's configuration without client-side rate limits: there is nobody here to be spared.
func loadKubeconfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}
