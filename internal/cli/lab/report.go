package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/lab/play/evaluation"
	"github.com/foresail/foresail/internal/lab/report"
	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/internal/promapi"
)

const reportHelp = `Report answers whether Foresail is worth it for your PredictedMetrics: what happened in the last day
and week, and what others would have done with the same load.

What happened is read from Foresail's own metrics in Prometheus: replicas, load, the time with too few
ready pods, pod-hours, scale-ups and scale-downs, and how good the forecasts were. It is what the
target's replicas were, whatever set them. Time in which the target was at its maximum, and even that
many pods were too few, is a figure of its own.

What would have been is simulated on the recorded load, as foresail backtest does: Foresail with the
spec and the startup time of the object, an HPA or KEDA on the measured metric with the HPA's default
behavior, the same with the behavior of Foresail's HPA, and the best possible, which knows the future.

Each figure has its 95% interval, and the verdict tells no difference that may be chance. Time that
is not recorded is in no figure, and the share that is known is printed.

With --pod-price and --minute-price it is in money as well. A minute above the threshold is one with too
few pods, or at the maximum.

Without a NAME it reports on all PredictedMetrics of the namespace, with -A on all of the cluster.
The Prometheus server must scrape /metrics of every replica of Foresail, with honor_labels: true.
A week of one PredictedMetric takes some 30 s of CPU time. It changes nothing.`

const reportExamples = `  kubectl -n monitoring port-forward svc/prometheus 9090 &
  foresail report checkout-elu -n shop --prometheus http://localhost:9090

  # All of the cluster, as a page for others to read
  foresail report -A --prometheus http://localhost:9090 --out report

  # In money: what a pod costs an hour, and what a minute above the threshold costs your business
  foresail report checkout-elu -n shop --prometheus http://localhost:9090 --pod-price 0.04USD --minute-price 5USD

  # For a program, of the last 12 hours
  foresail report checkout-elu -n shop --prometheus http://localhost:9090 --since 12h -o json | jq '.[0].spans[0].verdict'`

const (
	maxReports         = 500
	defaultReportSeeds = 3
	leastSince         = time.Hour
	mostSince          = 31 * 24 * time.Hour
	mostSpans          = 4
)

// reportOptions are the flags of the report command.
type reportOptions struct {
	prometheus, serversFile, file, out string
	all                                bool
	since                              []string
	seeds                              int
	capacity                           float64
	priceFlags                         priceFlags
	prices                             *score.Prices // that they say
}

func newReportCommand(now func() time.Time) *cobra.Command {
	k, o := &cli.Connection{}, &reportOptions{}
	c := &cobra.Command{
		Use:     "report [NAME | -A | -f FILE] --prometheus URL [flags]",
		Short:   "Show whether Foresail was worth it: what it did, and what an HPA would have done with the same load",
		Long:    reportHelp,
		Example: reportExamples,
		Args: func(c *cobra.Command, args []string) error {
			if o.file != "" || o.all || len(args) == 0 {
				return cli.NoArguments(c, args)
			}
			return cli.OneName(cli.AMetric)(c, args)
		},

		DisableFlagsInUseLine: true,
	}
	k.AddFlags(c)
	f := c.Flags()
	f.StringVarP(&k.Namespace, "namespace", "n", "",
		"`namespace` of the PredictedMetrics; empty is that of the kubeconfig, or of the file")
	f.BoolVarP(&o.all, "all-namespaces", "A", false, "report on the PredictedMetrics of all namespaces")
	f.StringVarP(&o.file, "filename", "f", "",
		"`file` with the PredictedMetric, instead of a cluster; - is standard input")
	f.StringVar(&o.prometheus, "prometheus", "",
		"`URL` of the Prometheus server that scrapes Foresail's /metrics (required)")
	f.StringVar(&o.serversFile, "prometheus-config-file", "",
		"`file` with the credentials and certificates of Prometheus servers, as for foresail run; empty queries without")
	f.StringSliceVar(&o.since, "since", []string{"1d", "7d"},
		"`spans` of time to report on, each up to now, such as 12h,1d,7d")
	f.IntVar(&o.seeds, "seeds", defaultReportSeeds, "how many seeds each scaler meets; figures are means over them")
	f.Float64Var(&o.capacity, "capacity", 100,
		"requests per second that keep one pod fully busy: the fewer, the more chance there is in the simulated load of a second")
	o.priceFlags.addFlags(f)
	f.StringVar(&o.out, "out", "", "`directory` for "+report.PageFile+", one self-contained page; empty writes none")
	output := cli.AddOutputFlag(c, "table", "json", "html")
	c.ValidArgsFunction = k.CompleteMetrics
	c.RunE = func(c *cobra.Command, args []string) error {
		spans, api, err := o.open()
		if err != nil {
			return err
		}
		metrics, err := o.metrics(c, k, args)
		if err != nil {
			return err
		}
		results, failed := o.evaluate(c, metrics, api, spans, now())
		if len(results) > 0 {
			failed = errors.Join(o.write(c.OutOrStdout(), output.String(), results), failed)
		}
		return failed
	}
	return c
}

