// Command demonodes shows what the node pool is for: on a real control plane of this machine,
// replicas arrive until no node has room for them. Foresail launches nodes while demand still
// climbs, and drains and removes them when it has gone.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/foresail/foresail/test/env/terminal"
)

// options are what the flags say.
type options struct {
	plain     bool
	reactive  bool
	interrupt bool
}

func main() {
	os.Exit(terminal.Execute(newCommand(os.Stdout, os.Stderr), os.Args[1:], os.Stderr))
}

func newCommand(out, progress *os.File) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "demonodes",
		Short: "Watch worker nodes be launched ahead of demand, and drained when it has gone",
		Long: `demonodes runs a real Kubernetes control plane on this machine, without containers, and Foresail on it with a
WorkerPool of simulated instances, which take eight seconds to become nodes. The replicas of a Deployment climb until they
need three times the nodes, and leave at once. The view shows each decision and why; it ends by itself in two minutes, with
how long pods waited and how long nodes ran. Ctrl-C ends everything at any time.

Exit codes: 0 done, 1 failed, 2 unusable arguments, 130 ended by Ctrl-C.`,
		Example: `  go run ./test/demo/nodes
  go run ./test/demo/nodes --reactive    # the same, without a forecast
  go run ./test/demo/nodes --interrupt   # and what happens when the cloud takes a node back`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return run(c.Context(), o, out, progress) },
	}
	c.Flags().BoolVar(&o.plain, "plain", false,
		"print lines instead of the live view, as when the output is no terminal")
	c.Flags().BoolVar(&o.reactive, "reactive", false,
		"forecast nothing: launch for the present load and for pods that wait")
	c.Flags().BoolVar(&o.interrupt, "interrupt", false,
		"have the cloud take a Spot instance back at the top, with half a minute's notice")
	return c
}
