package helm_test

import (
	"context"
	"os"
	"testing"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/kubectl"
	"github.com/foresail/foresail/test/suite/helm"
)

// The programs of all tests.
var current, kubectlProgram string

func TestMain(m *testing.M) {
	controlplane.Main(func(ctx context.Context) (code int, err error) {
		// Helm's plugins, caches and settings of whoever runs the tests are none of theirs.
		home, err := os.MkdirTemp("", "foresail-helm-")
		if err != nil {
			return 1, err
		}
		defer os.RemoveAll(home)
		for _, variable := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
			if err := os.Setenv(variable, home); err != nil {
				return 1, err
			}
		}
		if current, err = helm.Current.Build(ctx, os.Stderr); err != nil {
			return 1, err
		}
		if kubectlProgram, err = kubectl.Build(ctx, os.Stderr); err != nil {
			return 1, err
		}
		return m.Run(), nil
	})
}
