package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/lab/play/backtest"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/world/workload"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/pipeline"
)

const backtestHelp = `Backtest compares scalers under your own recorded traffic: for how long would each have had too few
pods, and what would its pods have cost? It needs no cluster and takes seconds to minutes.

The traffic comes from a file or from Prometheus. A file is CSV with a header and a line for each time:

  unix_seconds,requests_per_second
  1700000000,412.5
  1700000060,430

A query of Prometheus returns requests per second; the sum of its series is the traffic.

Lines one second apart are counts: exactly that many requests arrive in that second. Where lines are
further apart the rate is interpolated, and requests arrive at random, as they do with a --scale.

All pods are alike. Each takes --capacity requests per second before it is fully busy, and becomes ready
--startup after it was ordered. Time above the threshold counts the seconds in which ready pods had more
load than --threshold, divided by 60: too few pods, or as many as there may be (at maximum), which only a
higher maximum helps. Saturated counts those in which the load was above 1. Requests are not simulated
one by one: for latencies see foresail simulate.

Scalers (--scalers):

` + scalerDescription + `

Two more know what the load was earlier in the trace. keda/last-week is keda with a second trigger,
max_over_time(load[30m] offset 6d23h30m), so that the pods of last week are there half an hour before
their time; keda/yesterday looks back by a day less half an hour instead. Until the trace is a week or
a day old that trigger returns nothing, which KEDA takes to be 0, and they are keda.

Settings for Foresail are searched on the first 60% of the trace and judged on the rest: threshold,
lateness, minReplicas, and maxReplicas if it was too few. The advice is a verdict and, if a
change held up on the rest, the YAML to apply. With --pod-price and --minute-price it is what costs least,
and all costs are in that currency. Without them it is what saves pod-hours or minutes above the
threshold at the cost of neither, and what else was tried is listed for you to choose.

--seeds defaults to 20, but to no more than play a day of traffic together (1 for longer traces).

--out gets summary.csv, frontier.csv (cost against time above the threshold for other targets),
forecast.csv, advice.yaml if a change is advised, charts, and report.html: one self-contained page.`

const backtestExamples = `  # Recorded traffic, pods that take 120 requests per second and 40 s to start
  foresail backtest --trace traffic.csv --capacity 120 --startup 40s --out report

  # The last week, from Prometheus
  foresail backtest --prometheus http://localhost:9090 --query 'sum(rate(http_requests_total{app="web"}[1m]))' --since 7d

  # The same in money: what a pod costs an hour, and what a minute above the threshold costs your business
  foresail backtest --trace traffic.csv --capacity 120 --startup 40s --pod-price 0.04USD --minute-price 5USD --out report

  # The settings of a live object
  kubectl get pm checkout-elu -o yaml > spec.yaml
  foresail backtest --trace traffic.csv --capacity 120 --filename spec.yaml`

const (
	defaultBacktestMin = 2
	playedBySeeds      = 24 * time.Hour // how much traffic the default number of seeds plays together
)

// backtestOptions are the flags of the backtest command.
type backtestOptions struct {
	playOptions
	prometheus, serversFile, query, since, step string
	capacity                                    float64
	prices                                      priceFlags
	advise, frontier                            bool
	maxFollows                                  bool // neither a flag nor the spec has a maximum
	toZero                                      bool // the spec scales to zero
}

func newBacktestCommand() *cobra.Command {
	o := &backtestOptions{playOptions: playOptions{known: scaler.AllNames()}}
	c := &cobra.Command{
		Use:     "backtest --trace FILE | --prometheus URL --query PROMQL [flags]",
		Short:   "Compare scalers under recorded traffic: how often too few pods, and at what cost?",
		Long:    backtestHelp,
		Example: backtestExamples,
		Args:    cli.NoArguments,

		DisableFlagsInUseLine: true,
	}
	o.addFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.complete(c)
		return o.run(c)
	}
	return c
}

