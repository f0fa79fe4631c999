package inspect

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
	"github.com/foresail/foresail/test/env/controlplane"
)

var rolloutTime = time.Date(2026, time.November, 24, 5, 6, 7, 8, time.FixedZone("CET", 3600))

// TestRollout takes one API server through a roll-out; its steps follow each other.
func TestRollout(t *testing.T) {
	cluster := controlplane.BorrowFor(t)
	kubeconfig := cluster.Kubeconfig()
	rollout := func(args ...string) (int, string, string) {
		return foresailAt(t, func() time.Time { return rolloutTime }, "",
			append([]string{"rollout", "--kubeconfig", kubeconfig}, args...)...)
	}
	code, _, stderr := rollout("restart", "workers")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr,
		"the cluster does not know WorkerPools: kubectl apply -k manifests/crds makes it know them")

	objects := clitest.WithDefinitions(t, cluster, "../../../manifests")
	for _, args := range [][]string{{"restart", "workers"}, {"pause", "workers"}, {"resume", "workers"},
		{"abort", "workers"}, {"status", "workers"}} {
		code, _, stderr = rollout(args...)
		assert.Equal(t, cli.ExitFailed, code, args)
		assert.Contains(t, stderr, `there is no WorkerPool "workers", nor any other`, args)
	}
	pool := clitest.NewPool(t, objects)
	spec := func() v1alpha1.PoolDisruption {
		t.Helper()
		require.NoError(t, objects.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
		return pool.Spec.Disruption
	}
	report := func(outdated int32, message string) {
		t.Helper()
		spec()
		pool.Status.ObservedGeneration = pool.Generation
		pool.Status.Rollout = &v1alpha1.PoolRollout{Outdated: outdated, Message: message}
		require.NoError(t, objects.Status().Update(t.Context(), pool))
	}
	succeeds := func(want string, args ...string) {
		t.Helper()
		code, stdout, stderr := rollout(args...)
		require.Equal(t, cli.ExitDone, code, stderr)
		assert.Equal(t, want, stdout)
	}
	before := spec()
	require.NotEmpty(t, before.Budgets, "the default")

	code, _, stderr = rollout("restart", "wrokers")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, `there is no WorkerPool "wrokers": must be one of workers`)

	succeeds("workerpool/workers paused: nodes that are drained for being outdated and are not empty yet take pods again\nOutdated workers are replaced only after foresail rollout resume workers\n", "pause", "workers")
	assert.True(t, spec().Paused)
	succeeds(`workerpool/workers restarted: workers launched before 2026-11-24T04:06:07Z are replaced, new ones first, within spec.disruption.budgets
To follow it: foresail rollout status workers
`, "restart", "workerpool/workers")
	after := spec()
	assert.False(t, after.Paused)
	assert.True(t, after.ReplaceBefore.Time.Equal(rolloutTime.Truncate(time.Second)), "%s", after.ReplaceBefore)
	assert.Equal(t, before.Budgets, after.Budgets)
	assert.True(t, slices.ContainsFunc(pool.ManagedFields,
		func(f metav1.ManagedFieldsEntry) bool { return f.Manager == "foresail-rollout" }), "%v", pool.ManagedFields)

	unknown := `workerpool/workers: not known: the pool has not reported on its newest spec yet, or cannot read its workers (foresail explain workerpool workers)
Workers launched before 2026-11-24T04:06:07Z are replaced (spec.disruption.replaceBefore)
`
	succeeds(unknown, "status", "workers")
	report(2, "the budget nodes 0 holds them")
	succeeds(`workerpool/workers: 2 outdated workers are still to be replaced
the budget nodes 0 holds them
Workers launched before 2026-11-24T04:06:07Z are replaced (spec.disruption.replaceBefore)
`, "status", "wp/workers")
	code, stdout, stderr := rollout("status", "workers", "-o", "json")
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.JSONEq(t, `{"name":"workers","done":false,"outdated":2,"message":"the budget nodes 0 holds them","paused":false,"dryRun":false,"replaceBefore":"2026-11-24T04:06:07Z"}`, stdout)

	succeeds(`workerpool/workers aborted: nodes that are drained for being outdated and are not empty yet take pods again
It is paused: workers that drifted or expired are replaced only after foresail rollout resume workers
`, "abort", "workers")
	after = spec()
	assert.True(t, after.Paused)
	assert.Nil(t, after.ReplaceBefore)
	code, stdout, stderr = rollout("status", "workers", "-o", "json")
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.JSONEq(t, `{"name":"workers","done":false,"paused":true,"dryRun":false}`, stdout,
		"what was reported is about another spec")
	report(1, "")
	succeeds(`workerpool/workers: 1 outdated worker is still to be replaced
Paused: outdated workers are replaced only after foresail rollout resume workers
`, "status", "workers")

	succeeds("workerpool/workers resumed: outdated workers are replaced, within spec.disruption.budgets\n", "resume",
		"workers")
	report(0, "")
	succeeds("workerpool/workers: no worker is outdated\n", "status", "workers")
	pool.Status.Rollout = &v1alpha1.PoolRollout{Unknown: 2,
		Message: "whether 2 workers must be replaced is unknown: no permission"}
	require.NoError(t, objects.Status().Update(t.Context(), pool))
	succeeds("workerpool/workers: not known: workers may be outdated\nwhether 2 workers must be replaced is unknown: no permission\n", "status", "workers")

	pool.Spec.DryRun = true
	require.NoError(t, objects.Update(t.Context(), pool))
	succeeds("workerpool/workers resumed: outdated workers are replaced, within spec.disruption.budgets\n"+inDryRun+"\n", "resume", "workers")
	report(0, "")
	succeeds("workerpool/workers: no worker is outdated\n"+inDryRun+"\n", "status", "workers")

	rolloutRights(t, cluster, objects)
	olderDefinition(t, cluster, objects)
	code, _, stderr = rollout("restart", "workers")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr,
		"the cluster does not know spec.disruption of WorkerPools: kubectl apply -k manifests/crds makes it know it")
}

