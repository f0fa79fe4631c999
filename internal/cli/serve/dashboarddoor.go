package serve

import (
	"context"
	"fmt"
	"time"

	cliflag "k8s.io/component-base/cli/flag"

	"github.com/foresail/foresail/adapter/door/dashboard"
	"github.com/foresail/foresail/adapter/predictedmetric"
	"github.com/foresail/foresail/internal/cli"
)

// dashboardFlag is the flag of run that has replicas serve what the page shows.
const dashboardFlag = "dashboard"

// dashboardDoor is the door for people: what foresail dashboard shows.
type dashboardDoor struct {
	enabled bool
	serving *servingOptions // its address
}

func (d *dashboardDoor) addFlags(groups *cliflag.NamedFlagSets) {
	groups.FlagSet(groupRun).BoolVar(&d.enabled, dashboardFlag, false,
		"Record the last hour of every PredictedMetric, and serve it to foresail dashboard below /dashboard/ of --metrics-address, to clients with the right to get these paths. It takes at most 41 KiB of memory for each PredictedMetric.")
}

func (d *dashboardDoor) validate() error {
	if d.serving.metricsAddress == noAddress {
		return d.validateAbsence("left out with --" + metricsAddressFlag + "=0, which serves nothing")
	}
	return nil
}

func (d *dashboardDoor) validateAbsence(accept string) error {
	if !d.enabled {
		return nil
	}
	return cli.BadFlag(dashboardFlag, true, accept)
}

func (d *dashboardDoor) open(_ context.Context, o *doorOptions) (*part, error) {
	if !d.enabled {
		return nil, nil
	}
	page := dashboard.New(predictedmetric.Reader{Reconciler: o.reconciler}, time.Now)
	if err := o.mgr.AddMetricsServerExtraHandler(dashboard.Path, page.Handler()); err != nil {
		return nil, fmt.Errorf("serve what foresail dashboard shows: %w", err)
	}
	return &part{run: []func(context.Context) error{page.Run}}, nil
}
