package inspect

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
	"github.com/foresail/foresail/nodepool/explain"
	"github.com/foresail/foresail/test/env/controlplane"
)

// TestExplain takes one API server through what can be asked of it; its steps follow each other.
func TestExplain(t *testing.T) {
	cluster := controlplane.BorrowFor(t)
	explained := func(args ...string) (int, string, string) {
		return foresail(t, "", append([]string{"explain"}, append(args, "--kubeconfig", cluster.Kubeconfig())...)...)
	}

	code, _, stderr := explained("workerpool", "workers")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr,
		"the cluster does not know WorkerPools: kubectl apply -k manifests/crds makes it know them")

	objects := clitest.WithDefinitions(t, cluster, "../../../manifests")
	code, _, stderr = explained("wp", "workers")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, `there is no WorkerPool "workers", nor any other`)

	pool := clitest.NewPool(t, objects)
	code, _, stderr = explained("workerpool", "wrokers")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, `there is no WorkerPool "wrokers": must be one of workers`)

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1",
		Labels: map[string]string{"foresail.dev/pool": pool.Name}}}
	_, err := cluster.Client().CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	require.NoError(t, err)

	code, stdout, stderr := explained("workerpool", "workers", "--last", "1")
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, stdout, "WorkerPool workers")
	assert.Contains(t, stdout, "because three pods are pending")
	assert.Contains(t, stdout, "host_1")
	assert.NotContains(t, stdout, "nothing to do", "one decision was asked for")

	code, stdout, stderr = explained("workerpool", "workers", "-o", "json", "--last", "0")
	require.Equal(t, cli.ExitDone, code, stderr)
	var e explain.Explanation
	require.NoError(t, json.Unmarshal([]byte(stdout), &e))
	assert.Len(t, e.Status.Decisions, 2)
	assert.Equal(t, "host_1", e.Journal.Owner)
	assert.Nil(t, e.Status.Journal)
	require.Len(t, e.Nodes, 1)
	assert.Equal(t, "node-1", e.Nodes[0].Name)
	assert.Equal(t, int32(10), e.Spec.Max)

	code, _, stderr = explained("pm", "checkout", "-n", "shop")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, `there is no PredictedMetric "checkout" in namespace shop, nor any other`)
	explainOneMetric(t, objects, explained)
	nameAsKubectlDoes(t, cluster, objects, explained)
	followMetric(t, objects, cluster.Kubeconfig())
}

// nameAsKubectlDoes names the PredictedMetric of explainOneMetric by its type, and with the
// namespace of the kubeconfig, or leaves that out.
func nameAsKubectlDoes(t *testing.T, cluster *controlplane.Cluster, objects client.Client,
	explained func(...string) (int, string, string)) {
	t.Helper()
	for _, args := range [][]string{
		{"pm/checkout"}, {"pm/checkout", "-n", "default"}, {"-n", "default", "pm/checkout"}, {"pm", "pm/checkout"},
		{"predictedmetric.foresail.dev/checkout"}, {"pm", "predictedmetrics.foresail.dev/checkout", "-n", "default"},
	} {
		code, stdout, stderr := explained(args...)
		require.Equal(t, cli.ExitDone, code, stderr)
		assert.Contains(t, stdout, "PredictedMetric default/checkout, ")
	}
	code, _, stderr := explained("wp/workers")
	assert.Equal(t, cli.ExitDone, code, stderr)
	code, _, stderr = foresail(t, "", "hpa", "pm/checkout", "--max", "9", "--kubeconfig", cluster.Kubeconfig())
	assert.Equal(t, cli.ExitDone, code, stderr)

	ctx := t.Context()
	for _, namespace := range []string{"shop", "web"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		_, err := cluster.Client().CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	code, _, stderr = explained("pm", "checkout", "-n", "shop")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr,
		`there is no PredictedMetric "checkout" in namespace shop; namespace default has one: add -n default`)
	pm := &v1alpha1.PredictedMetric{}
	require.NoError(t, objects.Get(ctx, client.ObjectKey{Namespace: "default", Name: "checkout"}, pm))
	pm.ObjectMeta = metav1.ObjectMeta{Namespace: "web", Name: "checkout"}
	require.NoError(t, objects.Create(ctx, pm))
	_, _, stderr = explained("pm", "checkout", "-n", "shop")
	assert.Contains(t, stderr, "; the namespaces default, web have one each: add -n NAMESPACE")

	config, err := os.ReadFile(cluster.Kubeconfig())
	require.NoError(t, err)
	var written map[string]any
	require.NoError(t, yaml.Unmarshal(config, &written))
	contexts, _ := written["contexts"].([]any)
	for _, c := range contexts {
		c.(map[string]any)["context"].(map[string]any)["namespace"] = "web"
	}
	inWeb, err := yaml.Marshal(written)
	require.NoError(t, err)
	code, stdout, stderr := foresail(t, "", "explain", "pm", "checkout", "--kubeconfig",
		clitest.File(t, "kubeconfig", string(inWeb)))
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, stdout, "PredictedMetric web/checkout, ")
}

