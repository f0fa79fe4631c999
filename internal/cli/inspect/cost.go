package inspect

import (
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/nodepool/cost"
	"github.com/foresail/foresail/nodepool/prices"
)

const (
	mostCostWeeks = 12
	costWeek      = 7 * 24 * time.Hour
)

func newCostCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "cost",
		Short: "Show what a pool of workers has cost, and how to configure it better",
		Long: `Cost reads Foresail's own metrics of past weeks from a Prometheus server. It reads neither the
cluster nor the cloud, and changes nothing.`,
		Example: `  foresail cost workerpool workers --prometheus http://localhost:9090 --prices prices.yaml`,
		Args:    cli.KnownCommand,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },

		DisableFlagsInUseLine: true,
	}
	c.AddCommand(newCostPoolCommand())
	return c
}

const costPoolHelp = `The report shows: for how much of the time the number of workers is known; the worker hours,
the desired ones (recommended, within minimum and maximum) and the idle ones (beyond the
desired ones); the Spot share and its target; the hours of each instance type and market; and
advice, each with its numbers: a maximum that is too low, a minimum that is too high, growth
that is too slow, workers that stay too long, types with too much memory or CPU, and Spot
capacity that is missing.

With --prices it also shows the cost, the cost at the desired count, and the cost of On-Demand
alone. The file has US dollars an hour:

  t3.small: {onDemand: 0.0208, spot: 0.0063}
  m5.large: {onDemand: 0.096}

If a price is missing, costs are unknown, and the report names the missing prices.

The server must have scraped /metrics of every replica of Foresail for the whole period. Time
without metrics counts as unknown and is in no figure. The resolution is five minutes.`

func newCostPoolCommand() *cobra.Command {
	o := &costOptions{}
	c := &cobra.Command{
		Use:     "workerpool NAME --prometheus URL [--since 7d] [--prices FILE] [--output table|json]",
		Aliases: []string{"wp", "workerpools"},
		Short:   "Show what one pool used in past weeks, what that cost, and how to configure it better",
		Long:    costPoolHelp,
		Example: `  kubectl -n monitoring port-forward svc/prometheus 9090 &
  foresail cost workerpool workers --prometheus http://localhost:9090

  # In money, over four weeks
  foresail cost wp workers --prometheus http://localhost:9090 --since 28d --prices prices.yaml

  # What idle workers cost, for a program
  foresail cost wp workers --prometheus http://localhost:9090 --prices prices.yaml -o json | jq .cost.idleUSD`,
		Args: cli.OneName(cli.APool),

		DisableFlagsInUseLine: true,
	}
	c.Flags().StringVar(&o.url, "prometheus", "",
		"`URL` of the Prometheus server that scrapes Foresail's /metrics (required)")
	c.Flags().StringVar(&o.serversFile, "prometheus-config-file", "",
		"`file` with the credentials and certificates of Prometheus servers, as foresail run takes it; empty uses none")
	o.since = model.Duration(costWeek)
	c.Flags().Var(&o.since, "since", "how far back to look, such as 12h or 28d, up to 84d")
	c.Flags().StringVar(&o.pricesFile, "prices", "", "`file` with the prices of instance types; empty shows hours only")
	output := cli.AddOutputFlag(c, "table", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		source, usd, err := o.open()
		if err != nil {
			return err
		}
		h, err := cost.Read(c.Context(), source, args[0], time.Now(), time.Duration(o.since))
		if err != nil {
			return err
		}
		r := cost.Of(h, usd)
		if output.String() == "json" {
			return cli.PrintJSON(c.OutOrStdout(), r)
		}
		return cost.Table(c.OutOrStdout(), r)
	}
	return c
}

// costOptions are the flags of the cost command.
type costOptions struct {
	url, serversFile, pricesFile string
	since                        model.Duration
}

// open connects to the server, and reads the files that flags name.
func (o *costOptions) open() (cost.Source, prices.Prices, error) {
	if since := time.Duration(o.since); since < time.Hour || since > mostCostWeeks*costWeek {
		return cost.Source{}, nil, cli.BadFlag("since", o.since,
			fmt.Sprintf("from 1h to %s", model.Duration(mostCostWeeks*costWeek)))
	}
	usd, err := cli.ReadPrices("prices", o.pricesFile)
	if err != nil {
		return cost.Source{}, nil, err
	}
	if o.url == "" {
		return cost.Source{}, nil, cli.BadFlag("prometheus", "missing", promapi.AcceptedAddress)
	}
	api, err := cli.PastAPI(o.url, o.serversFile)
	if err != nil {
		return cost.Source{}, nil, err
	}
	return cost.Source{API: api, Address: o.url, Step: cost.DefaultStep}, usd, nil
}
