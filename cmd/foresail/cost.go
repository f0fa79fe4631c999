package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/nodepool/cost"
)

const (
	costMaxSeries = 10_000   // of an answer: a pool has some dozens
	costMaxBytes  = 64 << 20 // of an answer: ten thousand samples of each
	mostCostWeeks = 12
	costWeek      = 7 * 24 * time.Hour
)

func newCostCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "cost",
		Short: "Tell what a pool of workers has cost, and what could be set better",
		Long: `Cost reads from a Prometheus server what Foresail's own metrics have told in past weeks. It
asks neither the cluster nor the cloud, and changes nothing.`,
		Example: `  foresail cost workerpool workers --prometheus-url http://localhost:9090 --prices prices.yaml`,
		Args:    knownCommand,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },

		DisableFlagsInUseLine: true,
	}
	c.AddCommand(newCostPoolCommand())
	return c
}

const costPoolHelp = `The report has: for how much of the time it is known how many workers there were; the worker
hours, how many of them were asked for, and how many were idle, that is, beyond what was asked
for within minimum and maximum; the share of Spot, beside the one that the market policy aims
at; the hours of each instance type and market; and advice, which is rules with their numbers:
a maximum that is too low, a minimum that is too high, growth that is too slow, workers that
stay for too long, types with too much memory or CPU, and Spot that cannot be had.

With --prices it also has what that cost, what it would have cost at the count that was asked
for, and what On-Demand alone would have cost. The file has US dollars an hour:

  t3.small: {onDemand: 0.0208, spot: 0.0063}
  m5.large: {onDemand: 0.096}

Prices of what was used that are missing leave costs unknown, and the report names them.

The server must read /metrics of every replica of Foresail, for as long as the report looks
back. Times at which it has nothing are unknown: they are told as such, and are in no figure.
A look is taken every five minutes.`

func newCostPoolCommand() *cobra.Command {
	o := &costOptions{}
	c := &cobra.Command{
		Use:     "workerpool NAME --prometheus-url URL [--weeks N] [--prices FILE] [--output table|json]",
		Aliases: []string{"wp", "workerpools"},
		Short:   "Tell what one pool has used in past weeks, what that cost, and what could be set better",
		Long:    costPoolHelp,
		Example: `  kubectl -n monitoring port-forward svc/prometheus 9090 &
  foresail cost workerpool workers --prometheus-url http://localhost:9090

  # In money, over four weeks
  foresail cost wp workers --prometheus-url http://localhost:9090 --weeks 4 --prices prices.yaml

  # What idle workers cost, for a program
  foresail cost wp workers --prometheus-url http://localhost:9090 --prices prices.yaml -o json | jq .cost.idleUSD`,
		Args: oneName("a WorkerPool"),

		DisableFlagsInUseLine: true,
	}
	c.Flags().StringVar(&o.url, "prometheus-url", "", "`URL` of the Prometheus server that reads Foresail's /metrics (required)")
	c.Flags().StringVar(&o.serversFile, "prometheus-config-file", "", "`file` with the credentials and certificates of Prometheus servers, as foresail run takes it; empty asks without")
	c.Flags().IntVar(&o.weeks, "weeks", 1, "how many past weeks to look at, from 1 to 12")
	c.Flags().StringVar(&o.pricesFile, "prices", "", "`file` with the prices of instance types; empty tells hours alone")
	output := addOutputFlag(c, "table", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		source, prices, err := o.open()
		if err != nil {
			return err
		}
		h, err := cost.Read(c.Context(), source, args[0], time.Now(), time.Duration(o.weeks)*costWeek)
		if err != nil {
			return err
		}
		r := cost.Of(h, prices)
		if output.value == "json" {
			return printJSON(c.OutOrStdout(), r)
		}
		return cost.Table(c.OutOrStdout(), r)
	}
	return c
}

// costOptions are the flags of the cost command.
type costOptions struct {
	url, serversFile, pricesFile string
	weeks                        int
}

// open connects to the server, and reads the files that flags name.
func (o *costOptions) open() (cost.Source, cost.Prices, error) {
	if o.weeks < 1 || o.weeks > mostCostWeeks {
		return cost.Source{}, nil, badFlag("weeks", o.weeks, fmt.Sprintf("from 1 to %d", mostCostWeeks))
	}
	prices, err := readPrices("prices", o.pricesFile)
	if err != nil {
		return cost.Source{}, nil, err
	}
	server := sourceOptions{prometheusFile: o.serversFile, prometheusURL: o.url}
	if o.url == "" {
		return cost.Source{}, nil, badFlag("prometheus-url", "missing", promapi.AcceptedAddress)
	}
	if err := server.validateServers(); err != nil {
		return cost.Source{}, nil, usageError{err}
	}
	server.prometheus.MaxSeries, server.prometheus.MaxBytes = costMaxSeries, costMaxBytes
	source, err := costSource(&server, newServers(&server))
	return source, prices, err
}

// costSource is the server that WorkerPools ask.
func costSource(o *sourceOptions, servers *promapi.Clients) (cost.Source, error) {
	api, err := servers.API(o.prometheusURL)
	if err != nil {
		return cost.Source{}, err
	}
	return cost.Source{API: api, Address: o.prometheusURL, Step: cost.DefaultStep}, nil
}

// readPrices reads the file that a flag names, if it does.
func readPrices(flag, file string) (cost.Prices, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, badFlag(flag, err, cost.PricesHelp)
	}
	prices, err := cost.ParsePrices(text)
	if err != nil {
		return nil, usageError{fmt.Errorf("--%s %s: %w", flag, file, err)}
	}
	return prices, nil
}