func explainOneMetric(t *testing.T, objects client.Client, explained func(...string) (int, string, string)) {
	t.Helper()
	pm := &v1alpha1.PredictedMetric{}
	example, err := os.ReadFile("../../../docs/examples/nodejs/predictedmetric.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(example, pm))
	pm.Namespace, pm.Name = "default", "checkout"
	require.NoError(t, objects.Create(t.Context(), pm))
	code, stdout, stderr := explained("pm", "checkout")
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, stdout, "PredictedMetric default/checkout, ")
	assert.Contains(t, stdout, pm.Spec.ScaleTargetRef.Kind+" "+pm.Spec.ScaleTargetRef.Name)
	assert.Contains(t, stdout, "No decision yet")

	pm.Status.LastDecision = &v1alpha1.LastDecision{Time: metav1.Now(), Direction: "Rising", Action: "ScaleUp",
		Message: "the load rises"}
	pm.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Forecasting",
		Message: "all is read", LastTransitionTime: metav1.Now()}}
	require.NoError(t, objects.Status().Update(t.Context(), pm))
	code, stdout, stderr = explained("predictedmetric", "checkout", "--namespace", "default")
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, stdout, "the load rises")
	assert.Contains(t, stdout, "True, Forecasting: all is read")
	code, stdout, stderr = explained("predictedmetric", "checkout", "--output", "json")
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, stdout, `"message": "the load rises"`)
}

// followMetric watches the PredictedMetric of explainOneMetric through one change of it, until it
// is interrupted.
func followMetric(t *testing.T, objects client.Client, kubeconfig string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	documents, stdout := io.Pipe()
	code := make(chan int, 1)
	go func() {
		args := []string{"explain", "pm", "checkout", "--watch", "-o", "json", "--kubeconfig", kubeconfig}
		code <- cli.Execute(ctx, newRoot(time.Now), args, strings.NewReader(""), stdout, io.Discard)
		_ = stdout.Close()
	}()
	lines := bufio.NewScanner(documents)
	for _, message := range []string{"the load rises", "the load falls"} {
		require.True(t, lines.Scan(), "a document that says %q", message)
		var seen struct {
			Status v1alpha1.PredictedMetricStatus
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &seen))
		assert.Equal(t, message, seen.Status.LastDecision.Message)
		patch := client.RawPatch(types.MergePatchType,
			[]byte(`{"status":{"lastDecision":{"message":"the load falls"}}}`))
		pm := &v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "checkout"}}
		require.NoError(t, objects.Status().Patch(t.Context(), pm, patch))
	}
	interrupt()
	assert.Equal(t, cli.ExitDone, <-code)
	assert.False(t, lines.Scan(), "nothing else has changed")
}

func TestTypeAndNameAreTwoArguments(t *testing.T) {
	for line, want := range map[string]string{
		"explain pm/checkout -n shop":                      "explain predictedmetric checkout -n shop",
		"explain -n shop --watch pods/checkout":            "explain pod checkout -n shop --watch",
		"explain -o json workerpools.foresail.dev/workers": "explain workerpool workers -o json",
		"cost wp/workers --since 28d":                      "cost workerpool workers --since 28d",
		"explain pm checkout":                              "explain pm checkout",
		"cost --prices wp/prices.yaml wp/workers":          "cost workerpool workers --prices wp/prices.yaml",
		"explain --help":                                   "explain --help",
		"hpa pm/checkout":                                  "hpa pm/checkout",
		"dashboard --kubeconfig /tmp/pm/x":                 "dashboard --kubeconfig /tmp/pm/x",
	} {
		split, _, err := cli.SplitType(newRoot(time.Now), strings.Fields(line))
		assert.NoError(t, err)
		assert.Equal(t, want, strings.Join(split, " "))
	}
}

func TestExplainRefusesUnusableArguments(t *testing.T) {
	for args, want := range map[string]string{
		"explain workerpol x":                        `unknown command "workerpol": must be one of pod, predictedmetric, workerpool`,
		"explain checkout -n shop":                   `unknown command "checkout": must be one of pod, predictedmetric, workerpool`,
		"explain deploy/checkout -n shop":            `unknown command "deploy/checkout": must be one of pod, predictedmetric, workerpool`,
		"explain pm pod/checkout -n shop":            `"pod/checkout": must be the name of a PredictedMetric, such as NAME or predictedmetric/NAME`,
		"explain pm/":                                `"": must be the name of a PredictedMetric`,
		"hpa wp/checkout":                            `"wp/checkout": must be the name of a PredictedMetric`,
		"explain workerpool":                         "the name of a WorkerPool is missing: foresail explain workerpool NAME",
		"explain workerpool a b":                     `unexpected argument "b": foresail explain workerpool takes one name`,
		"explain pm":                                 "the name of a PredictedMetric is missing",
		"explain workerpool a --last -1":             "--last: -1: must be 0 or more",
		"explain workerpool a -o yaml":               `--output: "yaml": must be table or json`,
		"explain workerpool a --kubeconfig /nowhere": `--kubeconfig: "/nowhere": must be a readable kubeconfig file`,
	} {
		code, _, stderr := foresail(t, "", strings.Fields(args)...)
		assert.Equal(t, cli.ExitUsage, code, args)
		assert.Contains(t, stderr, want, args)
	}
}
