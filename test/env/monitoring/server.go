package monitoring

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/foresail/foresail/test/env/controlplane"
)

const (
	// stopDeadline is how long a program has to end by itself. Prometheus sends what it has not yet
	// sent in this time.
	stopDeadline = 10 * time.Second
	// pollInterval is how often a condition that cannot be watched is looked at.
	pollInterval = 100 * time.Millisecond
)

// server is a program that listens on a port of its own, and runs again with the same arguments
// after it has ended. Its methods may be called from any goroutine.
type server struct {
	name   string
	binary string
	home   string // its working folder, with its log
	args   []string

	mu      sync.Mutex
	process *controlplane.Process
	over    bool // for good: its context has ended
}

// run starts the program for the first time. It is killed when ctx ends.
func (s *server) run(ctx context.Context) error {
	if err := s.Restart(); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		s.over = true
		s.mu.Unlock()
		_ = s.Kill() // the first error is what counts
	})
	return nil
}

// Restart runs the program again, after its end, with the same data and at the same address. It
// does not wait until it is ready.
func (s *server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return fmt.Errorf("start %s: its context has ended", s.name)
	}
	if s.process != nil && !ended(s.process) {
		return fmt.Errorf("start %s: it still runs, with pid %d", s.name, s.process.PID())
	}
	process, err := controlplane.StartProcess(s.name, s.binary, s.LogFile(), s.home, s.args)
	if err != nil {
		return err
	}
	s.process = process
	return nil
}

func ended(p *controlplane.Process) bool {
	select {
	case <-p.Ended():
		return true
	default:
		return false
	}
}

// current returns the process that runs, or ran last.
func (s *server) current() *controlplane.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Kill ends the program as a crash would and waits for its end.
func (s *server) Kill() error {
	process := s.current()
	if err := process.Signal(os.Kill); err != nil {
		return err
	}
	<-process.Ended()
	return nil
}

// Stop ends the program as a kubelet would, and returns when it is gone. One that is paused goes on, to end.
func (s *server) Stop() error {
	process := s.current()
	if err := process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	return process.Stop(stopDeadline)
}

// Pause freezes the program: connections are accepted by the kernel, and nothing is answered.
func (s *server) Pause() error { return s.current().Pause() }

// Continue ends a Pause.
func (s *server) Continue() error { return s.current().Signal(syscall.SIGCONT) }

// LogFile returns the path of the log, that of earlier runs included.
func (s *server) LogFile() string { return filepath.Join(s.home, s.name+".log") }

// LogTail returns the last lines of the log.
func (s *server) LogTail() string { return s.current().LogTail() }

// PID returns the process id, for tests that measure the program.
func (s *server) PID() int { return s.current().PID() }

// wait waits until check succeeds. It gives up when the program ends or ctx does, with the end of the log.
func (s *server) wait(ctx context.Context, what string, check func(context.Context) error) error {
	process := s.current()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-process.Ended():
			return process.Failure()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s %s: %w; last: %w; last lines of its log:\n%s",
				s.name, what, context.Cause(ctx), err, process.LogTail())
		case <-time.After(pollInterval):
		}
	}
}
