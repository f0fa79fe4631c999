package rbac

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/foresail/foresail/test/env/controlplane"
)

// others are the accounts of the manifests that Foresail does not run as.
var others = map[string]string{
	"system:serviceaccount:foresail-system:foresail-scheduler":    "of kube-scheduler: manifests.TestTheSecondSchedulerMayDoItsWork",
	"system:serviceaccount:foresail-system:foresail-explain":      "of people who explain: foresail.TestPeopleReachReplicasThroughTheAPIServer",
	"system:serviceaccount:foresail-system:foresail-dashboard":    "of people who look: foresail.TestPeopleReachReplicasThroughTheAPIServer",
	"system:serviceaccount:foresail-system:foresail-scraper":      "of Prometheus",
	"system:serviceaccount:kube-system:horizontal-pod-autoscaler": "of the HPA controller",
}

// known stands for the roles of Kubernetes, as one right each.
func known(rbacv1.RoleRef, string) ([]rbacv1.PolicyRule, error) { return nil, nil }

func TestEveryRoleOfForesailHasASuite(t *testing.T) {
	proven := map[string]string{} // suite by right
	for name, suite := range Suites {
		rights, err := granted(known, suite.Proves...)
		require.NoError(t, err)
		assert.NotEmpty(t, rights, name)
		for _, r := range rights {
			assert.NotContains(t, proven, r.User+" "+r.String(), "%s and %s", name, proven[r.User+" "+r.String()])
			proven[r.User+" "+r.String()] = name
			proven[r.String()] = name // another account with the same role needs no proof of its own
		}
		for _, problem := range suite.stale(rights) {
			assert.NoError(t, problem, name)
		}
	}
	root, err := controlplane.Root()
	require.NoError(t, err)
	found := map[string]bool{} // accounts
	rights, err := Granted(known, manifests(t, root)...)
	require.NoError(t, err)
	for _, r := range rights {
		found[r.User] = true
		if _, other := others[r.User]; !other {
			assert.Contains(t, accounts, r.User)
			assert.Contains(t, proven, r.String(), "no suite answers for it")
		}
	}
	for account := range others {
		assert.Contains(t, found, account, "no manifest binds a role to it")
	}
	for _, account := range accounts {
		assert.Contains(t, found, account, "no manifest binds a role to it")
	}
}

// manifests returns the files of manifests/ that have roles or bindings.
func manifests(t *testing.T, root string) (found [][]byte) {
	t.Helper()
	for _, folder := range []string{"base", "components", "overlays"} {
		err := filepath.WalkDir(filepath.Join(root, "manifests", folder),
			func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
					return err
				}
				content, err := os.ReadFile(path)
				if strings.Contains(string(content), "rbac.authorization.k8s.io/v1") {
					found = append(found, content)
				}
				return err
			})
		require.NoError(t, err)
	}
	return found
}

// A suite that does not compare proves nothing.
func TestEverySuiteCompares(t *testing.T) {
	root, err := controlplane.Root()
	require.NoError(t, err)
	for name := range Suites {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(name), "*_test.go"))
		require.NoError(t, err)
		compares, audits := false, false
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			compares = compares || strings.Contains(string(content), `rbac.Run(m, "`+name+`"`) ||
				strings.Contains(string(content), `rbac.Check("`+name+`"`)
			audits = audits || strings.Contains(string(content), "AuditPolicy: rbac.Policy")
		}
		assert.True(t, compares, name)
		assert.True(t, audits, name)
	}
}

// Reasons name tests that there are.
func TestReasonsNameTests(t *testing.T) {
	reasons := slices.Collect(maps.Values(others))
	for _, suite := range Suites {
		reasons = slices.AppendSeq(reasons, maps.Values(suite.Unused))
	}
	root, err := controlplane.Root()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(root, "cmd", "foresail", "*_test.go"))
	require.NoError(t, err)
	more, err := filepath.Glob(filepath.Join(root, "manifests", "*_test.go"))
	require.NoError(t, err)
	var tests strings.Builder
	for _, file := range append(files, more...) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		tests.Write(content)
	}
	named := regexp.MustCompile(`Test[A-Z]\w+`).FindAllString(strings.Join(reasons, " "), -1)
	assert.NotEmpty(t, named)
	for _, name := range named {
		assert.Contains(t, tests.String(), "func "+name+"(t ", name)
	}
}
