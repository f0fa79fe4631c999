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

// New returns an HPA that has not been looked at yet. A nil behaviour is not the same as an empty one: without one, scale-up
// is limited to twice the replicas, or 4 where that is more, at each look.
func New(lowest, highest int, behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, flags Flags) (*Autoscaler, error) {
	if lowest < 1 {
		return nil, fmt.Errorf("minReplicas: %d: must be at least 1", lowest)
	}
	if highest < lowest || highest > math.MaxInt32 {
		return nil, fmt.Errorf("maxReplicas: %d: must be at least minReplicas (%d) and at most %d", highest, lowest, math.MaxInt32)
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

// Sync is one look of the controller. It returns the replicas to set, which are s.Spec where nothing is to be done. With an
// error, that of the first metric that failed, the others may have scaled up nevertheless. Times must not fall.
func (a *Autoscaler) Sync(s State, metrics ...Metric) (int, error) {
	if !a.begun {
		a.begun = true
		a.history.wanted = append(a.history.wanted, moment{s.Now, s.Spec})
	}
	replicas, err := s.Spec, error(nil)
	switch {
	case s.Spec == 0: // somebody has switched it off
	case s.Spec > a.max:
		replicas = a.max
	case s.Spec < a.min:
		replicas = a.min
	default:
		var wanted int
		wanted, err = a.largest(&s, metrics)
		if wanted >= 0 {
			replicas = a.limit(&s, wanted)
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

// largest returns the most replicas that any metric asks for, -1 where that must not be followed: all have failed, or some
// have and the others ask for fewer than there are.
func (a *Autoscaler) largest(s *State, metrics []Metric) (int, error) {
	t := tolerance{up: a.up.tolerance, down: a.down.tolerance}
	wanted := -1
	var failures []error
	for _, m := range metrics {
		n, err := m.replicas(s, t, &a.flags)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		wanted = max(wanted, n)
	}
	if len(metrics) == 0 {
		failures = append(failures, errors.New("an HPA has at least one metric"))
	}
	if len(failures) == 0 {
		return max(0, wanted), nil
	}
	if wanted < s.Spec {
		wanted = -1
	}
	return wanted, fmt.Errorf("%d of %d metrics failed, the first with: %w", len(failures), len(metrics), failures[0])
}

// limit holds back what the metrics ask for.
func (a *Autoscaler) limit(s *State, wanted int) int {
	stable := a.stabilize(s, wanted)
	a.history.wanted = append(a.history.wanted, moment{s.Now, wanted})
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

// stabilize holds the replicas between the least and the most that was wanted within the windows. Without a behaviour
// there is a window downwards alone.
func (a *Autoscaler) stabilize(s *State, wanted int) int {
	least, most := wanted, wanted
	for _, w := range a.history.wanted {
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
