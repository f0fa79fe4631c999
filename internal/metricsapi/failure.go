// Package metricsapi says in the terms of those who run a cluster why metrics.k8s.io could not be read.
package metricsapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Result classifies how a list ended.
type Result string

// The results there are.
const (
	Success     Result = "success"
	Missing     Result = "missing" // nothing serves the API
	Forbidden   Result = "forbidden"
	Unavailable Result = "unavailable" // the API is registered, but its server does not answer
	Timeout     Result = "timeout"
	Failed      Result = "error"
)

// Results returns all of them.
func Results() []Result { return []Result{Success, Missing, Forbidden, Unavailable, Timeout, Failed} }

// Failure is why a list brought nothing.
type Failure struct {
	Result Result
	err    error
}

func (f *Failure) Error() string { return f.err.Error() }

func (f *Failure) Unwrap() error { return f.err }

// List is what was listed, to be named in errors.
type List struct {
	What    string // such as: the PodMetrics of the namespace "shop"
	Grant   string // what the verb list must be granted on, such as: the resource pods of metrics.k8s.io
	Where   string // where that is, such as: in the namespace "shop"; "" = in the cluster
	Timeout time.Duration
}

// Explain says what failed and what would help. late says that the time of the list was up.
func (l *List) Explain(err error, late bool) *Failure {
	r := classify(err, late)
	return &Failure{Result: r, err: l.text(r, err)}
}

func classify(err error, late bool) Result {
	switch {
	case late, errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return Timeout
	case apierrors.IsNotFound(err):
		return Missing
	case apierrors.IsForbidden(err):
		return Forbidden
	case apierrors.IsServiceUnavailable(err):
		return Unavailable
	default:
		return Failed
	}
}

func (l *List) text(r Result, err error) error {
	switch r {
	case Missing:
		return fmt.Errorf("metrics.k8s.io is not served: install metrics-server: %w", err)
	case Forbidden:
		where := ""
		if l.Where != "" {
			where = " " + l.Where
		}
		return fmt.Errorf("the verb list on %s is forbidden%s: grant it: %w", l.Grant, where, err)
	case Unavailable:
		return fmt.Errorf("metrics.k8s.io is registered, but its server does not answer: see whether metrics-server is ready: %w", err)
	case Timeout:
		return fmt.Errorf("%s were not listed within %s: %w", l.What, l.Timeout, err)
	default:
		return fmt.Errorf("list %s: %w", l.What, err)
	}
}