// open validates flags and connects to the server.
func (o *reportOptions) open() (spans evaluation.Spans, api v1.API, err error) {
	var errs []error
	require := func(ok bool, flag string, value any, accept string) {
		if !ok {
			errs = append(errs, cli.BadFlag(flag, value, accept))
		}
	}
	require(!o.all || o.file == "", "filename", fmt.Sprintf("%q", o.file), "left out where --all-namespaces is given")
	require(o.seeds >= 1 && o.seeds <= maxSeeds, "seeds", o.seeds, fmt.Sprintf("from 1 to %d", maxSeeds))
	require(o.capacity >= 1 && o.capacity <= unplayableScale, "capacity", o.capacity,
		fmt.Sprintf("from 1 to %g", float64(unplayableScale)))
	require(len(o.since) >= 1 && len(o.since) <= mostSpans, "since", fmt.Sprint(len(o.since)),
		fmt.Sprintf("from 1 to %d spans of time", mostSpans))
	for _, name := range o.since {
		d, parseErr := model.ParseDuration(name)
		length := time.Duration(d)
		require(parseErr == nil && length >= leastSince && length <= mostSince, "since", fmt.Sprintf("%q", name),
			fmt.Sprintf("spans of time from %s to %s, such as 1d,7d", model.Duration(leastSince),
				model.Duration(mostSince)))
		require(!slices.Contains(spans.Lengths, length), "since", fmt.Sprintf("%q twice", name), "different spans")
		spans.Names, spans.Lengths = append(spans.Names, name), append(spans.Lengths, length)
	}
	if o.prometheus == "" {
		require(false, "prometheus", "missing", promapi.AcceptedAddress)
	}
	o.prices, err = o.priceFlags.parse()
	if err := errors.Join(append(errs, err)...); err != nil {
		return spans, nil, err
	}
	if api, err = cli.PastAPI(o.prometheus, o.serversFile); err != nil {
		return spans, nil, err
	}
	return spans, api, makeOut(o.out)
}

// metrics returns the PredictedMetrics that are meant, in order of namespace and name.
func (o *reportOptions) metrics(c *cobra.Command, k *cli.Connection, args []string) ([]v1alpha1.PredictedMetric,
	error) {
	if o.file != "" {
		pm, err := cli.ReadMetricFile(o.file, c.InOrStdin())
		if err != nil {
			return nil, cli.Unusable(fmt.Errorf("--filename %s: %w", o.file, err))
		}
		if k.Namespace != "" {
			pm.Namespace = k.Namespace
		}
		if pm.Namespace == "" {
			return nil, cli.BadFlag("namespace", "missing", "given where the file has no metadata.namespace")
		}
		return []v1alpha1.PredictedMetric{*pm}, nil
	}
	objects, namespace, err := k.Namespaced()
	if err != nil {
		return nil, err
	}
	if len(args) == 1 {
		pm, err := cli.MetricNamed(c.Context(), objects, client.ObjectKey{Namespace: namespace, Name: args[0]})
		if err != nil {
			return nil, err
		}
		return []v1alpha1.PredictedMetric{*pm}, nil
	}
	if o.all {
		namespace = ""
	}
	var list v1alpha1.PredictedMetricList
	if err := objects.List(c.Context(), &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list PredictedMetrics: %w", err)
	}
	switch n := len(list.Items); {
	case n == 0 && o.all:
		return nil, errors.New("there is no PredictedMetric in the cluster")
	case n == 0:
		return nil, fmt.Errorf("there is no PredictedMetric in namespace %s: -n names another one, -A takes all",
			namespace)
	case n > maxReports:
		return nil, fmt.Errorf("there are %d PredictedMetrics, and a report has at most %d: take a namespace at a time",
			n, maxReports)
	}
	return list.Items, nil
}

// evaluate reports on one PredictedMetric after the other. One that fails does not keep the others
// from being reported on.
func (o *reportOptions) evaluate(
	c *cobra.Command, metrics []v1alpha1.PredictedMetric, api v1.API, spans evaluation.Spans, now time.Time,
) ([]*evaluation.Result, error) {
	ctx := c.Context()
	source := evaluation.Source{API: api, Address: promapi.Redact(o.prometheus)}
	progress := newRunProgress(c.ErrOrStderr(), 0)
	defer progress.end()
	play := evaluation.Play{Capacity: o.capacity, Prices: o.prices}
	for i := range o.seeds {
		play.Seeds = append(play.Seeds, firstSeed+uint64(i))
	}
	var results []*evaluation.Result
	var failed error
	played := 0
	for i := range metrics {
		pm := &metrics[i]
		before, mine := played, 0
		play.Progress = func(_, all int) {
			mine = all
			played++
			progress.expect(before + mine*(len(metrics)-i))
			progress.step()
		}
		key := types.NamespacedName{Namespace: pm.Namespace, Name: pm.Name}
		result, err := resultOf(ctx, pm, key, source, spans, play, now)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return results, errors.Join(failed,
				fmt.Errorf("%d of %d PredictedMetrics are reported on: %w", len(results), len(metrics), cause))
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("PredictedMetric %s: %w", key, err))
			continue
		}
		results = append(results, result)
	}
	return results, failed
}

func resultOf(
	ctx context.Context, pm *v1alpha1.PredictedMetric, key types.NamespacedName, source evaluation.Source,
	spans evaluation.Spans, play evaluation.Play, now time.Time,
) (*evaluation.Result, error) {
	record, err := evaluation.Read(ctx, source, key, now, spans.Longest())
	if err != nil {
		return nil, err
	}
	return evaluation.Evaluate(ctx, pm, record, spans, play)
}

// write writes the results, and the page of --out.
func (o *reportOptions) write(w io.Writer, format string, results []*evaluation.Result) error {
	all := evaluation.ReportOn(results)
	var err error
	switch format {
	case "table":
		return writeReport(w, all, o.out)
	case "html":
		err = all.WritePage(w)
	default:
		err = cli.PrintJSON(w, results)
	}
	if err != nil || o.out == "" {
		return err
	}
	return all.Save(o.out)
}
