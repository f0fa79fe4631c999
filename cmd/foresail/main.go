// Command foresail scales Kubernetes pods and nodes ahead of their load. Each subcommand has a file of its own, which
// holds its flags and its wiring; what it does lives in the packages it wires.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // schedules name time zones, which an image may lack

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foresail/foresail/pipeline"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root := newRoot(time.Now)
	os.Exit(execute(ctx, root, invokedAs(root, os.Args), os.Stdin, os.Stdout, os.Stderr))
}

// newRoot returns the command line; explanations read the time from now.
func newRoot(now func() time.Time) *cobra.Command {
	root := &cobra.Command{
		Use:   "foresail",
		Short: "Scale Kubernetes pods and worker nodes before their load arrives",
		Long: `Foresail reads the load of every pod each second, forecasts it over the time a new pod
takes to start, and serves the forecast to the HorizontalPodAutoscaler as an external
metric, so that pods are ready when the load is. By option it does the same for worker
nodes: it launches them before pods need them, and drains those that nobody needs.

Exit codes: 0 done, 1 failed, 2 unusable arguments.`,
		Example: `  # What would have been decided, from a recording
  foresail replay --spec docs/examples/replay/spec.yaml --input docs/examples/replay/events.jsonl --output table

  # Why a pool of workers is as large as it is
  foresail explain workerpool workers

  # Has the forecast of a target been worth it?
  foresail report checkout-elu -n shop --prometheus http://localhost:9090

  # What a pool of workers has cost
  foresail cost workerpool workers --prometheus http://localhost:9090`,
		Args:          knownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,

		DisableFlagsInUseLine: true,
	}
	root.AddCommand(
		newRunCommand(),
		newExplainCommand(now),
		newDashboardCommand(now),
		newHPACommand(),
		newReportCommand(now),
		newCostCommand(),
		newRolloutCommand(now),
		newReplayCommand(),
		newBacktestCommand(),
		newThresholdCommand(now),
		newSimulateCommand(),
		newVersionCommand(),
		newCompletionCommand(),
	)
	completeChoices(root)
	root.SetFlagErrorFunc(flagError)
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = helpArguments
		}
	}
	return root
}

// execute runs the command line and returns its exit code. Errors go to stderr.
func execute(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	started := markStart(root)
	args, command, err := splitType(root, args)
	if err == nil {
		root.SetArgs(args)
		command, err = root.ExecuteContextC(ctx)
	}
	if err == nil {
		return exitDone
	}
	code := exitCode(err, *started)
	root.PrintErrf("%s: %v\n", command.CommandPath(), err)
	if code == exitUsage {
		root.PrintErrf("Run '%s --help' for what it accepts, with examples.\n", command.CommandPath())
	}
	return code
}

// Exit codes, part of the command's interface.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2 // unusable arguments: unknown commands and flags, values they do not take, specs that cannot be read
)

// usageError marks an error as one of the arguments, found after the command has started.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// badFlag says what a flag would accept instead of its value.
func badFlag(flag string, value any, accept string) error {
	return usageError{&pipeline.FieldError{Field: "--" + flag, Value: value, Accept: accept}}
}

// refuseFlags returns errors about flags that were given although they have no effect: those whose names begin with a prefix.
func refuseFlags(fs *pflag.FlagSet, prefix, accept string) error {
	var errs []error
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Changed && strings.HasPrefix(f.Name, prefix) {
			errs = append(errs, badFlag(f.Name, fmt.Sprintf("%q", f.Value), accept))
		}
	})
	return errors.Join(errs...)
}

// refuseNames returns an error if names of clients were given without the file of their authorities: no client is
// asked for any.
func refuseNames(fs *pflag.FlagSet, names, authorities string) error {
	if fs.Lookup(authorities).Value.String() != "" {
		return nil
	}
	return refuseFlags(fs, names, "left out unless --"+authorities+" is given: without it no client needs a certificate")
}

// exitCode tells failures from unusable arguments. All that goes wrong before a command has started does so because
// of its arguments.
func exitCode(err error, started bool) int {
	if !started || errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailed
}

// markStart notes when a command below root has started, its flags and arguments found to be in order.
func markStart(root *cobra.Command) *bool {
	started := new(bool)
	for _, command := range below(root) {
		inner := command.RunE
		if inner == nil {
			continue
		}
		command.RunE = func(c *cobra.Command, args []string) error {
			*started = true
			return inner(c, args)
		}
	}
	return started
}

// below returns all commands under one.
func below(c *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, sub := range c.Commands() {
		all = append(append(all, sub), below(sub)...)
	}
	return all
}

// eachJoined applies to to an error, or to each of those that it joins.
func eachJoined(err error, to func(error) error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return to(err)
	}
	var errs []error
	for _, err := range joined.Unwrap() {
		errs = append(errs, eachJoined(err, to))
	}
	return errors.Join(errs...)
}
