package inspect

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/adapter/keep/hpa"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
)

// Types of metrics, as an HPA names them.
const (
	externalMetric = string(autoscalingv2.ExternalMetricSourceType)
	objectMetric   = string(autoscalingv2.ObjectMetricSourceType)
)

// hpaOptions are the flags of the hpa command.
type hpaOptions struct {
	file        string
	maxReplicas int32
	metricType  string
}

func newHPACommand() *cobra.Command {
	k, o := &cli.Connection{}, &hpaOptions{}
	c := &cobra.Command{
		Use:   "hpa NAME [--namespace NAMESPACE] [--max N] [--metric-type TYPE] | hpa --filename FILE [--max N] [--metric-type TYPE]",
		Short: "Print the HorizontalPodAutoscaler that is recommended for a PredictedMetric",
		Long: `Hpa prints the HorizontalPodAutoscaler of a PredictedMetric as a manifest: the metric
predicted_load_total with its threshold, its minReplicas and maxReplicas, and the behavior that
a forecast needs. It changes nothing.

It is for those who keep the HPA themselves, beside the PredictedMetric. With spec.autoscaler
Foresail creates the very same one, and keeps it so. With --metric-type=Object it reads the
metric over custom.metrics.k8s.io, which foresail run --custom-metrics serves.

The PredictedMetric is read from the cluster, or with --filename from a manifest.`,
		Example: `  foresail hpa checkout-elu -n shop

  # Without a cluster
  foresail hpa -f predictedmetric.yaml --max 20

  # Has somebody changed the one in the cluster?
  foresail hpa checkout-elu -n shop | kubectl diff -f -`,
		Args: func(c *cobra.Command, args []string) error {
			if o.file != "" {
				return cli.NoArguments(c, args)
			}
			return cli.OneName(cli.AMetric)(c, args)
		},

		DisableFlagsInUseLine: true,
	}
	k.AddFlags(c)
	c.Flags().StringVarP(&k.Namespace, "namespace", "n", "",
		"`namespace` of the PredictedMetric; empty is that of the kubeconfig, or of the file")
	c.Flags().StringVarP(&o.file, "filename", "f", "",
		"`file` with the PredictedMetric, instead of a cluster; - is standard input")
	c.Flags().Int32Var(&o.maxReplicas, "max", 0,
		"most replicas that the HPA sets; 0 is spec.maxReplicas, which a PredictedMetric may lack")
	c.Flags().StringVar(&o.metricType, "metric-type", externalMetric,
		"`type` of the metric that the HPA reads: External, or Object over custom.metrics.k8s.io")
	c.ValidArgsFunction = k.CompleteMetrics
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.maxReplicas < 0 {
			return cli.BadFlag("max", o.maxReplicas, "0 or more")
		}
		if o.metricType != externalMetric && o.metricType != objectMetric {
			return cli.BadFlag("metric-type", fmt.Sprintf("%q", o.metricType), externalMetric+" or "+objectMetric)
		}
		pm, err := o.read(c, k, args)
		if err != nil {
			return err
		}
		return o.print(c.OutOrStdout(), pm)
	}
	return c
}

// read returns the PredictedMetric of a file, or of the cluster.
func (o *hpaOptions) read(c *cobra.Command, k *cli.Connection, args []string) (*v1alpha1.PredictedMetric, error) {
	if o.file != "" {
		pm, err := cli.ReadMetricFile(o.file, c.InOrStdin())
		if err != nil {
			return nil, cli.Unusable(fmt.Errorf("--filename %s: %w", o.file, err))
		}
		if k.Namespace != "" {
			pm.Namespace = k.Namespace
		}
		return pm, nil
	}
	objects, namespace, err := k.Namespaced()
	if err != nil {
		return nil, err
	}
	return cli.MetricNamed(c.Context(), objects, client.ObjectKey{Namespace: namespace, Name: args[0]})
}

func (o *hpaOptions) print(w io.Writer, pm *v1alpha1.PredictedMetric) error {
	if o.maxReplicas > 0 {
		pm.Spec.MaxReplicas = &o.maxReplicas
	}
	recommended, err := hpa.For(pm)
	if err != nil {
		return cli.Unusable(fmt.Errorf("the PredictedMetric does not say how many replicas there may be: %w; or --max",
			err))
	}
	if o.metricType == objectMetric {
		hpa.ReadObjectMetric(recommended)
	}
	text, err := manifest(recommended)
	if err != nil {
		return err
	}
	note := ""
	if len(pm.Spec.Schedules) > 0 {
		note = "# Its bounds are the widest of spec and spec.schedules: the metric keeps to those of the moment.\n"
	}
	if pm.Spec.DryRun {
		note += "# It keeps its replicas while spec.dryRun of the PredictedMetric is true: it reads an error.\n"
	}
	_, err = fmt.Fprintf(w, "# As recommended for the PredictedMetric %s. Before Kubernetes 1.35 leave tolerance out.\n%s%s", pm.Name, note, text)
	return err
}

// manifest leaves out what only a server fills in.
func manifest(o *autoscalingv2.HorizontalPodAutoscaler) ([]byte, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	delete(object, "status")
	return yaml.Marshal(object)
}
