package serve

import (
	"testing"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
)

// foresail executes a command line and returns its exit code, stdout and stderr.
func foresail(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Run(t, cli.NewRoot(NewCommand()), stdin, args...)
}
