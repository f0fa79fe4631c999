package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/foresail/foresail/internal/lab/backtest"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/workload"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/pipeline"
)

const backtestHelp = `Backtest plays scalers against your own traffic, as it was recorded: how often would each have
had too few pods, and what would its pods have cost? It needs no cluster and takes seconds.

The load comes from a file or from Prometheus. A file is CSV with a header and a line for each time:

  unix_seconds,requests_per_second
  1700000000,412.5
  1700000060,430

A query of Prometheus returns requests per second; the sum of its series is the load.

Lines a second apart are counts: as many requests arrive in the second that begins there. Where they
are further apart the load runs straight from line to line, and requests arrive at random. --scale
multiplies each rate; of counts the noise as well, though four times the traffic is only twice as
noisy.

Pods are alike. Each takes --capacity requests per second before it is fully busy, and is ready
--startup after it was ordered. A second is in violation if the load of a ready pod is above
--threshold, and saturated if it is above 1; minutes of either are such seconds, wherever they fall,
divided by 60. Requests are not simulated one by one: for latencies see foresail simulate.

The scalers are hpa-cpu and keda (HPAs on CPU and on utilisation as measured), paper (the paper's),
foresail-total, foresail-load and foresail-replicas (HPAs on what Foresail serves), foresail-direct,
and two bounds: clairvoyant knows the future, instant the present.

The HPAs of foresail-* have the behaviour that docs/hpa.md recommends: up without tolerance and by up
to 400% in 15 s, down after 30 s. Those of hpa-cpu and keda have an HPA's own, which ignores 10%,
doubles pods (or adds 4) in 15 s and keeps them for 5 minutes. How much is the forecast's doing and how
much the behaviour's tell keda/same-behavior and hpa-cpu/same-behavior, which have that of foresail-*,
and foresail-total/hpa-defaults, which has the HPA's own.

Settings for Foresail are searched on the first 60% of the trace and judged on the rest. What is
advised is what has held up there.

With --out a directory gets summary.csv, frontier.csv (cost against violations with other targets),
forecast.csv, charts, and report.html: one page without external parts, to be read and sent.`

const backtestExamples = `  # Recorded traffic, pods that take 120 requests per second and 40 s to start
  foresail backtest --trace traffic.csv --capacity 120 --startup 40s --out report

  # The last week, from Prometheus
  foresail backtest --prometheus http://localhost:9090 --query 'sum(rate(http_requests_total{app="web"}[1m]))' --since 7d

  # The settings of a live object
  kubectl get pm checkout-elu -o yaml > spec.yaml
  foresail backtest --trace traffic.csv --capacity 120 --spec spec.yaml`

// backtestOptions are the flags of the backtest command.
type backtestOptions struct {
	trace, prometheus, serversFile, query, since, step string
	capacity, threshold, scale, violationCost          float64
	startup                                            time.Duration
	min, max, seeds                                    int
	seed                                               uint64
	spec, out                                          string
	scalers                                            []string
	advise                                             bool
}

func newBacktestCommand() *cobra.Command {
	o := &backtestOptions{}
	c := &cobra.Command{
		Use:     "backtest --trace FILE | --prometheus URL --query PROMQL [flags]",
		Short:   "Play scalers against recorded traffic: what would have been late, and what would it have cost?",
		Long:    backtestHelp,
		Example: backtestExamples,
		Args:    noArguments,

		DisableFlagsInUseLine: true,
	}
	o.addFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error { return o.run(c) }
	return c
}

func (o *backtestOptions) addFlags(c *cobra.Command) {
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.trace, "trace", "", "`file` with the traffic, CSV")
	fs.StringVar(&o.prometheus, "prometheus", "", "`URL` of the Prometheus server that knows the traffic")
	fs.StringVar(&o.query, "query", "", "`PromQL` that returns requests per second; series are added up")
	fs.StringVar(&o.since, "since", "7d", "how far back to ask Prometheus, such as 12h or 7d")
	fs.StringVar(&o.step, "step", "1m", "time between two points that Prometheus is asked for")
	fs.StringVar(&o.serversFile, "prometheus-config-file", "", "`file` with the credentials and certificates of Prometheus servers, as foresail run takes it; empty asks without")
	fs.Float64Var(&o.scale, "scale", 1, "what to multiply each rate of the traffic by, and the noise in counts of seconds with it")
	fs.Float64Var(&o.capacity, "capacity", 0, "requests per second that keep one pod fully busy; 0 derives it from the traffic, so that its high end (99%) takes half of --max")
	fs.DurationVar(&o.startup, "startup", 25*time.Second, "how long a pod takes from being ordered to being ready")
	fs.Float64Var(&o.threshold, "threshold", 0.7, "utilisation of a pod that is not to be exceeded, and that scalers aim at")
	fs.IntVar(&o.min, "min", 2, "fewest pods")
	fs.IntVar(&o.max, "max", 20, "most pods")
	fs.StringVar(&o.spec, "spec", "", "`file` with a PredictedMetric or its spec: Foresail's settings, and the threshold and limits that are not given here")
	fs.StringSliceVar(&o.scalers, "scalers", backtest.Scalers(), "what to play; foresail-load/hpa-defaults and foresail-replicas/hpa-defaults are there too")
	fs.Uint64Var(&o.seed, "seed", 1, "of all that is random; the same seed gives the same figures")
	fs.IntVar(&o.seeds, "seeds", 1, "how many seeds to play, from --seed on; figures are their means")
	fs.BoolVar(&o.advise, "advise", true, "search for better settings")
	fs.Float64Var(&o.violationCost, "violation-cost", 1, "pod-hours that a minute (60 seconds) in violation is worth, for advice")
	fs.StringVar(&o.out, "out", "", "`directory` to write the report, the charts and the tables to; it is made if missing")
}

