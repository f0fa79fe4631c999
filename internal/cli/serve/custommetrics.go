package serve

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/foresail/foresail/adapter/apiservice"
)

const (
	customMetricsFlag = "custom-metrics"
	// customMetricsOwner is the ClusterRole that owns the APIServices, so that one is removed with
	// the others.
	customMetricsOwner = "foresail-custom-metrics"
)

// customMetricsOptions are the flags of the door over custom.metrics.k8s.io.
type customMetricsOptions struct {
	enabled bool
	flags   *pflag.FlagSet // that all of these are of
}

func (o *customMetricsOptions) addFlags(fs *pflag.FlagSet) {
	o.flags = fs
	fs.BoolVar(&o.enabled, customMetricsFlag, false,
		"Serve the metrics over custom.metrics.k8s.io too, for HPAs with a metric of type Object whose described object is a PredictedMetric, and create its APIServices. Foresail does not start while another server has that group.")
}

// validateAbsence refuses flags that would have no effect. A false one says so itself.
func (o *customMetricsOptions) validateAbsence(accept string) error {
	if !o.enabled {
		return nil
	}
	return refuseFlags(o.flags, customMetricsFlag, accept)
}

// apis are what is registered for the flag.
func (o *customMetricsOptions) apis() []apiservice.API {
	if !o.enabled {
		return nil
	}
	return apiservice.CustomMetrics(customMetricsOwner)
}

// checkFree returns why Foresail must not start: another server has the group, or the
// API server cannot say which does. HPAs read all metrics of the group by its preferred version, so that two servers would
// take metrics from each other.
func (o *customMetricsOptions) checkFree(ctx context.Context, config *rest.Config, service apiservice.Service) error {
	if !o.enabled {
		return nil
	}
	client, err := apiservice.NewClient(config)
	if err != nil {
		return fmt.Errorf("make a client for APIServices: %w", err)
	}
	err = apiservice.Free(ctx, client, service, o.apis()...)
	if held, ok := errors.AsType[*apiservice.HeldError](err); ok {
		return fmt.Errorf("--%s: %w, and HPAs could not read its metrics any more if Foresail registered beside it: "+
			"leave the flag out and have HPAs read external metrics, or remove that APIService first", customMetricsFlag, held)
	}
	if err != nil {
		return fmt.Errorf("--%s: whether another server has custom metrics is not known: %w", customMetricsFlag, err)
	}
	return nil
}
