package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/lab/threshold"
	"github.com/foresail/foresail/internal/promapi"
)

const thresholdHelp = `Threshold finds how much load a pod can have before its users wait: the threshold of a PredictedMetric.
It compares the load of pods with the latency of their requests at the same times, in the history of
Prometheus or in a load test. It needs no Foresail, and changes nothing.

--load returns what the PredictedMetric is to read, for each pod; their mean is the load of a pod.
--latency returns one series, in seconds, such as the 99th percentile. Let both look back equally far.

A file has a line for each time of a load test:

  unix_seconds,load,latency_seconds
  1700000000,0.31,0.042
  1700000060,0.35,0.044

The answer is the most load at which the latency was above --objective in no more than --share of the
measurements, where more load is never taken to be faster: moments that were slow for another reason,
such as a deployment, count little. Its 90% interval comes from drawing parts of the time at random,
and the threshold is the lower end of that, rounded down to two digits.

There is no answer where pods were never full, where they are slow with any load, and where slow
moments have no more load than others: then the metric is not what makes users wait.`

const thresholdExamples = `  # From the last week, in which pods were full at times
  foresail threshold --prometheus http://localhost:9090 --objective 250ms \
    --load 'rate(process_cpu_seconds_total{app="checkout"}[1m])' \
    --latency 'histogram_quantile(0.99, sum by (le) (rate(http_request_duration_seconds_bucket{app="checkout"}[1m])))'

  # From a load test
  foresail threshold --input loadtest.csv --objective 250ms`

// thresholdOptions are the flags of the threshold command.
type thresholdOptions struct {
	prometheus, serversFile, load, latency, since, step, input string
	objective                                                  time.Duration
	share                                                      float64
}

func newThresholdCommand(now func() time.Time) *cobra.Command {
	o := &thresholdOptions{}
	c := &cobra.Command{
		Use:     "threshold --objective DURATION {--prometheus URL --load PROMQL --latency PROMQL | --input FILE} [flags]",
		Short:   "Find how much load a pod can have before its users wait",
		Long:    thresholdHelp,
		Example: thresholdExamples,
		Args:    cli.NoArguments,

		DisableFlagsInUseLine: true,
	}
	fs := c.Flags()
	fs.DurationVar(&o.objective, "objective", 0, "latency that users are to have at the most, such as 250ms (required)")
	fs.StringVar(&o.prometheus, "prometheus", "", "`URL` of the Prometheus server that has load and latency")
	fs.StringVar(&o.load, "load", "", "`PromQL` that returns the load of each pod")
	fs.StringVar(&o.latency, "latency", "", "`PromQL` that returns the latency, in seconds")
	fs.StringVar(&o.since, "since", "7d", "how far back to query Prometheus, such as 12h or 7d")
	fs.StringVar(&o.step, "step", "1m", "time between two measurements")
	fs.StringVar(&o.serversFile, "prometheus-config-file", "",
		"`file` with the credentials and certificates of Prometheus servers, as for foresail run; empty queries without")
	fs.StringVar(&o.input, "input", "", "`file` with measurements, instead of --prometheus; - is standard input")
	fs.Float64Var(&o.share, "share", 0.05, "share of the measurements at a load that may be above --objective")
	output := cli.AddOutputFlag(c, "table", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		measurements, err := o.read(c, now())
		if err != nil {
			return err
		}
		q := threshold.Question{Measurements: measurements, Limit: o.objective.Seconds(), Share: o.share,
			Seed: firstSeed}
		answer, err := threshold.Find(q)
		if err != nil {
			return err
		}
		if output.String() == "json" {
			return writeThreshold(c, &q, answer)
		}
		return answer.Report(&q).WriteText(c.OutOrStdout())
	}
	return c
}

