package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Exit codes; a signal's own is 128 and its number, as in a shell.
const (
	exitFailed = 1
	exitUsage  = 2
	exitSignal = 128
)

// Leftover is a failure to end something that was started.
type Leftover struct{ Err error }

func (l Leftover) Error() string { return l.Err.Error() }

func (l Leftover) Unwrap() error { return l.Err }

// Execute runs a command until it returns or a signal ends its context, reports errors to progress
// with the last lines that libraries logged, and returns the exit code.
func Execute(command *cobra.Command, args []string, progress io.Writer) int {
	ctx, stop := withSignals(context.Background())
	defer stop()
	logs := &tail{}
	quietLibraries(logs)
	started := false
	run := command.RunE
	command.RunE = func(c *cobra.Command, args []string) error {
		started = true
		return run(c, args)
	}
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	err := command.ExecuteContext(ctx)
	var signalled interrupted
	switch name := command.Name(); {
	case errors.As(err, new(Leftover)):
		fmt.Fprintf(progress, "%s: %v\n%s", name, err, logs)
		return exitFailed
	case errors.As(context.Cause(ctx), &signalled):
		fmt.Fprintf(progress, "%s: ended, nothing is left running\n", name)
		if err == nil {
			return 0 // it was only being kept up
		}
		return exitSignal + int(signalled.signal)
	case err != nil && started:
		fmt.Fprintf(progress, "%s: %v\n%s", name, err, logs)
		return exitFailed
	case err != nil:
		fmt.Fprintf(progress, "%s: %v\nRun it with --help for what it accepts.\n", name, err)
		return exitUsage
	}
	return 0
}

// interrupted is the cause of a context that a signal has ended.
type interrupted struct{ signal syscall.Signal }

func (i interrupted) Error() string { return "ended by signal: " + i.signal.String() }

// withSignals ends a context at the first signal. Those that follow do nothing until stop is
// called: ending takes seconds at the most, and cutting it short would leave processes and folders
// behind.
func withSignals(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	// SIGHUP is a terminal that is closed, SIGPIPE a reader of the output that has gone.
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		if s, ok := (<-signals).(syscall.Signal); ok {
			cancel(interrupted{s})
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

// quietLibraries keeps what libraries log off the screen.
func quietLibraries(logs io.Writer) {
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(logs)))
	klog.SetLogger(logger)
	log.SetLogger(logger) // without one controller-runtime prints a stack after half a minute
}

// keptLines is how much of the logs an error shows.
const keptLines = 10

// tail is a writer that keeps the last lines; each write is a line. It is safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (t *tail) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, string(line))
	t.lines = t.lines[max(0, len(t.lines)-keptLines):]
	return len(line), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "")
}
