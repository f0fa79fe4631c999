// Command controlplane builds a Kubernetes control plane and runs it on this machine, without containers.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresail/foresail/test/env/controlplane"
)

func main() {
	// SIGHUP is the terminal that is closed.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		stop()
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "controlplane",
		Short: "Run a real Kubernetes control plane on this machine, without containers",
		Long: `controlplane runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and kwok in the place of kubelets.

The programs are built from the Go module proxy, once, into the .cache folder of the repository: Go is all that is
needed. Pods are objects, not containers: each gets an address of its own within 127.0.0.0/8 and becomes Ready after a delay.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newBuildCommand(), newUpCommand(), newLendCommand())
	return root
}

func newBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build the components, some minutes the first time, and print where they are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			binaries, err := controlplane.Build(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), binaries.Dir)
			return err
		},
	}
}

func newUpCommand() *cobra.Command {
	var (
		options controlplane.Options
		args    []string
	)
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a cluster until Ctrl-C and leave nothing behind",
		Long: `Run a cluster until Ctrl-C and leave nothing behind.

The components are built first if need be. Several clusters may run at once: each has its own ports and pod addresses.
A pod becomes Ready --ready-delay after it is scheduled, or after what its annotation ` + controlplane.ReadyDelayAnnotation + ` says.`,
		Example: `  controlplane up --nodes 5 --ready-delay 20s
  controlplane up --arg kube-controller-manager=--horizontal-pod-autoscaler-sync-period=5s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			extra, err := parseArgs(args)
			if err != nil {
				return err
			}
			options.ExtraArgs = extra
			options.Progress = cmd.ErrOrStderr()
			return up(cmd.Context(), options, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&options.Nodes, "nodes", 3, "how many nodes the cluster has")
	flags.DurationVar(&options.ReadyDelay, "ready-delay", 0, "time from a pod's start to its readiness")
	flags.BoolVar(&options.KeepDir, "keep", false, "keep the folder with the components' logs")
	flags.StringArrayVar(&args, "arg", nil, "a further flag for a component, as component=flag; may be repeated")
	return cmd
}

func newLendCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lend -- COMMAND [ARGUMENT ...]",
		Short: "Run a command whose tests share one API server",
		Long: `Run a command, such as go test, whose test processes share one API server instead of starting one each. They use it
in turn, and each finds it as if it had just been started.`,
		Example: "  controlplane lend -- go test ./nodepool/...",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return lend(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}

// lend runs a command while an API server is up. The error carries the exit status of the command.
func lend(ctx context.Context, args []string, out, progress io.Writer) error {
	return controlplane.Lend(ctx, progress, func(ctx context.Context, variable string) error {
		command := exec.CommandContext(ctx, args[0], args[1:]...)
		command.Env = append(os.Environ(), variable)
		command.Stdout, command.Stderr = out, progress
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		command.WaitDelay = time.Minute
		if err := command.Run(); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return nil
	})
}

// parseArgs reads component=flag pairs. Which components there are is for Start to say.
func parseArgs(args []string) (map[controlplane.Component][]string, error) {
	extra := make(map[controlplane.Component][]string)
	for _, arg := range args {
		component, flag, found := strings.Cut(arg, "=")
		if !found {
			return nil, fmt.Errorf("--arg %q: want component=flag, such as kube-apiserver=--v=2", arg)
		}
		extra[controlplane.Component(component)] = append(extra[controlplane.Component(component)], flag)
	}
	return extra, nil
}

// up runs a cluster until ctx ends, which is success, or a component breaks.
func up(ctx context.Context, options controlplane.Options, out io.Writer) error {
	binaries, err := controlplane.Build(ctx, options.Progress)
	if err != nil {
		return err
	}
	options.Binaries = binaries
	began := time.Now()
	cluster, err := controlplane.Start(ctx, options)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `The control plane is up after %.1f s: %d nodes, pods in %s, logs in %s

  export KUBECONFIG=%s

docs/local.md has the commands to run Foresail on it. Ctrl-C ends it.
`, time.Since(began).Seconds(), options.Nodes, cluster.PodCIDR(), cluster.Dir(), cluster.Kubeconfig())
	select {
	case <-ctx.Done():
	case <-cluster.Done():
	}
	// Whether the cluster broke is asked before it is stopped.
	failure := cluster.Err()
	if err := cluster.Stop(); err != nil {
		return err
	}
	if failure == nil && options.KeepDir {
		fmt.Fprintln(out, "Kept", cluster.Dir())
	}
	return failure
}
