package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
)

func newExplainMetricCommand(k *cli.Connection, now func() time.Time) *cobra.Command {
	c := &cobra.Command{
		Use:     "predictedmetric NAME [--namespace NAMESPACE] [--output table|json] [--watch]",
		Aliases: []string{"pm", "predictedmetrics"},
		Short:   "Show what is forecast for a target, from which samples, what was decided and what an HPA reads",
		Long: `The table has, from top to bottom: the target, its replicas and its load per pod now, with the
conditions and, with spec.schedules, those that hold; the samples; the forecast, with its horizon and why that long; the decisions, the
newest first; and the three metrics that an HPA can read, with how kubectl get hpa shows them.

All of it is from the status, which is written at once after a decision or a change of a
condition, else about every 15s. With --output json it is the spec and the status.

` + watchHelp,
		Example: `  foresail explain predictedmetric checkout-elu -n shop

  # Follow it, such as one with spec.dryRun
  foresail explain pm checkout-elu -n shop --watch

  # The replicas that the forecast needs, as they change
  foresail explain pm checkout-elu -n shop -w -o json | jq -c '[.status.updateTime, .status.replicas, .status.desiredReplicas]'`,
		Args: cli.OneName(cli.AMetric),

		DisableFlagsInUseLine: true,
	}
	c.Flags().StringVarP(&k.Namespace, "namespace", "n", "",
		"`namespace` of the PredictedMetric; empty is that of the kubeconfig")
	output := cli.AddOutputFlag(c, "table", "json")
	watch := addWatchFlag(c)
	c.ValidArgsFunction = k.CompleteMetrics
	c.RunE = func(c *cobra.Command, args []string) error {
		objects, namespace, err := k.Namespaced()
		if err != nil {
			return err
		}
		return printExplanation(c, *watch, output.String(), func(ctx context.Context) (explanation, error) {
			return explainMetric(ctx, objects, client.ObjectKey{Namespace: namespace, Name: args[0]}, now)
		})
	}
	return c
}

func explainMetric(ctx context.Context, objects client.Client, key client.ObjectKey, now func() time.Time) (explanation,
	error) {
	pm, err := cli.MetricNamed(ctx, objects, key)
	if err != nil {
		return explanation{}, err
	}
	value := struct {
		Namespace string                         `json:"namespace"`
		Name      string                         `json:"name"`
		Spec      v1alpha1.PredictedMetricSpec   `json:"spec"`
		Status    v1alpha1.PredictedMetricStatus `json:"status"`
	}{pm.Namespace, pm.Name, pm.Spec, pm.Status}
	return explanation{value: value, state: []any{pm.UID, value},
		table: func(w io.Writer) error { return printMetric(w, pm, now()) }}, nil
}

// metricTable writes an explanation of a PredictedMetric. Tabs make columns within a section.
type metricTable struct {
	tabs *tabwriter.Writer
	pm   *v1alpha1.PredictedMetric
	now  time.Time
}

func (t *metricTable) line(format string, args ...any) { fmt.Fprintf(t.tabs, format+"\n", args...) }

func (t *metricTable) section(title string) {
	t.line("")
	t.tabs.Flush()
	t.line("%s", title)
}

