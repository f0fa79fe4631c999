// Command foresail scales Kubernetes pods and nodes ahead of their load. Its subcommands are in internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
	_ "time/tzdata" // schedules name time zones, which an image may lack

	"github.com/spf13/cobra"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/inspect"
	"github.com/foresail/foresail/internal/cli/lab"
	"github.com/foresail/foresail/internal/cli/serve"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root := newRoot(time.Now)
	os.Exit(cli.Execute(ctx, root, cli.InvokedAs(root, os.Args), os.Stdin, os.Stdout, os.Stderr))
}

// newRoot returns the command line; explanations read the time from now.
func newRoot(now func() time.Time) *cobra.Command {
	return cli.NewRoot(slices.Concat([]*cobra.Command{serve.NewCommand()}, inspect.Commands(now), lab.Commands(now))...)
}
