package inspect

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/adapter/keep/hpa"
	"github.com/foresail/foresail/adapter/keep/keeptest"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
	"github.com/foresail/foresail/test/env/controlplane"
)

const exampleMetric = "../../../manifests/examples/predictedmetric.yaml"

// TestHPAOfACluster prints the HPA of a PredictedMetric, and has a real API server take what
// spec.autoscaler makes: its defaults are no drift, and what is printed is what is created.
func TestHPAOfACluster(t *testing.T) {
	cluster := controlplane.BorrowFor(t)
	clitest.WithDefinitions(t, cluster, "../../../manifests")
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	objects, err := client.NewWithWatch(cluster.RESTConfig(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	editorsMayWriteHPAs(t, objects)

	pm := &v1alpha1.PredictedMetric{}
	example, err := os.ReadFile(exampleMetric)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(example, pm))
	pm.Namespace, pm.Spec.MaxReplicas = "default", nil
	require.NoError(t, objects.Create(t.Context(), pm))
	printed := func(args ...string) (int, string, string) {
		return foresail(t, "", append([]string{"hpa", "--kubeconfig", cluster.Kubeconfig()}, args...)...)
	}
	code, _, stderr := printed("chekcout", "-n", "default")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, `there is no PredictedMetric "chekcout" in namespace default: must be one of checkout`)
	code, _, stderr = printed("checkout")
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr,
		"spec.maxReplicas: absent: must be the most replicas that the HPA may set, such as 20; or --max")
	code, manifest, stderr := printed("checkout", "--max", "12")
	require.Equal(t, cli.ExitDone, code, stderr)

	pm.Spec.MaxReplicas, pm.Spec.Autoscaler = new(int32(12)), &v1alpha1.Autoscaler{}
	require.NoError(t, objects.Update(t.Context(), pm))
	meta.SetStatusCondition(&pm.Status.Conditions,
		metav1.Condition{Type: v1alpha1.ConditionAutoscalerReady, Status: metav1.ConditionUnknown, Reason: "Pending"})
	require.NoError(t, objects.Status().Update(t.Context(), pm))
	c := keepHPAs(t, objects)
	var created autoscalingv2.HorizontalPodAutoscaler
	eventually := func(what string, holds func() bool) {
		t.Helper()
		require.Eventually(t, holds, time.Minute, 100*time.Millisecond, what)
	}
	condition := func() metav1.Condition {
		status := pm.Status.DeepCopy()
		c.AddStatus(pm, status, time.Now())
		return *meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAutoscalerReady)
	}
	ready := func() bool { return condition().Reason == "AsRecommended" }
	eventually("an HPA", ready)
	require.NoError(t, objects.Get(t.Context(), client.ObjectKeyFromObject(pm), &created))
	assert.NotContains(t, condition().Message, "tolerance", "this API server has it")
	assert.Equal(t, "foresail", created.ManagedFields[0].Manager)

	var byHand autoscalingv2.HorizontalPodAutoscaler
	require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), &byHand))
	byHand.Name = "by-hand"
	require.NoError(t, objects.Create(t.Context(), &byHand))
	assert.True(t, equality.Semantic.DeepEqual(created.Spec, byHand.Spec), "%+v\n%+v", created.Spec, byHand.Spec)
	eventually("the second one is reported", func() bool { return !ready() })
	require.NoError(t, objects.Delete(t.Context(), &byHand))
	eventually("it has gone", ready)

	version := created.ResourceVersion
	require.NoError(t, objects.Get(t.Context(), client.ObjectKeyFromObject(pm), &created))
	assert.Equal(t, version, created.ResourceVersion, "what the API server adds is no drift")
	created.Spec.Behavior.ScaleUp.Tolerance = nil
	require.NoError(t, objects.Update(t.Context(), &created))
	eventually("the change is undone", func() bool {
		require.NoError(t, objects.Get(t.Context(), client.ObjectKeyFromObject(pm), &created))
		return created.Spec.Behavior.ScaleUp.Tolerance != nil
	})
	require.NoError(t, objects.Get(t.Context(), client.ObjectKeyFromObject(pm), pm))
	pm.Spec.Autoscaler = nil
	require.NoError(t, objects.Update(t.Context(), pm))
	eventually("the HPA has gone", func() bool {
		return apierrors.IsNotFound(objects.Get(t.Context(), client.ObjectKeyFromObject(pm), &created))
	})
}

// editorsMayWriteHPAs shows that whom foresail-edit lets write PredictedMetrics gains nothing by
// spec.autoscaler.
func editorsMayWriteHPAs(t *testing.T, objects client.Client) {
	t.Helper()
	var edit rbacv1.ClusterRole
	require.Eventually(t, func() bool { // the API server makes its roles after it has started
		return objects.Get(t.Context(), client.ObjectKey{Name: "system:aggregate-to-edit"}, &edit) == nil
	}, time.Minute, 100*time.Millisecond)
	assert.True(t, slices.ContainsFunc(edit.Rules, func(r rbacv1.PolicyRule) bool {
		writes := []string{"create", "delete", "patch", "update"}
		return slices.Contains(r.APIGroups, "autoscaling") &&
			slices.Contains(r.Resources, "horizontalpodautoscalers") &&
			!slices.ContainsFunc(writes, func(verb string) bool { return !slices.Contains(r.Verbs, verb) })
	}), "%+v", edit.Rules)
}