func (o *backtestOptions) run(c *cobra.Command) error {
	options, err := o.options(c)
	if err != nil {
		return err
	}
	progress := newRunProgress(c.ErrOrStderr(), 1)
	if progress.bar != nil { // how many runs there will be is not known, which lines could not tell
		options.Progress = func(_, all int) {
			progress.expect(all + 1) // more may come, and a bar that was full is not drawn again
			progress.step()
		}
	}
	result, err := backtest.Run(c.Context(), options)
	progress.end()
	if err != nil {
		return err
	}
	if err := result.WriteText(c.OutOrStdout()); err != nil || o.out == "" {
		return err
	}
	if err := result.WriteFiles(o.out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "\n%s has the report.\n", filepath.Join(o.out, backtest.ReportFile))
	return err
}

// options reads what flags name and finds what is wrong with them.
func (o *backtestOptions) options(c *cobra.Command) (*backtest.Options, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	out := &backtest.Options{
		Scalers: o.scalers, Startup: o.startup, Advise: o.advise, ViolationCost: o.violationCost, Metric: backtest.Utilization,
		Params: scaler.RecommendedParams(), Paper: scaler.PaperParams(), Behavior: scaler.RecommendedBehavior(),
	}
	for i := range o.seeds {
		out.Seeds = append(out.Seeds, o.seed+uint64(i))
	}
	if o.spec != "" {
		if err := o.readSpec(c, out); err != nil {
			return nil, err
		}
	}
	out.Threshold, out.Min, out.Max = o.threshold, o.min, o.max
	if o.out != "" {
		out.Targets = backtest.Targets(o.threshold)
	}
	trace, err := o.readTrace(c.Context())
	if err != nil {
		return nil, err
	}
	out.Trace = trace.Scaled(o.scale)
	out.Capacity, out.CapacityDerived = o.capacity, o.capacity == 0
	if out.CapacityDerived {
		if out.Capacity, err = backtest.Capacity(out.Trace, out.Threshold, out.Max); err != nil {
			return nil, badFlag("capacity", "missing", fmt.Sprintf("given: %v", err))
		}
	}
	if err := out.Validate(); err != nil {
		return nil, usageError{err}
	}
	return out, makeOut(o.out)
}