// rolloutRights shows that the rights of the documentation are enough, and that a lack of them is named.
func rolloutRights(t *testing.T, cluster *controlplane.Cluster, objects client.Client) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
	require.NoError(t, err)
	for _, info := range config.AuthInfos {
		info.Impersonate = "operator"
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
	code, _, stderr := foresail(t, "", "rollout", "pause", "workers", "--kubeconfig", kubeconfig)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, "change WorkerPool workers: ")
	assert.Contains(t, stderr, `User "operator" cannot patch resource "workerpools"`)
	assert.Contains(t, stderr, "it needs the verb patch on workerpools of foresail.dev")

	rights := cluster.Client().RbacV1()
	_, err = rights.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "rollout"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"foresail.dev"}, Resources: []string{"workerpools"},
			Verbs: []string{"get", "patch"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = rights.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "rollout"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "rollout"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "operator"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		code, _, stderr = foresail(t, "", "rollout", "pause", "workers", "--kubeconfig", kubeconfig)
		return code == cli.ExitDone
	}, time.Minute, 100*time.Millisecond, "%s", stderr)
	code, _, stderr = foresail(t, "", "rollout", "status", "workers", "--kubeconfig", kubeconfig)
	assert.Equal(t, cli.ExitDone, code, stderr)
	var pool v1alpha1.WorkerPool
	require.NoError(t, objects.Get(t.Context(), client.ObjectKey{Name: "workers"}, &pool))
	assert.True(t, pool.Spec.Disruption.Paused)
}

