package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Process is a running program. On Linux it ends with this process at the latest, however this one ends.
type Process struct {
	name    string
	logPath string
	cmd     *exec.Cmd
	// ended is closed when the process is gone; result is set before that.
	ended    chan struct{}
	result   error
	stopping atomic.Bool
}

// StartProcess runs a program, named name in errors, with its output at the end of a log file. home
// is its working directory and where it looks for a user's own settings: there are none. env are
// further variables, as name=value.
func StartProcess(name, binary, logPath, home string, args []string, env ...string) (*Process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = home
	cmd.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + home}, env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = processAttributes()
	p := &Process{name: name, logPath: logPath, cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		defer log.Close()
		// The kernel's parent-death signal is tied to the thread that starts a child. A thread to
		// itself, kept as long as the child lives, cannot end early and take the child along.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.result = cmd.Wait()
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the process is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Signal sends a signal; one to a process that is gone does nothing.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: %s: %w", p.name, signal, err)
	}
	return nil
}

// Pause freezes the process until it is sent SIGCONT, and returns once it does nothing any more (on Linux).
func (p *Process) Pause() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if err := waitStopped(p.PID()); err != nil {
		return fmt.Errorf("%s: wait until it has stopped: %w", p.name, err)
	}
	return nil
}

// Stop asks the process to end and kills it once the deadline is over. It returns when the process is gone.
func (p *Process) Stop(deadline time.Duration) error {
	p.stopping.Store(true)
	select {
	case <-p.ended:
		return nil
	default:
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
	}
	if err := p.Signal(os.Kill); err != nil {
		return err
	}
	<-p.ended
	return nil
}

// Result returns the error of a process that is gone, nil for exit status 0.
func (p *Process) Result() error { return p.result }

// Failure describes an unexpected end, once the process is gone, with the last lines of the log.
func (p *Process) Failure() error {
	outcome := "exit status 0"
	if p.result != nil {
		outcome = p.result.Error()
	}
	return fmt.Errorf("%s (pid %d) ended unexpectedly: %s; last lines of its log:\n%s",
		p.name, p.PID(), outcome, p.LogTail())
}

// logTailBytes bounds how much of a log an error carries.
const logTailBytes = 4096

// LogTail returns the last lines of the log.
func (p *Process) LogTail() string {
	file, err := os.Open(p.logPath)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	offset := max(0, info.Size()-logTailBytes)
	data, err := io.ReadAll(io.NewSectionReader(file, offset, logTailBytes))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if offset > 0 {
		// The first line is most likely cut.
		lines = lines[1:]
	}
	return strings.Join(lines[max(0, len(lines)-keptLines):], "\n")
}