// validate finds what is wrong with flags on their own.
func (o *backtestOptions) validate() error {
	var errs []error
	require := func(ok bool, flag string, value any, accept string) {
		if !ok {
			errs = append(errs, badFlag(flag, value, accept))
		}
	}
	switch {
	case o.trace == "" && o.prometheus == "":
		errs = append(errs, badFlag("trace", "missing", "a file with the traffic, unless --prometheus and --query say where it is known"))
	case o.trace != "" && o.prometheus != "":
		errs = append(errs, badFlag("prometheus", fmt.Sprintf("%q", promapi.Redact(o.prometheus)), "left out where --trace is given"))
	case o.prometheus != "":
		require(o.query != "", "query", "missing", "PromQL that returns requests per second, such as 'sum(rate(http_requests_total[1m]))'")
	}
	require(o.prometheus != "" || o.query == "", "query", fmt.Sprintf("%q", o.query), "left out unless --prometheus says whom to ask")
	require(positive(o.scale), "scale", o.scale, "finite and above 0")
	require(o.capacity == 0 || positive(o.capacity), "capacity", o.capacity, "finite and above 0, or 0 to derive it")
	require(o.threshold > 0 && o.threshold < 1, "threshold", o.threshold, "above 0 and below 1")
	require(o.startup > 0 && o.startup <= time.Hour, "startup", o.startup, "above 0s and at most 1h")
	require(o.min >= 1, "min", o.min, "at least 1")
	require(o.max >= o.min && o.max <= 1000, "max", o.max, fmt.Sprintf("at least --min (%d) and at most 1000", o.min))
	require(o.seeds >= 1 && o.seeds <= 1000, "seeds", o.seeds, "from 1 to 1000")
	require(o.violationCost >= 0 && !math.IsInf(o.violationCost, 0), "violation-cost", o.violationCost, "finite, 0 or more")
	require(len(o.scalers) > 0, "scalers", "none", "some of "+strings.Join(scaler.AllNames(), ", "))
	for i, name := range o.scalers {
		require(slices.Contains(scaler.AllNames(), name), "scalers", fmt.Sprintf("%q", name), "some of "+strings.Join(scaler.AllNames(), ", "))
		require(!slices.Contains(o.scalers[:i], name), "scalers", fmt.Sprintf("%q", name), "listed once")
	}
	return errors.Join(errs...)
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// readSpec takes Foresail's settings from a file, and the threshold and limits that no flag gives. A threshold above 1 is
// one of requests per second.
func (o *backtestOptions) readSpec(c *cobra.Command, out *backtest.Options) error {
	p, err := readParams(o.spec)
	if err != nil {
		return err
	}
	if p.Threshold >= 1 {
		if o.capacity == 0 {
			return badFlag("capacity", "missing", fmt.Sprintf("given where --spec has a threshold of requests (%v)", p.Threshold))
		}
		out.Metric = backtest.Requests
		p.Threshold /= o.capacity
		p.Model.Baseline /= o.capacity
		p.Saturation = pipeline.Saturation{}
		if p.Threshold >= 1 {
			return badFlag("spec", fmt.Sprintf("threshold %v", p.Threshold*o.capacity), fmt.Sprintf("one with a threshold below --capacity (%v)", o.capacity))
		}
	}
	if !c.Flags().Changed("threshold") {
		o.threshold = p.Threshold
	}
	if !c.Flags().Changed("min") {
		o.min = p.Min
	}
	if !c.Flags().Changed("max") {
		o.max = p.Max
	}
	out.Params = p
	return nil
}

// readTrace reads the traffic from the file or from Prometheus.
func (o *backtestOptions) readTrace(ctx context.Context) (*workload.Trace, error) {
	if o.prometheus != "" {
		return o.askPrometheus(ctx)
	}
	file, err := os.Open(o.trace)
	if err != nil {
		return nil, badFlag("trace", err, workload.TraceHelp)
	}
	defer func() { _ = file.Close() }() // it was only read
	trace, err := workload.ReadTrace(workload.TraceName(o.trace), file)
	if err != nil {
		return nil, usageError{fmt.Errorf("--trace %s: %w", o.trace, err)}
	}
	return trace, nil
}

// mostPrometheusSteps bounds how much Prometheus is asked for.
const mostPrometheusSteps = 1_000_000

func (o *backtestOptions) askPrometheus(ctx context.Context) (*workload.Trace, error) {
	const span = "a span of time, such as 30s, 12h or 7d"
	since, err := model.ParseDuration(o.since)
	if err != nil || since == 0 {
		return nil, badFlag("since", fmt.Sprintf("%q", o.since), span)
	}
	step, err := model.ParseDuration(o.step)
	if err != nil || time.Duration(step) < time.Second {
		return nil, badFlag("step", fmt.Sprintf("%q", o.step), span+", at least 1s")
	}
	if n := since / step; n < 2 || n > mostPrometheusSteps {
		return nil, badFlag("step", o.step, fmt.Sprintf("such that there are 2 to %d in --since (%s)", mostPrometheusSteps, o.since))
	}
	if _, err := promapi.ParseAddress(o.prometheus); err != nil {
		return nil, badFlag("prometheus", fmt.Sprintf("%q", promapi.Redact(o.prometheus)), promapi.AcceptedAddress)
	}
	server := sourceOptions{prometheusFile: o.serversFile}
	if err := server.validateServers(); err != nil {
		return nil, usageError{err}
	}
	server.prometheus.MaxSeries, server.prometheus.MaxBytes = costMaxSeries, costMaxBytes
	api, err := newServers(&server).API(o.prometheus)
	if err != nil {
		return nil, usageError{fmt.Errorf("--prometheus: %w", err)}
	}
	return backtest.ReadPrometheus(ctx, backtest.Question{
		API: api, Address: promapi.Redact(o.prometheus), Query: o.query, Name: "prometheus",
		To: time.Now(), Since: time.Duration(since), Step: time.Duration(step),
		Unanswered: "look whether --query selects anything there, and whether it did --since " + o.since + " ago",
	})
}
