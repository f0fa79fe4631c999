package capacitybuffer

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

const (
	// shrinkPeriod is the minimum time between two reductions of a buffer.
	shrinkPeriod = 10 * time.Second
	// defaultHold is how long a size is held unless a node takes longer: as long as an HPA
	// holds its replicas by default. Autoscalers keep an unneeded node for some minutes more.
	defaultHold = 5 * time.Minute
)

// sized is the size of a buffer, with the inputs of its computation. It is a keep.Plan.
type sized struct {
	need
	name     string
	spec     map[string]any
	at       time.Time
	replicas int
	horizon  time.Duration
	window   time.Duration // that a trend must have to be carried to the horizon, 0 if it is long enough
	startup  Startup
	set      bool   // the startup time is the user's
	unknown  string // why there is no forecast; the size is the previous one
}

// plan returns the buffer that a PredictedMetric needs, as a keep.Plan. The first one needs a forecast.
func (k *Keeper) plan(pm *v1alpha1.PredictedMetric, found *keep.Found, m *memory) (keep.Plan[status], error) {
	pm = pm.DeepCopy()
	pm.Spec.Default() // for objects stored before a field had its default
	s := k.sizeOf(pm, m, found)
	if s.unknown != "" && found == nil {
		return nil, &keep.Refusal{
			Status: metav1.ConditionUnknown, Reason: reasonNoForecast,
			Message: s.unknown + ": a CapacityBuffer is created once there is",
		}
	}
	s.name, s.spec = pm.Name, specOf(pm, s.replicas)
	return s, nil
}

// sizeOf returns the size of a buffer. Without a forecast that is the previous one, within the present bounds.
func (k *Keeper) sizeOf(pm *v1alpha1.PredictedMetric, m *memory, found *keep.Found) *sized {
	if !m.sized && found != nil && found.Target == keep.TargetOfMetric(pm) { // an earlier leader has left it
		m.size, m.sized = replicasIn(found.Spec.(map[string]any))
	}
	now, spec := k.Now(), pm.Spec.CapacityBuffer
	s := k.needOf(pm, now)
	if s.unknown != "" {
		m.hold = hold{} // an unknown need is not a smaller one
		m.size = min(m.size, limitOf(spec.MaxReplicas, targetMax(pm, nil), 0))
		s.replicas = m.size
		return s
	}
	if len(m.hold.sizes.kept) == 0 && m.sized {
		m.hold.assume(now, m.size, s.need)
	}
	s.replicas = m.hold.next(now, max(defaultHold, s.startup.Time), s.need)
	if m.sized && s.replicas < m.size {
		if now.Sub(m.shrunk) < shrinkPeriod && m.size <= s.limit() {
			s.replicas = m.size
		} else {
			m.shrunk = now
		}
	}
	m.size, m.sized = s.replicas, true
	return s
}

// needOf returns the need by the forecast, or why there is none.
func (k *Keeper) needOf(pm *v1alpha1.PredictedMetric, now time.Time) *sized {
	s := &sized{at: now}
	spec := pm.Spec.CapacityBuffer
	s.startup, _ = k.nodes.Startup()
	if spec.NodeStartupTime != nil {
		s.startup, s.set = Startup{Time: spec.NodeStartupTime.Duration}, true
	}
	f, ok := k.Forecasts.Get(client.ObjectKeyFromObject(pm))
	switch {
	case ok && f.Err != nil:
		s.unknown = "there is no forecast: " + f.Err.Error()
	case !ok || !f.Usable(now) || !f.HasDecision():
		s.unknown = "there is no forecast"
	case f.Forecast.NodeForecast.Horizon == 0:
		s.unknown = "there is no forecast for the time at which a node has started"
	default:
		forNode := &f.Forecast.NodeForecast
		s.now, s.then, s.horizon = max(f.Forecast.Target, f.Combined.Desired), forNode.Desired, forNode.Horizon
		s.min, s.max = int(*spec.MinReplicas), limitOf(spec.MaxReplicas, targetMax(pm, f.Bounds), s.now)
		if forNode.WindowNeeded > f.Forecast.Window {
			s.window = forNode.WindowNeeded
		}
	}
	return s
}

// targetMax returns the most replicas that the target may have once a node has started, nil without a limit. With
// schedules these are the bounds that hold; where they are not known, the widest.
func targetMax(pm *v1alpha1.PredictedMetric, b *pipeline.Bounds) *int32 {
	_, most := pm.Spec.WidestBounds()
	if b != nil && b.NodeMax < math.MaxInt32 {
		return new(int32(b.NodeMax))
	}
	return most
}

// Spec implements keep.Plan.
func (s *sized) Spec() any { return s.spec }

// Routine implements keep.Plan. Another size is no event.
func (s *sized) Routine(log klog.Logger, before any) bool {
	n, _ := replicasIn(before.(map[string]any))
	if n == s.replicas {
		return false
	}
	log.Info("Resized", "before", n, "after", s.replicas, "reason", s.explain())
	return true
}
