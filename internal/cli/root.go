// Package cli has what the commands of foresail share: the root command, exit codes, errors of
// arguments, and how commands reach a cluster and a Prometheus server.
package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// NewRoot returns the command line with commands, version and completion.
func NewRoot(commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "foresail",
		Short: "Scale Kubernetes pods and worker nodes before their load arrives",
		Long: `Foresail reads the load of every pod each second, forecasts it over the time a new pod
takes to start, and serves the forecast to the HorizontalPodAutoscaler as an external
metric, so that pods are ready when the load is. By option it does the same for worker
nodes: it launches them before pods need them, and drains those that nobody needs.

Exit codes: 0 done, 1 failed, 2 unusable arguments.`,
		Example: `  # What would have been decided, from a recording
  foresail replay --filename docs/examples/replay/spec.yaml --input docs/examples/replay/events.jsonl --output table

  # Why a pool of workers is as large as it is
  foresail explain workerpool workers

  # Has the forecast of a target been worth it?
  foresail report checkout-elu -n shop --prometheus http://localhost:9090

  # What a pool of workers has cost
  foresail cost workerpool workers --prometheus http://localhost:9090`,
		Args:          KnownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,

		DisableFlagsInUseLine: true,
	}
	root.AddCommand(append(commands, newVersionCommand(), newCompletionCommand())...)
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

// Execute runs the command line and returns its exit code. Errors go to stderr.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	started := markStart(root)
	args, command, err := SplitType(root, args)
	if err == nil {
		root.SetArgs(args)
		command, err = root.ExecuteContextC(ctx)
	}
	if err == nil {
		return ExitDone
	}
	code := exitCode(err, *started)
	root.PrintErrf("%s: %v\n", command.CommandPath(), err)
	if code == ExitUsage {
		root.PrintErrf("Run '%s --help' for what it accepts, with examples.\n", command.CommandPath())
	}
	return code
}

// markStart notes when a command below root has started, its flags and arguments found to be in order.
func markStart(root *cobra.Command) *bool {
	started := new(bool)
	for _, command := range CommandsBelow(root) {
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

// CommandsBelow returns all commands under one.
func CommandsBelow(c *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, sub := range c.Commands() {
		all = append(append(all, sub), CommandsBelow(sub)...)
	}
	return all
}
