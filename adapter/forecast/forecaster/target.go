package forecaster

import (
	"sync/atomic"
	"time"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/pipeline"
)

// Pods is the pods of the target, as package podtracker follows them.
type Pods interface {
	// Instances returns the active instances, and the ones that ended at or after since.
	Instances(since time.Time) []podtracker.Instance
	// Lost returns since when changes of the pods are not seen, and why; zero while they are seen.
	Lost() (since time.Time, why error)
	// Ready counts ready pods as the HPA controller does.
	Ready() int
	// StartupTime estimates how long a pod takes to start as a method does, from an assumed value
	// and the start-ups measured.
	StartupTime(m pipeline.Method, initial time.Duration) time.Duration
	// StartupTimeOnNode is the same without the wait for a node.
	StartupTimeOnNode(m pipeline.Method, initial time.Duration) time.Duration
	// StartupsMeasured counts those.
	StartupsMeasured() int
}

// scaleTarget is the scale target of a feed: the pods, and whether changes of its scale are seen.
type scaleTarget struct {
	pods  atomic.Pointer[Pods]
	nodes func() time.Duration // Options.NodeStartupTime; set before the feed is found
	lost  atomic.Pointer[func() time.Time]
	read  atomic.Bool // its scale has been read, or could not be
}

// known returns its pods, nil while it has not been found.
func (t *scaleTarget) known() Pods {
	if pods := t.pods.Load(); pods != nil {
		return *pods
	}
	return nil
}

// instances returns those of the pods, none while there are no pods.
func (t *scaleTarget) instances(since time.Time) []podtracker.Instance {
	if pods := t.known(); pods != nil {
		return pods.Instances(since)
	}
	return nil
}

func (t *scaleTarget) ready() int {
	if pods := t.known(); pods != nil {
		return pods.Ready()
	}
	return 0
}

// scaleLost returns since when changes of the scale are not seen, zero while they are.
func (t *scaleTarget) scaleLost() time.Time {
	if lost := t.lost.Load(); lost != nil && *lost != nil {
		return (*lost)()
	}
	return time.Time{}
}

func (t *scaleTarget) startupTime(c *Config) time.Duration {
	p, pods := &c.Params, t.known()
	switch {
	case pods == nil || !c.MeasureStartup:
		return p.StartupTime
	case c.NodeForecast: // the farther forecast adds the wait for a node: the nearer one is of pods that find one
		return pods.StartupTimeOnNode(p.Method, p.StartupTime)
	}
	return pods.StartupTime(p.Method, p.StartupTime)
}

// nodeStartupTime returns how long a node takes to start, 0 while no farther forecast needs it.
func (t *scaleTarget) nodeStartupTime(c *Config) time.Duration {
	if c.NodeStartupTime > 0 || t.nodes == nil {
		return c.NodeStartupTime
	}
	return t.nodes()
}
