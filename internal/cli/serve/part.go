package serve

import (
	"context"
	"errors"
)

// Parts of run, as --enable names them.
const (
	enableAdapter  = "adapter"
	enableNodePool = "nodepool"
	enableExtender = "extender"

	acceptEnable = enableAdapter + ", " + enableNodePool + ", " + enableExtender + ", or several with commas in between"
)

// Groups of flags in the help of run and in the tables of the documentation.
const (
	groupRun      = "general"
	groupCluster  = "cluster"
	groupAPI      = "API service"
	groupCustom   = "custom metrics"
	groupKEDA     = "KEDA"
	groupForward  = "forwarding"
	groupSamples  = "samples"
	groupNodePool = "worker pools"
	groupExtender = "scheduler extender"
	groupLogging  = "logging"
)

// part is an enabled part, wired and not yet running.
type part struct {
	ready func() error // returns why the part is not ready yet; nil: it always is
	// returns why only a restart helps; nil: nothing is known that it would help against
	alive func() error
	run   []func(context.Context) error // run next to the manager
}

func (p *part) readiness() func() error { return p.ready }
func (p *part) liveness() func() error  { return p.alive }

// join returns what is wrong with parts, joined.
func join(parts []*part, check func(*part) func() error) error {
	var errs []error
	for _, p := range parts {
		if wrong := check(p); wrong != nil {
			errs = append(errs, wrong())
		}
	}
	return errors.Join(errs...)
}

type runnable func(context.Context) error

func (r runnable) Start(ctx context.Context) error { return r(ctx) }