// keepHPAs runs a Keeper of HPAs until the test ends.
func keepHPAs(t *testing.T, objects client.WithWatch) *hpa.Keeper {
	t.Helper()
	c := hpa.New(keep.Options{Metrics: keeptest.Metrics(t, objects), Client: objects,
		Events: events.NewFakeRecorder(100), Now: time.Now})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, c.Start(ctx)) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return c
}

func TestHPAOfAFile(t *testing.T) {
	code, fromFile, stderr := foresail(t, "", "hpa", "-f", exampleMetric, "-n", "shop")
	require.Equal(t, cli.ExitDone, code, stderr)
	var hpa autoscalingv2.HorizontalPodAutoscaler
	require.NoError(t, yaml.UnmarshalStrict([]byte(fromFile), &hpa))
	assert.Equal(t, "shop", hpa.Namespace)
	assert.Equal(t, "checkout", hpa.Spec.ScaleTargetRef.Name)
	assert.EqualValues(t, 20, hpa.Spec.MaxReplicas)
	assert.NotContains(t, fromFile, "status")
	assert.NotContains(t, fromFile, "null")

	example, err := os.ReadFile(exampleMetric)
	require.NoError(t, err)
	code, piped, stderr := foresail(t, string(example), "hpa", "--filename", "-", "--namespace", "shop")
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Equal(t, fromFile, piped)
}

// Whoever keeps the HPA gives it the widest bounds: the metric keeps to those of the moment.
func TestHPAOfSchedules(t *testing.T) {
	code, printed, stderr := foresail(t, "", "hpa", "-f", "../../../manifests/examples/predictedmetric-schedules.yaml")
	require.Equal(t, cli.ExitDone, code, stderr)
	var hpa autoscalingv2.HorizontalPodAutoscaler
	require.NoError(t, yaml.UnmarshalStrict([]byte(printed), &hpa))
	assert.EqualValues(t, 4, *hpa.Spec.MinReplicas)
	assert.EqualValues(t, 100, hpa.Spec.MaxReplicas)
	assert.Contains(t, printed,
		"# Its bounds are the widest of spec and spec.schedules: the metric keeps to those of the moment.\n")
}

func TestHPAOfADryRun(t *testing.T) {
	code, printed, stderr := foresail(t, "", "hpa", "-f", "../../../api/v1alpha1/testdata/valid/dryrun.yaml")
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, printed,
		"# It keeps its replicas while spec.dryRun of the PredictedMetric is true: it reads an error.\n")
}

// The example in the manifests is what is printed, but for its comments.
func TestHPAOfAnObjectMetric(t *testing.T) {
	code, printed, stderr := foresail(t, "", "hpa", "-f", exampleMetric, "--metric-type=Object")
	require.Equal(t, cli.ExitDone, code, stderr)
	var hpa, example autoscalingv2.HorizontalPodAutoscaler
	require.NoError(t, yaml.UnmarshalStrict([]byte(printed), &hpa))
	text, err := os.ReadFile("../../../manifests/examples/hpa-object-metric.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, &example))
	assert.True(t, equality.Semantic.DeepEqual(example, hpa), "%+v\n%+v", example, hpa)
}

func TestHPARefusesUnusableArguments(t *testing.T) {
	spec := clitest.File(t, "spec.yaml",
		"scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}\nsource: {resource: {name: cpu}}\nthreshold: 700m\n")
	for args, want := range map[string]string{
		"hpa":                       "the name of a PredictedMetric is missing: foresail hpa NAME",
		"hpa a b":                   `unexpected argument "b": foresail hpa takes one name`,
		"hpa a -f " + exampleMetric: `unexpected argument "a": foresail hpa takes flags only`,
		"hpa -f /nowhere":           "--filename /nowhere: ",
		"hpa -f " + spec:            "metadata.name is missing: the HPA selects the metric by it",
		"hpa a --max -1":            "--max: -1: must be 0 or more",
		"hpa -f ../../../manifests/base/rbac.yaml": "must be one spec or one PredictedMetric",
		"hpa a --kubeconfig /nowhere":              `--kubeconfig: "/nowhere": must be a readable kubeconfig file`,
		"hpa a --metric-type Pods":                 `--metric-type: "Pods": must be External or Object`,
		"hpa a --max many":                         `--max: "many": must be a whole number`,
	} {
		code, _, stderr := foresail(t, "", strings.Fields(args)...)
		assert.Equal(t, cli.ExitUsage, code, args)
		assert.Contains(t, stderr, want, args)
	}
}
