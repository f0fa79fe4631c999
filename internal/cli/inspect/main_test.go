package inspect

import (
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
)

func newRoot(now func() time.Time) *cobra.Command { return cli.NewRoot(Commands(now)...) }

// foresail executes a command line and returns its exit code, stdout and stderr.
func foresail(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return foresailAt(t, time.Now, stdin, args...)
}

// foresailAt is foresail with a clock for explanations.
func foresailAt(t *testing.T, now func() time.Time, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Run(t, newRoot(now), stdin, args...)
}