func (o *backtestOptions) addFlags(c *cobra.Command) {
	fs := c.Flags()
	o.playOptions.addFlags(c, defaultBacktestMin, "the report, the charts and the tables")
	fs.StringVar(&o.prometheus, "prometheus", "",
		"`URL` of the Prometheus server that has the traffic, instead of --trace")
	fs.StringVar(&o.query, "query", "", "`PromQL` that returns requests per second; series are added up")
	fs.StringVar(&o.since, "since", "7d", "how far back to query Prometheus, such as 12h or 7d")
	fs.StringVar(&o.step, "step", "1m", "time between two points of the query")
	fs.StringVar(&o.serversFile, "prometheus-config-file", "",
		"`file` with the credentials and certificates of Prometheus servers, as for foresail run; empty queries without")
	fs.Float64Var(&o.capacity, "capacity", 0,
		"requests per second that keep one pod fully busy; 0 derives it from the traffic, so that its 99th percentile takes half of --max")
	fs.BoolVar(&o.advise, "advise", true, "search for better settings")
	fs.BoolVar(&o.frontier, "frontier", true, "with --out: play other targets too, for frontier.csv")
	o.prices.addFlags(fs)
}

func (o *backtestOptions) run(c *cobra.Command) error {
	options, err := o.options(c)
	if err != nil {
		return err
	}
	progress := newRunProgress(c.ErrOrStderr(), 0)
	options.Progress = func(_, all int) {
		progress.expect(all)
		progress.step()
	}
	result, err := backtest.Run(c.Context(), options)
	progress.end()
	if err != nil {
		return err
	}
	return writeReport(c.OutOrStdout(), result.Report(), o.out)
}

