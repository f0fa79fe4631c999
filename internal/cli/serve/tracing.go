package serve

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	"github.com/foresail/foresail/internal/cli"
)

const (
	tracingFlag = "tracing-config-file"
	// tracesEndWithin bounds how long the last spans may take to be sent when the process ends.
	tracesEndWithin = 5 * time.Second
	// allPerMillion samples everything.
	allPerMillion = 1_000_000
)

// tracingOptions are where OpenTelemetry traces are sent.
type tracingOptions struct{ file string }

func (o *tracingOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.file, tracingFlag, "",
		"File with a TracingConfiguration, as for kube-apiserver: the endpoint of an OpenTelemetry collector, to which traces go by OTLP over gRPC "+
			"without TLS, and samplingRatePerMillion, how many reads of forecasts and requests to the Kubernetes API are traced, in addition to those whose caller is traced. Actions of WorkerPools, from launch to "+
			"Ready and from drain to termination, are all traced. Empty sends nothing.")
}

func (o *tracingOptions) read() (*tracingapi.TracingConfiguration, error) {
	if o.file == "" {
		return nil, nil //nolint:nilnil // none is asked for
	}
	config, err := genericoptions.ReadTracingConfiguration(o.file)
	if err == nil {
		err = tracingapi.ValidateTracingConfiguration(config, feature.DefaultFeatureGate, nil).ToAggregate()
	}
	if err != nil {
		return nil, cli.BadFlag(tracingFlag, fmt.Sprintf("%q", o.file),
			fmt.Sprintf("a file with a TracingConfiguration of apiserver.config.k8s.io/v1: %v", err))
	}
	return config, nil
}

func (o *tracingOptions) validate() error {
	_, err := o.read()
	return err
}

// traces are tracers that send to the same collector.
type traces struct {
	sampled tracing.TracerProvider // of requests
	all     tracing.TracerProvider // of actions
}

// start connects to the collector in the background: one that cannot be reached keeps nothing from running.
func (o *tracingOptions) start(ctx context.Context) (*traces, error) {
	config, err := o.read()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname() // the name of the pod
	if err != nil {
		return nil, fmt.Errorf("read the name of this host: %w", err)
	}
	of := []resource.Option{
		resource.WithFromEnv(), // OTEL_RESOURCE_ATTRIBUTES
		resource.WithAttributes(semconv.ServiceName("foresail"), semconv.ServiceVersion(cli.BuildVersion()),
			semconv.ServiceInstanceID(host)),
	}
	out := &traces{}
	if out.sampled, err = tracing.NewProvider(ctx, config, nil, of); err != nil {
		return nil, fmt.Errorf("--%s: %w", tracingFlag, err)
	}
	if config != nil {
		config = config.DeepCopy()
		config.SamplingRatePerMillion = new(int32(allPerMillion))
	}
	if out.all, err = tracing.NewProvider(ctx, config, nil, of); err != nil {
		return nil, fmt.Errorf("--%s: %w", tracingFlag, err)
	}
	return out, nil
}

// end sends what has not been sent.
func (t *traces) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesEndWithin)
	defer cancel()
	// A collector that is away has been logged by the library.
	_ = t.sampled.Shutdown(ctx)
	_ = t.all.Shutdown(ctx)
}
