package serve

import (
	"context"

	cliflag "k8s.io/component-base/cli/flag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/adapter/predictedmetric"
)

// door is a way to read forecasts. Its flags say whether it is open.
type door interface {
	addFlags(*cliflag.NamedFlagSets)
	// validate returns what is wrong with the flags, joined. It reads the files that they name and changes nothing.
	validate() error
	// validateAbsence refuses flags that have no effect, as nothing is forecast; accept says so.
	validateAbsence(accept string) error
	// open listens, and returns what is to run; nil: the door is not open.
	open(context.Context, *doorOptions) (*part, error)
}

// doorOptions are what doors are opened with.
type doorOptions struct {
	mgr        ctrl.Manager
	forecaster *forecaster.Forecaster
	reconciler *predictedmetric.Reconciler
	known      func() error // returns why pods or PredictedMetrics are not all known yet
	forecasts  func() error // returns why there are no forecasts yet
	ready      func() error // returns why the process is not ready yet
}