// olderDefinition takes spec.disruption from the CRD, and waits until the API server goes by that.
func olderDefinition(t *testing.T, cluster *controlplane.Cluster, objects client.Client) {
	t.Helper()
	text, err := os.ReadFile("../../../manifests/crds/foresail.dev_workerpools.yaml")
	require.NoError(t, err)
	definition := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict(text, definition))
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	require.Contains(t, spec.Properties, "disruption")
	delete(spec.Properties, "disruption")
	text, err = yaml.Marshal(definition)
	require.NoError(t, err)
	_, err = cluster.Apply(t.Context(), text)
	require.NoError(t, err)
	// No condition tells when the API server validates by a changed definition: it is asked without
	// changing anything.
	strict := client.WithFieldValidation(objects, metav1.FieldValidationStrict)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"disruption":{"paused":true}}}`))
	require.Eventually(t, func() bool {
		err = strict.Patch(t.Context(), &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}, patch,
			client.DryRunAll)
		return err != nil
	}, time.Minute, 50*time.Millisecond)
	require.ErrorContains(t, err, "unknown field")
}

func TestRolloutRefusesUnusableArguments(t *testing.T) {
	for args, want := range map[string]string{
		"rollout undo workers":                   `unknown command "undo": must be one of abort, pause, restart, resume, status`,
		"rollout restart":                        "the name of a WorkerPool is missing: foresail rollout restart NAME",
		"rollout pause a b":                      `unexpected argument "b": foresail rollout pause takes one name`,
		"rollout abort deployment/a":             `"deployment/a": must be the name of a WorkerPool, such as NAME or workerpool/NAME`,
		"rollout resume wp/":                     `"wp/": must be the name of a WorkerPool`,
		"rollout status a -o yaml":               `--output: "yaml": must be table or json`,
		"rollout status a --kubeconfig /nowhere": `--kubeconfig: "/nowhere": must be a readable kubeconfig file`,
	} {
		code, _, stderr := foresail(t, "", strings.Fields(args)...)
		assert.Equal(t, cli.ExitUsage, code, args)
		assert.Contains(t, stderr, want, args)
	}
}

func TestRolloutHelpTeaches(t *testing.T) {
	for command, words := range map[string][]string{
		"restart": {"spec.disruption.replaceBefore", "new ones first", "spec.disruption.budgets"},
		"pause": {"spec.disruption.paused",
			"outdated nodes that are being drained and are not empty yet take pods again",
			"Scale-up and scale-down go on, and so do their drains"},
		"resume": {"spec.disruption.paused"},
		"abort": {"Outdated nodes that are being drained and are not empty yet take pods again",
			"only after rollout resume"},
		"status": {"status.rollout", "exit code is 0"},
	} {
		code, stdout, _ := foresail(t, "", "rollout", command, "--help")
		assert.Equal(t, cli.ExitDone, code)
		for _, word := range append(words, "Examples:", "foresail rollout "+command+" workers") {
			assert.Contains(t, strings.Join(strings.Fields(stdout), " "), word, command)
		}
	}
}

func TestRolloutStatusWritesWhatProgramsRead(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, cli.PrintJSON(&out,
		rolloutOf(&v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Status: v1alpha1.WorkerPoolStatus{Rollout: &v1alpha1.PoolRollout{}}})))
	var fields map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &fields))
	assert.Equal(t, map[string]any{"name": "a", "done": true, "outdated": 0.0, "paused": false, "dryRun": false},
		fields)
}

// A roll-out is done by what was reported of the newest spec alone, and only if all of it is known.
func TestRolloutIsNotDoneTooEarly(t *testing.T) {
	rejected := metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionFalse,
		Message: "the spec cannot be used: no such zone"}
	for name, test := range map[string]struct {
		status  v1alpha1.WorkerPoolStatus
		done    bool
		known   bool
		message string
	}{
		"all are replaced": {v1alpha1.WorkerPoolStatus{ObservedGeneration: 4,
			Rollout: &v1alpha1.PoolRollout{}}, true, true, ""},
		"one is still there": {v1alpha1.WorkerPoolStatus{ObservedGeneration: 4,
			Rollout: &v1alpha1.PoolRollout{Outdated: 1}}, false, true, ""},
		"of one it is not known": {v1alpha1.WorkerPoolStatus{ObservedGeneration: 4,
			Rollout: &v1alpha1.PoolRollout{Unknown: 1, Message: "no permission"}}, false, true, "no permission"},
		"of the spec before": {v1alpha1.WorkerPoolStatus{ObservedGeneration: 3,
			Rollout: &v1alpha1.PoolRollout{Message: "old"}}, false, false, ""},
		"workers cannot be read": {v1alpha1.WorkerPoolStatus{ObservedGeneration: 4}, false, false, ""},
		"the new spec was rejected": {v1alpha1.WorkerPoolStatus{ObservedGeneration: 3, Rollout: &v1alpha1.PoolRollout{},
			Conditions: []metav1.Condition{rejected}}, false, false, rejected.Message},
	} {
		s := rolloutOf(&v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 4},
			Status: test.status})
		assert.Equal(t, []any{test.done, test.known, test.message}, []any{s.Done, s.Outdated != nil, s.Message}, name)
	}
}
