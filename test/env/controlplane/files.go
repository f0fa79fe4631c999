package controlplane

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
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
	if c.ca, err = NewAuthority("kubernetes-ca"); err != nil {
		return err
	}
	if c.frontProxyCA, err = NewAuthority("front-proxy-ca"); err != nil {
		return err
	}
	if err := c.writeCertificates(); err != nil {
		return err
	}
	if err := c.writeComponentKubeconfigs(); err != nil {
		return err
	}
	if c.options.AuditPolicy != nil {
		if err := os.WriteFile(c.file("audit-policy.yaml"), c.options.AuditPolicy, 0o600); err != nil {
			return err
		}
	}
	if err := writeKwokConfig(c.file("kwok.yaml"), c.options.Binaries, c.options.ReadyDelay,
		c.options.Stages); err != nil {
		return err
	}
	return writeSchedulerConfig(c.file("kube-scheduler.yaml"), c.file("kube-scheduler.kubeconfig"),
		c.options.SchedulerConfig)
}

func (c *Cluster) writeCertificates() error {
	apiServer, err := c.ca.Server("localhost", "127.0.0.1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "10.96.0.1")
	if err != nil {
		return err
	}
	loopback, err := c.ca.Server("localhost", "127.0.0.1")
	if err != nil {
		return err
	}
	frontProxy, err := c.frontProxyCA.Client(frontProxyUser)
	if err != nil {
		return err
	}
	pairs := map[string]KeyPair{
		"ca":             c.ca.KeyPair,
		"front-proxy-ca": c.frontProxyCA.KeyPair,
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
		pair, err := c.ca.Client(id.user, id.groups...)
		if err != nil {
			return err
		}
		if err := writeKubeconfig(id.path, c.URL(), c.ca.Cert, certificateUser(pair)); err != nil {
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

// loadKubeconfig turns a kubeconfig into a client's configuration without client-side rate limits.
func loadKubeconfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// writeKubeconfig writes a kubeconfig with a single user and everything it needs inline.
func writeKubeconfig(path, server string, ca []byte, user *api.AuthInfo) error {
	const name = "controlplane"
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = user
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}

func certificateUser(pair KeyPair) *api.AuthInfo {
	return &api.AuthInfo{ClientCertificateData: pair.Cert, ClientKeyData: pair.Key}
}

func tokenUser(token string) *api.AuthInfo {
	return &api.AuthInfo{Token: token}
}

// writeSchedulerConfig completes a KubeSchedulerConfiguration, or makes a plain one, with what this
// cluster decides: how the API server is reached, and that there is no other scheduler to elect a
// leader among.
func writeSchedulerConfig(path, kubeconfig string, config []byte) error {
	document := map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1",
		"kind":       "KubeSchedulerConfiguration",
	}
	if err := yaml.Unmarshal(config, &document); err != nil {
		return fmt.Errorf("Options.SchedulerConfig: want one KubeSchedulerConfiguration document: %w", err)
	}
	connection, _ := document["clientConnection"].(map[string]any)
	if connection == nil {
		connection = map[string]any{}
	}
	connection["kubeconfig"] = kubeconfig
	document["clientConnection"] = connection
	document["leaderElection"] = map[string]any{"leaderElect": false}
	data, err := yaml.Marshal(document)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// ReadyDelayAnnotation on a pod says how long after its start the pod becomes ready, as a Go
// duration such as "20s", in the place of [Options.ReadyDelay]. A pod with a value that is no
// duration stays Pending; kwok logs why.
const ReadyDelayAnnotation = "test.foresail.dev/ready-delay"

//go:embed stages/*.yaml
var ownStages embed.FS

// writeKwokConfig joins kwok's own stages, those of this package and extra ones into one configuration file.
func writeKwokConfig(path string, binaries Binaries, readyDelay time.Duration, extra []byte) error {
	var docs [][]byte
	for _, stage := range kwokStages {
		doc, err := os.ReadFile(filepath.Join(binaries.Dir, "stages", filepath.Base(stage)))
		if err != nil {
			return fmt.Errorf("kwok stage: %w", err)
		}
		docs = append(docs, doc)
	}
	for _, name := range []string{"stages/pod-start.yaml", "stages/pod-ready.yaml"} {
		doc, err := ownStages.ReadFile(name)
		if err != nil {
			return err
		}
		docs = append(docs, bytes.ReplaceAll(doc, []byte("${READY_DELAY}"), []byte(readyDelay.String())))
	}
	if len(extra) > 0 {
		docs = append(docs, extra)
	}
	return os.WriteFile(path, bytes.Join(docs, []byte("\n---\n")), 0o644)
}
