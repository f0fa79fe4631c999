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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root := newRoot(time.Now)
	os.Exit(execute(ctx, root, invokedAs(root, os.Args), os.Stdin, os.Stdout, os.Stderr))
}

// newRoot returns the command line; explanations read the time from now.
func newRoot(now func() time.Time) *cobra.Command {
	return rootOf(slices.Concat([]*cobra.Command{newRunCommand()}, inspectCommands(now), labCommands(now))...)
}
