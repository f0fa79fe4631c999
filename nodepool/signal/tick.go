package signal

import "k8s.io/klog/v2"

// tick is one observation, prepared for all signals.
type tick struct {
	Observation
	log     klog.Logger
	now     int64 // ms
	roseAt  int64 // when Expected last rose (ms), or pipeline.Never
	loaded  []loadedNode
	working int       // loaded nodes that are Ready and not leaving
	periods []*period // of the window
}

// demand returns the requests of unschedulable pods, in nodes.
func (t *tick) demand() loads { return loads{t.Demand.CPU, t.Demand.Memory, t.Demand.Slots} }

// demandOf returns the demand of a signal's resource, in nodes, or the largest one for other signals.
func (t *tick) demandOf(name string) float64 {
	switch d := t.demand(); name {
	case CPU:
		return d[cpu]
	case Memory:
		return d[memory]
	default:
		return d.largest()
	}
}

// levelTarget returns the workers that a level was measured with. Workers that replace others that still run do not
// count: else each replacement would end with one worker less.
func (t *tick) levelTarget() int {
	if t.WorkersBeforeRollout > 0 {
		return min(t.WorkersBeforeRollout, t.Expected)
	}
	return t.Expected
}
