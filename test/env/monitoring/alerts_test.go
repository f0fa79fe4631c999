package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAlertsPassTheirTests(t *testing.T) {
	binaries, err := Build(t.Context(), os.Stderr)
	require.NoError(t, err)
	const folder = "../../../manifests/alerts"
	rules, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, rules)
	var tests []string
	for _, file := range rules {
		tests = append(tests, filepath.Join(folder, "tests", filepath.Base(file)))
	}
	for _, args := range [][]string{
		slices.Concat([]string{"check", "rules", "--lint=all", "--lint-fatal"}, rules),
		slices.Concat([]string{"test", "rules"}, tests),
	} {
		output, err := exec.CommandContext(t.Context(), binaries.Promtool(), args...).CombinedOutput()
		require.NoError(t, err, string(output))
	}
}
