// Package hpa does what the HorizontalPodAutoscaler controller of Kubernetes 1.37 makes of metrics:
// the replicas that each metric asks for, the largest of them, and how behaviour, stabilisation and
// limits hold it back. It has a clock of its caller's and reads nothing itself. A test of the
// control plane's components holds it against the controller.
//
// Values of metrics are milli-units, times are milliseconds. Scaling to zero is not covered: Min is
// at least 1.
package hpa

import (
	"errors"
	"fmt"
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// Autoscaler is one HPA with what the controller remembers of it.
type Autoscaler struct {
	flags    Flags
	min, max int
	behaves  bool // a behaviour is given: its policies are in force, and not the limit of before there were any
	up, down rules
	begun    bool
	history  history
}

// New returns an HPA that has not been looked at yet. A nil behaviour is not the same as an empty
// one: without one, scale-up is limited to twice the replicas, or 4 where that is more, at each
// look.
func New(lowest, highest int, behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, flags Flags) (*Autoscaler,
	error) {
	if lowest < 1 {
		return nil, fmt.Errorf("minReplicas: %d: must be at least 1", lowest)
	}
	if highest < lowest || highest > math.MaxInt32 {
		return nil, fmt.Errorf("maxReplicas: %d: must be at least minReplicas (%d) and at most %d", highest, lowest,
			math.MaxInt32)
	}
	a := &Autoscaler{flags: flags, min: lowest, max: highest}
	a.up, a.down = defaultRules(&flags)
	if behavior != nil {
		a.behaves = true
		a.down.window = a.down.window.Truncate(time.Second) // the API has whole seconds
		a.up, a.down = a.up.with(behavior.ScaleUp), a.down.with(behavior.ScaleDown)
	}
	return a, nil
}

// Sync is one look of the controller. It returns the replicas to set, which are s.Spec where
// nothing is to be done. With an error, that of the first metric that failed, the others may have
// scaled up nevertheless. Times must not fall.
func (a *Autoscaler) Sync(s State, metrics ...Metric) (int, error) {
	if !a.begun {
		a.begun = true
		a.history.desired = append(a.history.desired, moment{s.Now, s.Spec})
	}
	replicas, err := s.Spec, error(nil)
	switch {
	case s.Spec == 0: // somebody has switched it off
	case s.Spec > a.max:
		replicas = a.max
	case s.Spec < a.min:
		replicas = a.min
	default:
		var desired int
		desired, err = a.largest(&s, metrics)
		if desired >= 0 {
			replicas = a.limit(&s, desired)
		}
	}
	if replicas > s.Spec {
		a.history.rose(s.Now, replicas-s.Spec, &a.up)
	} else if replicas < s.Spec {
		a.history.fell(s.Now, s.Spec-replicas, &a.down)
	}
	a.history.forget(s.Now - max(a.up.window, a.down.window).Milliseconds())
	return replicas, err
}

// largest returns the most replicas that any metric asks for, -1 where that must not be followed:
// all have failed, or some have and the others ask for fewer than there are.
func (a *Autoscaler) largest(s *State, metrics []Metric) (int, error) {
	t := tolerance{up: a.up.tolerance, down: a.down.tolerance}
	desired := -1
	var failures []error
	for _, m := range metrics {
		n, err := m.replicas(s, t, &a.flags)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		desired = max(desired, n)
	}
	if len(metrics) == 0 {
		failures = append(failures, errors.New("an HPA has at least one metric"))
	}
	if len(failures) == 0 {
		return max(0, desired), nil
	}
	if desired < s.Spec {
		desired = -1
	}
	return desired, fmt.Errorf("%d of %d metrics failed, the first with: %w", len(failures), len(metrics), failures[0])
}

// limit holds back what the metrics ask for.
func (a *Autoscaler) limit(s *State, desired int) int {
	stable := a.stabilize(s, desired)
	a.history.desired = append(a.history.desired, moment{s.Now, desired})
	switch {
	case !a.behaves:
		return max(a.min, min(stable, a.max, max(2*s.Spec, 4)))
	case stable > s.Spec:
		return min(stable, a.max, a.up.highest(s.Now, s.Spec, &a.history))
	case stable < s.Spec:
		return max(stable, a.min, a.down.lowest(s.Now, s.Spec, &a.history))
	default:
		return stable
	}
}

// stabilize holds the replicas between the least and the most that was desired within the windows.
// Without a behaviour there is a window downwards alone.
func (a *Autoscaler) stabilize(s *State, desired int) int {
	least, most := desired, desired
	for _, w := range a.history.desired {
		if a.behaves && w.t > s.Now-a.up.window.Milliseconds() {
			least = min(least, w.n)
		}
		if oldest := s.Now - a.down.window.Milliseconds(); w.t > oldest || w.t == oldest && !a.behaves {
			most = max(most, w.n)
		}
	}
	if !a.behaves {
		return most
	}
	return min(max(s.Spec, least), most)
}

// history is what the controller remembers of one HPA.
type history struct {
	desired    []moment // what metrics asked for, before anything held it back, oldest first
	ups, downs []moment // by how much the replicas were raised and lowered, in any order
}

type moment struct {
	t int64
	n int
}

// change returns by how much the replicas have been changed within a period, together.
func (h *history) change(now int64, periodSeconds int32) int {
	since := now - int64(periodSeconds)*1000
	return sumAfter(h.ups, since) - sumAfter(h.downs, since)
}

func sumAfter(all []moment, t int64) int {
	total := 0
	for _, m := range all {
		if m.t > t {
			total += m.n
		}
	}
	return total
}

// rose and fell remember a change. Either takes the place of one of its direction that no policy of
// that direction looks back to any more, though one of the other direction might.
func (h *history) rose(now int64, by int, r *rules) { h.ups = remember(h.ups, moment{now, by}, r) }
func (h *history) fell(now int64, by int, r *rules) { h.downs = remember(h.downs, moment{now, by}, r) }

func remember(all []moment, m moment, r *rules) []moment {
	oldest := m.t - r.lookBack()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].t < oldest {
			all[i] = m
			return all
		}
	}
	return append(all, m)
}

// forget drops what was desired before a time.
func (h *history) forget(before int64) {
	n := 0
	for n < len(h.desired) && h.desired[n].t < before {
		n++
	}
	h.desired = append(h.desired[:0], h.desired[n:]...)
}
