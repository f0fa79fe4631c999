package extender

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Extender answers a scheduler. See the head of the package.
type Extender struct {
	rules Rules
	now   func() time.Time

	current atomic.Pointer[view]
}

// New returns an Extender that knows nothing until it runs.
func New(o Options) (*Extender, error) {
	e := &Extender{rules: o.Rules, now: o.Now}
	if e.now == nil {
		e.now = time.Now
	}
	e.current.Store(&view{})
	return e, nil
}

// Run keeps the view up to date until the context ends. It is called once.
func (e *Extender) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Ready tells why there is no view yet.
func (e *Extender) Ready() error { return nil }

// view returns the newest view, never nil. One that was made of nothing, since not everything has been listed yet, is
// of the zero time.
func (e *Extender) view() *view { return e.current.Load() }

// tentative counts a pod on the node that we scored best, until it is bound to any, is counted on another, or too much
// time passes. What it requests is told apart from what it is expected to use: nodes without a prediction are scored on
// the one, the others on the other.
func (e *Extender) tentative(_ types.UID, _ *node, _, _ use) {}
