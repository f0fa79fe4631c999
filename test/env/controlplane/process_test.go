package controlplane

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func startShell(t *testing.T, script string) *Process {
	t.Helper()
	dir := t.TempDir()
	p, err := StartProcess("shell", "/bin/sh", filepath.Join(dir, "log"), dir, []string{"-c", script})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop(0)) })
	return p
}

func waitForLog(t *testing.T, p *Process, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(p.LogTail(), text) }, 10*time.Second,
		10*time.Millisecond)
}

func TestFailureCarriesTheEndOfTheLog(t *testing.T) {
	p := startShell(t, `i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; echo the reason >&2; exit 3`)
	<-p.ended
	message := p.Failure().Error()
	require.Contains(t, message, "shell")
	require.Contains(t, message, "exit status 3")
	require.Contains(t, message, "line 1999\nthe reason")
	require.NotContains(t, message, "line 1970\n")
}

func TestStopKillsWhatDoesNotEnd(t *testing.T) {
	p := startShell(t, `trap "" TERM; echo deaf; while :; do sleep 0.05; done`)
	waitForLog(t, p, "deaf")
	began := time.Now()
	require.NoError(t, p.Stop(100*time.Millisecond))
	require.Less(t, time.Since(began), 5*time.Second)
	require.ErrorContains(t, p.result, "killed")
	require.True(t, gone(p.PID()))
}

func TestStopLetsAProcessEnd(t *testing.T) {
	p := startShell(t, `trap "echo bye; exit 0" TERM; echo listening; while :; do sleep 0.05; done`)
	waitForLog(t, p, "listening")
	require.NoError(t, p.Stop(time.Minute))
	require.NoError(t, p.result)
	require.Contains(t, p.LogTail(), "bye")
	require.NoError(t, p.Stop(0), "a second time")
}

func TestProcessesSeeNothingOfTheUsersSettings(t *testing.T) {
	t.Setenv("KUBECONFIG", "/elsewhere")
	p := startShell(t, `echo "home=$HOME kubeconfig=$KUBECONFIG"`)
	<-p.ended
	require.Contains(t, p.LogTail(), "home="+filepath.Dir(p.logPath)+" kubeconfig=")
	require.NotContains(t, p.LogTail(), "elsewhere")
}

func TestStartOfAMissingBinary(t *testing.T) {
	dir := t.TempDir()
	_, err := StartProcess("kwok", filepath.Join(dir, "none"), filepath.Join(dir, "log"), dir, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "start kwok")
}

// gone reports whether there is no process with a pid.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
