// Package tenants has two tenants share a Foresail on a real control plane: the users of one
// namespace try to read and to change what is predicted for another, and to leave nothing to it.
package tenants

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/monitoring"
	"github.com/foresail/foresail/test/env/ports"
	"github.com/foresail/foresail/test/env/stack"
)

// patience is how long anything is waited for, on a crowded machine.
const patience = 3 * time.Minute

var (
	measured = foresail.DefineFlags()
	suite    context.Context // of all tests
	shared   *stack.Stack
	// Where the operator's programs are to be, which Foresail knows when it starts.
	prometheusPort, slowPort int
	receiver                 string
	agent                    = monitoring.BasicAuth{Username: "agent", Password: "of the operator"}
)

func TestMain(m *testing.M) {
	controlplane.Main(func(ctx context.Context) (int, error) { return runWithStack(ctx, m) })
}

func runWithStack(ctx context.Context, m *testing.M) (code int, err error) {
	suite = ctx
	shared, err = stack.Start(ctx, stack.Options{Progress: os.Stderr, ReadyDelay: time.Second, Seed: 1})
	if err != nil {
		return 1, err
	}
	defer func() {
		if closed := shared.Close(); err == nil {
			err = closed
		}
	}()
	if prometheusPort, err = ports.Take(); err != nil {
		return 1, err
	}
	if slowPort, err = ports.Take(); err != nil {
		return 1, err
	}
	if receiver, err = ports.TakeAddress(); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// startForesail runs Foresail until a test ends, with the operator's Prometheus servers and a
// receiver of its agent's samples, and registers it.
func startForesail(t *testing.T, name string, env []string, more ...string) *foresail.Process {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(agent.Password), bcrypt.MinCost)
	require.NoError(t, err)
	flags, port, err := foresail.AdapterFlags(t.Context(), shared.Cluster)
	require.NoError(t, err)
	binary, err := measured.Build(t.Context(), os.Stderr)
	require.NoError(t, err)
	p := foresail.StartFor(t, foresail.Options{
		Name: name, Binary: binary, Dir: shared.Cluster.Dir(), Env: env,
		Flags: append(append(flags, more...),
			"--prometheus-config-file", file(t, map[string]any{"servers": []map[string]string{
				{"address": "http://" + ports.Loopback(prometheusPort)},
				{"address": "http://" + ports.Loopback(slowPort)},
			}}),
			"--remote-write-address", receiver,
			"--remote-write-web-config-file", file(t,
				map[string]any{"basic_auth_users": map[string]string{agent.Username: string(hash)}}),
		),
	})
	require.NoError(t, foresail.Register(t.Context(), shared.Cluster, port))
	return p
}

func file(t *testing.T, content map[string]any) string {
	t.Helper()
	encoded, err := yaml.Marshal(content)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "file.yaml")
	require.NoError(t, os.WriteFile(path, encoded, 0o600))
	return path
}

// tenant is who may edit one namespace, and read its external metrics.
type tenant struct {
	namespace string
	config    *rest.Config
	client    client.Client
	metrics   externalmetrics.ExternalMetricsClient
}

func newTenant(t *testing.T, namespace string) *tenant {
	t.Helper()
	user := "user-of-" + namespace
	_, err := shared.Cluster.Apply(t.Context(), fmt.Appendf(nil, `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tenant, namespace: %[1]s}
rules:
- {apiGroups: [external.metrics.k8s.io], resources: ["*"], verbs: [get, list]}
- {apiGroups: [example.com], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}
subjects: [{kind: User, name: %[2]s}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: User, name: %[2]s}]
`, namespace, user))
	require.NoError(t, err)
	n := &tenant{namespace: namespace}
	n.config, err = shared.Cluster.RESTConfigFor(user)
	require.NoError(t, err)
	n.config.QPS, n.config.Burst = 200, 400
	n.client, err = foresail.NewClient(n.config)
	require.NoError(t, err)
	n.metrics, err = externalmetrics.NewForConfig(n.config)
	require.NoError(t, err)
	return n
}

// create creates objects as the tenant, in its namespace unless they name another. It waits until
// RBAC has come to know the tenant.
func (n *tenant) create(t *testing.T, manifest string) {
	t.Helper()
	var err error
	require.Eventually(t, func() bool {
		err = n.tryCreate(t.Context(), manifest)
		return !apierrors.IsForbidden(err)
	}, patience, 200*time.Millisecond)
	require.NoError(t, err)
}

func (n *tenant) tryCreate(ctx context.Context, manifest string) error {
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		return err
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(n.namespace)
	}
	return n.client.Create(ctx, &object)
}

// read reads predicted_load_total of a PredictedMetric as the tenant.
func (n *tenant) read(name string) (float64, error) {
	return stack.ReadMetric(n.metrics, stack.App{Namespace: n.namespace, Name: name, Metric: "predicted_load_total"})
}

// deployment has pods with a metrics port that the test answers at.
func deployment(name string, replicas int) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {replicas: %[2]d, selector: {matchLabels: {app: %[1]s}},
  template: {metadata: {labels: {app: %[1]s}}, spec: %[3]s}}}`, name, replicas, podSpec)
}

const podSpec = `{terminationGracePeriodSeconds: 1, containers: [{name: app, image: example.com/app, ports: [{name: metrics, containerPort: 9090}]}]}`

// predictedMetric forecasts what a source, given as JSON, says of a Deployment.
func predictedMetric(name, target, source, more string) string {
	return fmt.Sprintf(`{apiVersion: foresail.dev/v1alpha1, kind: PredictedMetric, metadata: {name: %s}, spec: {
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}, source: %s, threshold: 700m%s}}`, name, target, source, more)
}

// ready waits until so many pods with a label are Ready.
func (n *tenant) ready(t *testing.T, app string, replicas int) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		found, err := shared.Cluster.Client().AppsV1().Deployments(n.namespace).Get(t.Context(), app, getOptions)
		require.NoError(c, err)
		assert.EqualValues(c, replicas, found.Status.ReadyReplicas)
	}, patience, 200*time.Millisecond, "%d pods of %s are Ready", replicas, app)
}
