// Command demonodes shows what the node pool is for: on a real control plane of this machine, replicas arrive until no node
// has room for them. Foresail launches nodes while demand still climbs, and drains and removes them when it has gone.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

// Exit codes.
const (
	exitFailed    = 1
	exitUsage     = 2
	exitInterrupt = 130
)

// options are what the flags say.
type options struct {
	plain     bool
	reactive  bool
	interrupt bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // what libraries log stays off the screen
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func execute(ctx context.Context, args []string, out, progress *os.File) int {
	var o options
	started := false
	c := &cobra.Command{
		Use:   "demonodes",
		Short: "Watch worker nodes be launched ahead of demand, and drained when it has gone",
		Long: `demonodes runs a real Kubernetes control plane on this machine, without containers, and Foresail on it with a
WorkerPool of simulated instances, which take eight seconds to become nodes. The replicas of a Deployment climb until they
need three times the nodes, and leave at once. The view tells each decision and why; it ends by itself in two minutes, with
what the pods had to wait and what the nodes came to. Ctrl-C ends everything at any time.

Exit codes: 0 done, 1 failed, 2 unusable arguments, 130 ended by Ctrl-C.`,
		Example: `  go run ./test/demonodes
  go run ./test/demonodes --reactive    # the same, without a forecast
  go run ./test/demonodes --interrupt   # and what happens when the cloud takes a node back`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, _ []string) error {
			started = true
			return run(c.Context(), o, out, progress)
		},
	}
	c.Flags().BoolVar(&o.plain, "plain", false, "print lines instead of the live view, as when the output is no terminal")
	c.Flags().BoolVar(&o.reactive, "reactive", false, "forecast nothing: launch for the present load and for pods that wait")
	c.Flags().BoolVar(&o.interrupt, "interrupt", false, "have the cloud take a Spot instance back at the top, with half a minute's notice")
	c.SetArgs(args)
	err := c.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case !started:
		fmt.Fprintf(progress, "demonodes: %v\nRun it with --help for what it accepts.\n", err)
		return exitUsage
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(progress, "demonodes: ended, nothing is left running")
		return exitInterrupt
	default:
		fmt.Fprintf(progress, "demonodes: %v\n", err)
		return exitFailed
	}
}
