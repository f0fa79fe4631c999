package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/crypto/bcrypt"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/test/env/monitoring"
	"github.com/foresail/foresail/test/env/ports"
	"github.com/foresail/foresail/test/env/stack"
)

// receiver is an address at which an adapter takes samples of one user by remote write. It outlives
// the adapter, so that senders find the next one.
type receiver struct {
	address, webConfig string
	user               monitoring.BasicAuth
}

func newReceiver(name string) (receiver, error) {
	r := receiver{user: monitoring.BasicAuth{Username: "agent", Password: "secret of " + name}}
	var err error
	if r.address, err = ports.TakeAddress(); err != nil {
		return r, err
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(r.user.Password), bcrypt.MinCost)
	if err != nil {
		return r, err
	}
	content, err := yaml.Marshal(map[string]any{"basic_auth_users": map[string]string{r.user.Username: string(hash)}})
	if err != nil {
		return r, err
	}
	r.webConfig = filepath.Join(shared.Cluster.Dir(), name+"-web.yml")
	return r, os.WriteFile(r.webConfig, content, 0o600)
}

// flags are those of the adapter that takes what is sent here.
func (r receiver) flags() []string {
	return []string{"--remote-write-address=" + r.address, "--remote-write-web-config-file=" + r.webConfig}
}

func (r receiver) url() string { return fmt.Sprintf("http://%s/api/v1/write", r.address) }

// agent is an agent that scrapes an application once a second and sends here what it finds, as a user.
func (r receiver) agent(name string, a stack.App, user *monitoring.BasicAuth) monitoring.PrometheusOptions {
	return monitoring.PrometheusOptions{
		Name: name, Agent: true, Selector: a.Selector(),
		RemoteWrite: []monitoring.RemoteWrite{{URL: r.url(), Version: 2, BatchSendDeadline: time.Second,
			BasicAuth: user}},
	}
}
