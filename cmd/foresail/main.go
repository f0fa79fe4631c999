// Command foresail scales Kubernetes pods and nodes ahead of their load. Each subcommand has a file of its own, which
// holds its flags and its wiring; what it does lives in the packages it wires.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func newRoot() *cobra.Command {
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

  # And what it has cost
  foresail cost workerpool workers --prometheus-url http://localhost:9090`,
		Args:          knownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,

		DisableFlagsInUseLine: true,
	}
	root.AddCommand(
		newRunCommand(),
		newExplainCommand(),
		newCostCommand(),
		newReplayCommand(),
		newBacktestCommand(),
		newSimulateCommand(),
		newVersionCommand(),
	)
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
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	started := markStart(root)
	command, err := root.ExecuteContextC(ctx)
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