func printMetric(w io.Writer, pm *v1alpha1.PredictedMetric, now time.Time) error {
	pm = pm.DeepCopy()
	pm.Spec.Default() // it may come from elsewhere than an API server
	var b strings.Builder
	t := &metricTable{tabs: tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0), pm: pm, now: now}
	t.line("PredictedMetric %s/%s, %s old, generation %d", pm.Namespace, pm.Name, t.since(&pm.CreationTimestamp),
		pm.Generation)
	t.state()
	t.samples()
	t.forecast()
	t.decisions()
	t.served()
	t.tabs.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *metricTable) state() {
	s := &t.pm.Status
	t.line("  target\t%s %s", t.pm.Spec.ScaleTargetRef.Kind, t.pm.Spec.ScaleTargetRef.Name)
	if s.UpdateTime == nil && len(s.Conditions) == 0 {
		t.line("  status\tnot written yet: is foresail run --enable adapter running?")
		return
	}
	t.line("  status\twritten %s ago", t.since(s.UpdateTime))
	if t.pm.Spec.DryRun {
		t.line("  dry run\tspec.dryRun is true: nothing acts on this forecast, and an HPA that reads it gets an error and keeps its replicas")
	}
	t.section("Now")
	t.line("  replicas\t%s set, %s Ready, %s needed", count(s.Replicas), count(s.ReadyReplicas),
		count(s.DesiredReplicas))
	if s.MinReplicas != nil {
		most := ""
		if s.MaxReplicas != nil {
			most = " and at most " + count(s.MaxReplicas)
		}
		t.line("  schedules\t%s: at least %s%s replicas now",
			cmp.Or(strings.Join(s.ActiveSchedules, ", "), "none active"), count(s.MinReplicas), most)
	}
	t.line("  instances\t%s carried load at the newest sample", count(s.Instances))
	t.line("  load\t%s a pod, threshold %s", amount(s.Current), amount(&t.pm.Spec.Threshold))
	if s.TargetDesiredReplicas != nil && s.DrivenBy != "" && s.DrivenBy != t.pm.Name {
		t.line("  together\t%s replicas needed by all PredictedMetrics of the target, the most by %s",
			count(s.TargetDesiredReplicas), s.DrivenBy)
	}
	for _, c := range s.Conditions {
		t.line("  %s\t%s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
}

func (t *metricTable) samples() {
	s := &t.pm.Status
	if s.Source == "" {
		return
	}
	t.section("Samples")
	t.line("  source\t%s, %s samples a second of all pods", s.Source, amount(s.SamplesPerSecond))
	if s.SampleInterval != nil {
		t.line("  interval\t%s between two samples of a pod", s.SampleInterval.Duration)
	}
	if s.SampleAge != nil {
		t.line("  age\t%s when the status was written; not served from %s on", s.SampleAge.Duration,
			params.StaleAfter(&t.pm.Spec))
	}
	t.line("  unreadable\t%s pods", count(s.UnreadablePods))
}

func (t *metricTable) forecast() {
	s := &t.pm.Status
	if s.Horizon == nil {
		return
	}
	t.section("Forecast, method " + string(t.pm.Spec.Method()))
	t.line("  level\t%s: the load of all pods together, smoothed", amount(s.Level))
	t.line("  trend\t%s more each %s", amount(s.Trend), span(t.pm.Spec.SampleInterval))
	t.line("  predicted\t%s a pod in %s with %s replicas", amount(s.Predicted), s.Horizon.Duration, count(s.Replicas))
	h := &t.pm.Spec.Horizon
	t.line("  horizon\t%s: the startup time, at least %s and at most %s, and %s until the HPA acts",
		s.Horizon.Duration, span(h.Min), span(h.Max), span(h.ReactionDelay))
	measured := "assumed (startupTime), as no start-up has been measured"
	if n := s.StartupsMeasured; n != nil && *n > 0 {
		measured = fmt.Sprintf("measured from %d start-ups", *n)
	}
	t.line("  startup time\t%s, %s", span(s.StartupTime), measured)
	if s.Learned != nil {
		t.line("  learned\tfrom %s of this load", s.Learned.Duration)
	}
	if s.Late != "" && t.pm.Spec.Lateness != "" {
		t.line("  late\tpods were too few for %s of the last day; spec.lateness is %s", s.Late, t.pm.Spec.Lateness)
	}
}

func (t *metricTable) decisions() {
	last := t.pm.Status.LastDecision
	if last == nil {
		t.section("No decision yet")
		return
	}
	t.section("Decisions, the newest first")
	for _, d := range append([]v1alpha1.LastDecision{*last}, t.pm.Status.PreviousDecisions...) {
		t.line("  %s\t%s\t%s\t%d replicas\t%s", d.Time.Format(time.DateTime), d.Action, d.Reason, d.Desired, d.Message)
	}
}

func (t *metricTable) served() {
	s := t.pm.Status.Served
	if s == nil {
		return
	}
	t.section("What an HPA reads")
	threshold := t.pm.Spec.Threshold.String()
	t.line("  %s\t%s\ttarget AverageValue %s; kubectl get hpa shows %s/%s (avg)", serving.LoadTotal,
		amount(s.LoadTotal), threshold, perReplica(s.LoadTotal, t.pm.Status.Replicas), threshold)
	t.line("  %s\t%s\ttarget Value %s; kubectl get hpa shows %s/%s", serving.Load, amount(s.Load), threshold,
		written(s.Load), threshold)
	t.line("  %s\t%s\ttarget AverageValue 1; kubectl get hpa shows %s/1 (avg)", serving.Replicas, amount(s.Replicas),
		perReplica(s.Replicas, t.pm.Status.Replicas))
	t.line("")
	t.tabs.Flush()
	t.line("  The load of a pod now (LOAD, %s) is not what the HPA shows. The HPA reads threshold × the replicas needed, and sets", written(t.pm.Status.Current))
	t.line("  these, rounded up: it shows the threshold or less while there are enough replicas, and more while there are too few.")
}

// perReplica returns what kubectl get hpa shows of an AverageValue: the value over the replicas, rounded up.
func perReplica(total *resource.Quantity, replicas *int32) string {
	if total == nil || replicas == nil || *replicas < 1 {
		return "unknown"
	}
	n := int64(*replicas)
	return resource.NewMilliQuantity((total.MilliValue()+n-1)/n, resource.DecimalSI).String()
}

func (t *metricTable) since(at *metav1.Time) string {
	if at.IsZero() {
		return "unknown time"
	}
	return duration.HumanDuration(max(0, t.now.Sub(at.Time)))
}

func count(n *int32) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

// amount formats a quantity as a plain number, without suffixes such as m.
func amount(q *resource.Quantity) string {
	if q == nil {
		return "unknown"
	}
	exact := q.DeepCopy() // AsDec changes what it is called on
	text := exact.AsDec().String()
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// written formats a quantity as kubectl and manifests have it.
func written(q *resource.Quantity) string {
	if q == nil {
		return "unknown"
	}
	return q.String()
}

func span(d *metav1.Duration) string {
	if d == nil {
		return "unknown"
	}
	return d.Duration.String()
}