// validate returns everything that is wrong with the flags.
func (o *thresholdOptions) validate() error {
	var errs []error
	require := func(ok bool, flag string, value any, accept string) {
		if !ok {
			errs = append(errs, cli.BadFlag(flag, value, accept))
		}
	}
	require(o.objective > 0, "objective", o.objective, "above 0s, such as 250ms")
	require(o.share >= 0 && o.share <= 0.5, "share", o.share, "from 0 to 0.5")
	switch {
	case o.input == "" && o.prometheus == "":
		require(false, "prometheus", "missing", "the URL of a Prometheus server, or --input must be given")
	case o.input != "":
		for _, given := range []struct{ flag, value string }{{"prometheus", promapi.Redact(o.prometheus)},
			{"load", o.load}, {"latency", o.latency}} {
			require(given.value == "", given.flag, fmt.Sprintf("%q", given.value), "left out where --input is given")
		}
	default:
		require(o.load != "", "load", "missing",
			`PromQL that returns the load of each pod, such as 'rate(process_cpu_seconds_total{app="checkout"}[1m])'`)
		require(o.latency != "", "latency", "missing",
			"PromQL that returns the latency in seconds, such as 'histogram_quantile(0.99, sum by (le) (rate(http_request_duration_seconds_bucket[1m])))'")
	}
	return errors.Join(errs...)
}

func (o *thresholdOptions) read(c *cobra.Command, now time.Time) ([]threshold.Measurement, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.input == "" {
		return o.query(c.Context(), now)
	}
	in := c.InOrStdin()
	if o.input != "-" {
		file, err := os.Open(o.input)
		if err != nil {
			return nil, cli.BadFlag("input", err, "a file that can be read")
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	measurements, err := threshold.ReadCSV(in)
	if err != nil {
		return nil, cli.Unusable(fmt.Errorf("--input: %s: %w", o.input, err))
	}
	return measurements, nil
}

func (o *thresholdOptions) query(ctx context.Context, now time.Time) ([]threshold.Measurement, error) {
	since, step, err := spanAndStep(o.since, o.step)
	if err != nil {
		return nil, err
	}
	api, err := cli.PastAPI(o.prometheus, o.serversFile)
	if err != nil {
		return nil, err
	}
	source := threshold.Source{API: api, Address: promapi.Redact(o.prometheus)}
	return source.ReadPrometheus(ctx, o.load, o.latency, now, since, step)
}

// spanAndStep are how far back to query Prometheus, and in which steps.
func spanAndStep(sinceText, stepText string) (since, step time.Duration, err error) {
	const span = "a span of time, such as 30s, 12h or 7d"
	back, err := model.ParseDuration(sinceText)
	if err != nil || back == 0 {
		return 0, 0, cli.BadFlag("since", fmt.Sprintf("%q", sinceText), span)
	}
	each, err := model.ParseDuration(stepText)
	if err != nil || time.Duration(each) < time.Second {
		return 0, 0, cli.BadFlag("step", fmt.Sprintf("%q", stepText), span+", at least 1s")
	}
	if n := back / each; n < 2 || n > maxPrometheusSteps {
		return 0, 0, cli.BadFlag("step", stepText,
			fmt.Sprintf("such that there are 2 to %d in --since (%s)", maxPrometheusSteps, sinceText))
	}
	return time.Duration(back), time.Duration(each), nil
}

// writeThreshold writes an answer for programs; what is not known is absent.
func writeThreshold(c *cobra.Command, q *threshold.Question, a *threshold.Answer) error {
	known := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	out := struct {
		Outcome      threshold.Outcome `json:"outcome"`
		Threshold    string            `json:"threshold,omitempty"`
		MostLoad     *float64          `json:"mostLoad,omitempty"`
		Low          *float64          `json:"low,omitempty"`
		High         *float64          `json:"high,omitempty"`
		ToldApart    *float64          `json:"toldApart,omitempty"`
		Measurements int               `json:"measurements"`
		Above        int               `json:"aboveObjective"`
		Verdict      string            `json:"verdict"`
		Rows         []threshold.Row   `json:"byLoad"`
	}{
		a.Outcome, a.Quantity(), known(a.Threshold), known(a.Low), known(a.High), known(a.ToldApart),
		a.Measurements, a.Slow, a.Verdict(q), a.Rows,
	}
	return cli.PrintJSON(c.OutOrStdout(), out)
}
