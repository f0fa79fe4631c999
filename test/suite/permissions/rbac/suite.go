package rbac

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
)

// Suite is a package whose tests run Foresail with roles of the manifests.
type Suite struct {
	// Proves are the files below manifests/ with the roles that the suite answers for: its tests
	// use each right.
	Proves []string
	// Others are the files with further roles that Foresail has in it.
	Others []string
	// Unused are the rights that no test uses, each as [Right.String] writes it, with the reason
	// for which it is granted.
	Unused map[string]string
	// Rare are the rights that some runs use and others do not, as Unused.
	Rare map[string]string
	// Namespace returns the namespace of the manifests that one of the suite stands for; nil if
	// each stands for itself.
	Namespace func(string) string
}

// Run runs the tests of a suite whose API server has [Policy], and then compares what Foresail
// asked for with its roles. It returns what TestMain passes on: an error if they do not fit. Tests
// that fail are left to speak for themselves.
func Run(m *testing.M, name string, cluster *controlplane.Cluster) (code int, err error) {
	if code = m.Run(); code != 0 {
		return code, nil
	}
	return 0, Check(name, cluster, isWhole())
}

// isWhole tells whether the command line asked for every test.
func isWhole() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return !testing.Short()
}

// Check compares what Foresail has asked for with its roles, those that nothing used only after the
// whole of a suite.
func Check(name string, cluster *controlplane.Cluster, whole bool) error {
	suite, known := Suites[name]
	if !known {
		return fmt.Errorf("rbac: %q: must be a suite of the table", name)
	}
	roles := cluster.Client().RbacV1()
	elsewhere := func(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
		if ref.Kind == "Role" {
			role, err := roles.Roles(namespace).Get(context.Background(), ref.Name, metav1.GetOptions{})
			return role.Rules, err
		}
		role, err := roles.ClusterRoles().Get(context.Background(), ref.Name, metav1.GetOptions{})
		return role.Rules, err
	}
	proven, err := granted(elsewhere, suite.Proves...)
	if err != nil {
		return err
	}
	others, err := granted(elsewhere, suite.Others...)
	if err != nil {
		return err
	}
	log, err := os.Open(cluster.AuditLog())
	if err != nil {
		return err
	}
	defer log.Close()
	requests, err := ReadLog(log)
	if err != nil {
		return err
	}
	requests = slices.DeleteFunc(requests, func(r Request) bool { return !slices.Contains(accounts, r.User) })
	if err := suite.check(proven, others, requests, whole); err != nil {
		return fmt.Errorf("the rights of Foresail do not fit what it did in %s:\n%w", name, err)
	}
	return nil
}

// granted returns what files below manifests/ grant to Foresail.
func granted(elsewhere lookUp, files ...string) ([]Right, error) {
	var manifests [][]byte
	for _, file := range files {
		content, err := foresail.ReadManifest(file)
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, content)
	}
	rights, err := Granted(elsewhere, manifests...)
	return slices.DeleteFunc(rights, func(r Right) bool { return !slices.Contains(accounts, r.User) }), err
}
