package hpa

import (
	"errors"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Metric is one of the metrics of an HPA, as it is read once.
type Metric interface {
	// replicas is how many the metric asks for, or why that is unknown.
	replicas(s *State, t tolerance, f *Flags) (int, error)
}

// tolerance is by how much usage/target may differ from 1 without anything being done.
type tolerance struct{ up, down float64 }

func (t tolerance) covers(ratio float64) bool { return 1-t.down <= ratio && ratio <= 1+t.up }

// External is a metric of type External (or Object) and one reading of it.
type External struct {
	Total   int64 // the sum of the items that were returned, in milli-units
	Target  int64 // in milli-units
	Average bool  // the target is an AverageValue, not a Value
	Err     error // why there is no reading; nil if there is one
}

func (m External) replicas(s *State, t tolerance, _ *Flags) (int, error) {
	switch {
	case m.Err != nil:
		return 0, m.Err
	case m.Average:
		return m.average(s, t), nil
	default:
		return m.value(s, t)
	}
}

// average spreads the total over the pods that exist, ready or not.
func (m External) average(s *State, t tolerance) int {
	if t.covers(float64(m.Total) / (float64(m.Target) * float64(s.Status))) {
		return s.Status
	}
	return whole(float64(m.Total) / float64(m.Target))
}

// value takes the total for the load of each ready pod.
func (m External) value(s *State, t tolerance) (int, error) {
	ratio := float64(m.Total) / float64(m.Target)
	if t.covers(ratio) {
		return s.Spec, nil
	}
	if len(s.Pods) == 0 {
		return 0, errNoPods
	}
	return whole(ratio * float64(s.ready())), nil
}

// whole rounds up, to what the API has room for.
func whole(replicas float64) int { return int(min(math.Ceil(replicas), math.MaxInt32)) }

var (
	errNoPods     = errors.New("the target has no pods")
	errNoMetrics  = errors.New("no pod that counts has a metric")
	errNoRequests = errors.New("a pod has no CPU request")
)

// Utilization is the CPU metric of type Resource: the mean usage of pods as a percentage of their requests.
type Utilization struct {
	Target int   // per cent
	Err    error // why usage cannot be read; nil if it can
}

func (m Utilization) replicas(s *State, t tolerance, f *Flags) (int, error) {
	if m.Err != nil {
		return 0, m.Err
	}
	if len(s.Pods) == 0 {
		return 0, errNoPods
	}
	g, err := s.group(f)
	if err != nil {
		return 0, err
	}
	ratio, err := g.measured.ratio(m.Target)
	if err != nil {
		return 0, err
	}
	counted := g.measured
	withUnready := g.unready.pods > 0 && ratio > 1
	if !withUnready && g.missing.pods == 0 {
		if t.covers(ratio) {
			return s.Spec, nil
		}
		return whole(ratio * float64(counted.pods)), nil
	}
	switch {
	case ratio < 1: // what is not known is taken to be busy,
		counted.add(g.missing, int64(max(100, m.Target)))
	case ratio > 1: // or idle: either way the count changes less
		counted.add(g.missing, 0)
	}
	if withUnready {
		counted.add(g.unready, 0)
	}
	return counted.cautiously(ratio, m.Target, s.Spec, t)
}

// group is the pods of a target by what is known of their usage.
type group struct {
	measured sum // ready pods that have a metric
	unready  sum // pods that are not ready, or have not been for the length of a reading
	missing  sum // pods that have no metric
}

// sum is what pods use and request together, in milli-units.
type sum struct {
	pods           int
	usage, request int64
	requests       []int64
}

func (s *State) group(f *Flags) (g group, err error) {
	for i := range s.Pods {
		p := &s.Pods[i]
		switch {
		case p.Request == Unset:
			err = errNoRequests
		case p.Terminating || p.Phase == corev1.PodFailed:
		case p.Phase == corev1.PodPending:
			g.unready.take(p, 0)
		case p.Usage == nil:
			g.missing.take(p, 0)
		case p.starting(s.Now, f):
			g.unready.take(p, 0)
		default:
			g.measured.take(p, p.Usage.Value)
		}
	}
	if g.measured.pods == 0 {
		return g, errNoMetrics
	}
	return g, err
}

// starting reports whether what a pod uses is part of its start. Within the CPU initialisation
// period that is so until it has been ready for the whole window of the reading; after it, as long
// as the pod has never been ready.
func (p *Pod) starting(now int64, f *Flags) bool {
	if p.Ready == "" || p.Started == Unset {
		return true
	}
	notReady := p.Ready == corev1.ConditionFalse
	if p.Started+f.CPUInitializationPeriod.Milliseconds() > now {
		return notReady || p.Usage.T < p.Changed+p.Usage.Window.Milliseconds()
	}
	return notReady && p.Started+f.InitialReadinessDelay.Milliseconds() > p.Changed
}

func (s *sum) take(p *Pod, usage int64) {
	s.pods++
	s.usage += usage
	s.request += p.Request
	s.requests = append(s.requests, p.Request)
}

// add adds other pods as if they used a percentage of what they request.
func (s *sum) add(other sum, percent int64) {
	for _, r := range other.requests {
		s.usage += r * percent / 100
	}
	s.pods += other.pods
	s.request += other.request
}

// ratio is utilisation, in whole per cent, over the target.
func (s *sum) ratio(target int) (float64, error) {
	if s.request == 0 {
		return 0, errNoRequests
	}
	percent := s.usage * 100 / s.request
	return float64(percent) / float64(target), nil
}

// cautiously returns the replicas for pods some of which were guessed, spec if the guesses turn the
// direction that the measured ratio points to.
func (s *sum) cautiously(measured float64, target, spec int, t tolerance) (int, error) {
	ratio, err := s.ratio(target)
	if err != nil {
		return 0, err
	}
	n := int(math.Ceil(ratio * float64(s.pods)))
	turned := measured < 1 && ratio > 1 || measured > 1 && ratio < 1
	contrary := ratio < 1 && n > spec || ratio > 1 && n < spec
	if t.covers(ratio) || turned || contrary {
		return spec, nil
	}
	return n, nil
}

// State is what the controller finds when it looks.
type State struct {
	Now    int64
	Spec   int // spec.replicas of the target
	Status int // status.replicas of the target: pods that exist
	Pods   []Pod
}

// ready counts pods that are Running and Ready.
func (s *State) ready() int {
	n := 0
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Phase == corev1.PodRunning && p.Ready == corev1.ConditionTrue {
			n++
		}
	}
	return n
}

