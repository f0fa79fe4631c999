package main

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/cli"
)

// aside is set in processes that are to be the command rather than its tests.
const aside = "FORESAIL_TEST_RUN_ASIDE"

func TestMain(m *testing.M) {
	if os.Getenv(aside) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is the command in a process of its own: logging can be set up, and metrics be registered,
// once in each.
type process struct {
	command *exec.Cmd
	stderr  *bytes.Buffer // to be read when it has ended
	ended   chan struct{}
}

// runAside starts one, which ends with the test at the latest.
func runAside(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{command: exec.CommandContext(t.Context(), self, args...), stderr: &bytes.Buffer{},
		ended: make(chan struct{})}
	p.command.Env = append(os.Environ(), aside+"=1")
	p.command.Stderr = p.stderr
	require.NoError(t, p.command.Start())
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // what came of it is in its state
	}()
	t.Cleanup(func() { <-p.ended })
	return p
}

// end asks it to, and waits until it has.
func (p *process) end(t *testing.T) {
	t.Helper()
	require.NoError(t, p.command.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.ended:
		assert.Equal(t, cli.ExitDone, p.command.ProcessState.ExitCode(), "%s", p.stderr)
	case <-time.After(time.Minute):
		require.Fail(t, "it does not end")
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
