package inspect

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/nodepool/explain"
)

// defaultDecisions is the default of --last.
const defaultDecisions = 20

func newExplainCommand(now func() time.Time) *cobra.Command {
	k := &cli.Connection{}
	c := &cobra.Command{
		Use:   "explain",
		Short: "Tell why a pool of workers, or a target's replicas, are as many as they are, and why a pod is where it is",
		Long: `Explain reads what Foresail decided and why: the trail of decisions, what each of them was
made from, what is under way and what would be refused. It reads the cluster and changes
nothing; it needs the rights of kubectl get, and may be run by anybody who has them.`,
		Example: `  foresail explain workerpool workers
  foresail explain predictedmetric checkout-elu -n shop
  foresail explain pod checkout-7d9c5 -n shop

  # As kubectl takes it
  foresail explain pm/checkout-elu -n shop`,
		Args: cli.KnownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },

		DisableFlagsInUseLine: true,
	}
	k.AddFlags(c)
	c.AddCommand(newExplainPoolCommand(k, now), newExplainMetricCommand(k, now), newExplainPodCommand(k, now))
	return c
}

func newExplainPoolCommand(k *cli.Connection, now func() time.Time) *cobra.Command {
	c := &cobra.Command{
		Use:     "workerpool NAME [--last N] [--output table|json] [--watch]",
		Aliases: []string{"wp", "workerpools"},
		Short:   "Show what a pool of workers decided and why, the newest first",
		Long: `The table shows, from top to bottom: the spec; the current and desired workers, the nodes that
are terminating and the candidates for removal; each signal now and at its horizon; the open
action, node by node; what holds decisions back, such as nodes that must not be removed; pods
that the scheduler finds no node for; and the decisions, the newest first. Equal decisions in a
row share a line with their count. Each has its recommendations: of every signal, pending pods,
the seasonal floor and the minimum.

With --output json it is one object, which also has the journal.

` + watchHelp,
		Example: `  foresail explain workerpool workers --last 5

  # When and why has the pool grown?
  foresail explain wp workers -o json --last 0 | jq -c '.status.decisions[] | select(.step == "ScaleUp") | [.time, .message]'`,
		Args: cli.OneName(cli.APool),

		DisableFlagsInUseLine: true,
	}
	last := c.Flags().Int("last", defaultDecisions, "how many decisions to show; 0 shows all")
	output := cli.AddOutputFlag(c, "table", "json")
	watch := addWatchFlag(c)
	c.ValidArgsFunction = k.CompletePools
	c.RunE = func(c *cobra.Command, args []string) error {
		if *last < 0 {
			return cli.BadFlag("last", *last, "0 or more")
		}
		config, objects, err := k.Connect()
		if err != nil {
			return err
		}
		nodes, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		return printExplanation(c, *watch, output.String(), func(ctx context.Context) (explanation, error) {
			return explainPool(ctx, objects, nodes, args[0], *last, now)
		})
	}
	return c
}

func explainPool(ctx context.Context, objects client.Client, nodes kubernetes.Interface, name string, last int,
	now func() time.Time) (explanation, error) {
	var pool v1alpha1.WorkerPool
	if err := objects.Get(ctx, client.ObjectKey{Name: name}, &pool); err != nil {
		return explanation{}, missingPool(ctx, objects, name, err)
	}
	e := explain.Of(ctx, nodes, &pool, last, now())
	state := e
	state.At = time.Time{}
	return explanation{value: e, state: state, table: func(w io.Writer) error { return explain.Table(w, e) }}, nil
}