// Pod is what the controller reads of a pod.
type Pod struct {
	Phase       corev1.PodPhase
	Terminating bool
	Started     int64                  // status.startTime; Unset while there is none
	Ready       corev1.ConditionStatus // of its Ready condition; "" while there is none
	Changed     int64                  // when the condition last changed
	Request     int64                  // of CPU, in milli-units; Unset if one of its containers has none
	Usage       *Usage                 // of CPU; nil while there is no metric
}

// Unset marks a time or an amount that a pod does not have.
const Unset int64 = -1 << 63

// Usage is a reading of the CPU that a pod uses.
type Usage struct {
	Value  int64 // milli-units
	T      int64 // the end of the window that it is the mean of
	Window time.Duration
}

// Flags are those of kube-controller-manager.
type Flags struct {
	Tolerance               float64       // --horizontal-pod-autoscaler-tolerance
	DownscaleStabilization  time.Duration // --horizontal-pod-autoscaler-downscale-stabilization
	CPUInitializationPeriod time.Duration // --horizontal-pod-autoscaler-cpu-initialization-period
	InitialReadinessDelay   time.Duration // --horizontal-pod-autoscaler-initial-readiness-delay
}

// DefaultFlags returns what the flags are unless they are given.
func DefaultFlags() Flags {
	return Flags{
		Tolerance: 0.1, DownscaleStabilization: 5 * time.Minute,
		CPUInitializationPeriod: 5 * time.Minute, InitialReadinessDelay: 30 * time.Second,
	}
}