// options reads what flags name and validates them.
func (o *backtestOptions) options(c *cobra.Command) (*backtest.Options, error) {
	if o.spec != "" && !c.Flags().Changed("max") {
		o.max = max(o.max, o.min) // the default: that of the spec is read below
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	out := &backtest.Options{
		Scalers: o.played(), Startup: o.startup, Advise: o.advise, Metric: backtest.Utilization,
		Params: scaler.RecommendedParams(), Paper: scaler.PaperParams(), Behavior: scaler.RecommendedBehavior(),
	}
	if o.spec != "" {
		if err := o.readSpec(c, out); err != nil {
			return nil, err
		}
	}
	out.Threshold, out.Min, out.Max = o.threshold, o.min, o.max
	out.FixedMin, out.FixedMax = o.toZero, o.maxFollows
	if err := makeOut(o.out); err != nil {
		return nil, err
	}
	if o.out != "" && o.frontier {
		out.Targets = backtest.Targets(o.threshold)
	}
	var err error
	if out.Prices, err = o.prices.parse(); err != nil {
		return nil, err
	}
	if out.Trace, err = o.readTrace(c.Context()); err != nil {
		return nil, err
	}
	if o.maxFollows {
		out.Max = o.mostFor(out.Trace)
	}
	out.Seeds = o.seedList(o.seedsFor(out.Trace.Length()))
	out.Capacity, out.CapacityDerived = o.capacity, o.capacity == 0
	if out.CapacityDerived {
		if out.Capacity, err = backtest.Capacity(out.Trace, out.Threshold, out.Max); err != nil {
			return nil, cli.BadFlag("capacity", "missing", fmt.Sprintf("given: %v", err))
		}
	}
	if err := out.Validate(); err != nil {
		return nil, cli.Unusable(err)
	}
	return out, nil
}

// seedsFor returns how many seeds to play of a trace of a length.
func (o *backtestOptions) seedsFor(length time.Duration) int {
	if o.seedsGiven || length <= 0 {
		return o.seeds
	}
	return max(1, min(o.seeds, int(playedBySeeds/length)))
}

// validate returns everything that is wrong with flags on their own.
func (o *backtestOptions) validate() error {
	errs := []error{o.playOptions.validate()}
	require := func(ok bool, flag string, value any, accept string) {
		if !ok {
			errs = append(errs, cli.BadFlag(flag, value, accept))
		}
	}
	switch {
	case o.trace == "" && o.prometheus == "":
		errs = append(errs, cli.BadFlag("trace", "missing",
			"a file with the traffic, or --prometheus and --query must be given"))
	case o.trace != "" && o.prometheus != "":
		errs = append(errs, cli.BadFlag("prometheus", fmt.Sprintf("%q", promapi.Redact(o.prometheus)),
			"left out where --trace is given"))
	case o.prometheus != "":
		require(o.query != "", "query", "missing",
			"PromQL that returns requests per second, such as 'sum(rate(http_requests_total[1m]))'")
	}
	require(o.prometheus != "" || o.query == "", "query", fmt.Sprintf("%q", o.query),
		"left out unless --prometheus is given")
	require(o.capacity == 0 || positive(o.capacity), "capacity", o.capacity, "finite and above 0, or 0 to derive it")
	_, err := o.prices.parse()
	return errors.Join(append(errs, err)...)
}

// readSpec takes Foresail's settings from a file, and the threshold and limits that no flag gives.
// A threshold of 1 or more is in requests per second.
func (o *backtestOptions) readSpec(c *cobra.Command, out *backtest.Options) error {
	p, err := readParams(o.spec)
	if err != nil {
		return err
	}
	if p.Threshold >= 1 {
		if o.capacity == 0 {
			return cli.BadFlag("capacity", "missing",
				fmt.Sprintf("given where --filename has a threshold of requests (%v)", p.Threshold))
		}
		out.Metric = backtest.Requests
		p.Threshold /= o.capacity
		p.Model.Baseline /= o.capacity
		p.Saturation = pipeline.Saturation{}
		if p.Threshold >= 1 {
			return cli.BadFlag("filename", fmt.Sprintf("threshold %v", p.Threshold*o.capacity),
				fmt.Sprintf("one with a threshold below --capacity (%v)", o.capacity))
		}
	}
	if !c.Flags().Changed("threshold") {
		o.threshold = p.Threshold
	}
	out.Params = p
	return o.takeLimits(c, p.Min, p.Max)
}

// takeLimits takes those limits of a spec that no flag gives. What scales to zero is played with a
// pod that stays. Without a maximum it follows from the traffic.
func (o *backtestOptions) takeLimits(c *cobra.Command, least, most int) error {
	if !c.Flags().Changed("min") {
		o.min, o.toZero = max(1, least), least == 0
	}
	if !c.Flags().Changed("max") {
		o.max = most
		o.maxFollows = most == math.MaxInt32
	}
	highest := min(o.max, maxSimulatedPods)
	if o.min > highest && c.Flags().Changed("min") {
		return cli.BadFlag("min", o.min, fmt.Sprintf("at most %d, the maximum of --filename, or --max must be given",
			highest))
	}
	if o.min > highest {
		return cli.BadFlag("filename", fmt.Sprintf("minReplicas %d", o.min),
			fmt.Sprintf("one of at most %d, or --min must be given", highest))
	}
	if o.max > highest && !o.maxFollows {
		return cli.BadFlag("filename", fmt.Sprintf("maxReplicas %d", o.max),
			fmt.Sprintf("one of at most %d, or --max must be given", highest))
	}
	return nil
}

// mostFor is the maximum where neither a flag nor the spec has one: twice what the largest rate of
// a trace needs, and no less than without a spec.
func (o *backtestOptions) mostFor(t *workload.Trace) int {
	most := float64(max(defaultMax, 2*o.min))
	if o.capacity > 0 {
		most = max(most, math.Ceil(2*t.Largest()/(o.capacity*o.threshold)))
	}
	return int(min(most, maxSimulatedPods))
}

// readTrace reads the traffic from the file or from Prometheus.
func (o *backtestOptions) readTrace(ctx context.Context) (*workload.Trace, error) {
	if o.prometheus == "" {
		return o.playOptions.readTrace()
	}
	trace, err := o.queryPrometheus(ctx)
	if err != nil {
		return nil, err
	}
	return trace.Scaled(o.scale), nil
}

// maxPrometheusSteps bounds the size of a query.
const maxPrometheusSteps = 1_000_000

func (o *backtestOptions) queryPrometheus(ctx context.Context) (*workload.Trace, error) {
	since, step, err := spanAndStep(o.since, o.step)
	if err != nil {
		return nil, err
	}
	api, err := cli.PastAPI(o.prometheus, o.serversFile)
	if err != nil {
		return nil, err
	}
	return backtest.ReadPrometheus(ctx, backtest.Question{
		API: api, Address: promapi.Redact(o.prometheus), Query: o.query, Name: "prometheus",
		To: time.Now(), Since: since, Step: step,
		Unanswered: "check that --query selects series there, and that they go back --since " + o.since,
	})
}
