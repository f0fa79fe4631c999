package forecaster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/instances"
	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// Config is what a PredictedMetric asks for.
type Config struct {
	Params   pipeline.Params
	Adaptive bool          // learn T_I from the start-ups of pods
	Source   string        // the kind of source, such as pods
	Origin   string        // identifies where samples come from and whose they are
	Interval time.Duration // how often the source reads or asks; 0: samples come when they come

	TargetGroup, TargetKind, TargetName string // of the scale target
}

// target names what a feed's forecasts are to scale.
type target struct{ namespace, group, kind, name string }

// Fleet is the pods of the target, as package instances follows them.
type Fleet interface {
	// Instances returns the active instances and those that ended at or after since.
	Instances(since time.Time) []instances.Instance
	// Ready counts ready pods as the HPA controller does.
	Ready() int
	// InitTimeout estimates how long a pod takes to start, from an assumed value and the start-ups seen.
	InitTimeout(initial time.Duration) time.Duration
}

// mostSamples bounds what is kept of one instance, whatever is pushed, unless the window has more ticks than half of it.
const mostSamples = 20_000

// Feed takes what one PredictedMetric's forecasts are made of. It is a source.Sink and safe for concurrent use.
type Feed struct {
	key       types.NamespacedName
	scaled    target
	now       func() time.Time
	published atomic.Pointer[snapshot.Snapshot]
	fleet     atomic.Pointer[Fleet]

	mu       sync.Mutex
	config   Config
	pipeline *pipeline.Pipeline
	replicas replicas
	series   map[string]*series
	failing  map[string]error
	trouble  error // of the source as a whole
	newest   int64 // time of the newest sample (ms), 0 without one
	coverage coverage
	spacing  spacing
}

// replicas is the scale target's planned count and when it last changed (ms), as far as has been seen.
type replicas struct {
	count      int
	known      bool
	rose, fell int64
	lost       time.Time // since when it cannot be read; zero: it can
}

func (c *Config) target(key types.NamespacedName) target {
	return target{key.Namespace, c.TargetGroup, c.TargetKind, c.TargetName}
}

func newFeed(key types.NamespacedName, c Config, now func() time.Time) (*Feed, error) {
	f := &Feed{
		key: key, scaled: c.target(key), now: now,
		replicas: replicas{rose: pipeline.Never, fell: pipeline.Never},
		series:   map[string]*series{}, failing: map[string]error{},
	}
	return f, f.configure(c)
}

// newRefused returns a feed that says why there will be no forecast.
func newRefused(key types.NamespacedName, c Config, now func() time.Time, why error) *Feed {
	f := &Feed{key: key, scaled: c.target(key), now: now, config: c}
	s := f.describe(now())
	s.Err = unavailable(snapshot.InvalidSpec, "%v", why)
	f.publish(s)
	return f
}

// configure makes c the configuration, or changes nothing if its parameters are refused.
func (f *Feed) configure(c Config) error {
	p, err := pipeline.New(c.Params)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.config, f.pipeline = c, p
	if f.published.Load() == nil {
		s := f.describe(f.now())
		s.Err = unavailable(snapshot.WaitingForSamples, "no sample has been read yet")
		f.publish(s)
	}
	return nil
}

// beginAnew forgets what was read before a gap: what comes after it must cover the fleet again before it is a load, and
// a line drawn across the gap would be invented.
func (f *Feed) beginAnew() { f.series, f.coverage = map[string]*series{}, coverage{} }

func (f *Feed) readsFrom(origin string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pipeline != nil && f.config.Origin == origin
}

// SetFleet says whose samples count.
func (f *Feed) SetFleet(fleet Fleet) { f.fleet.Store(&fleet) }

// SetReplicas tells the target's planned count as of now. A count that was there before this process may have risen just
// before, so it is taken to have: pods may still be on their way.
func (f *Feed) SetReplicas(count int) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.replicas.known || count > f.replicas.count {
		f.replicas.rose = now.UnixMilli()
	}
	if f.replicas.known && count < f.replicas.count {
		f.replicas.fell = now.UnixMilli()
	}
	f.replicas.count, f.replicas.known, f.replicas.lost = count, true, time.Time{}
}

// LoseReplicas tells that the planned count cannot be read as of now: what is known of it is from before.
func (f *Feed) LoseReplicas() {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.replicas.lost.IsZero() {
		f.replicas.lost = now
	}
}

// Append implements source.Sink. A sample from the future is a failure of its instance: it says nothing about now, and
// would make everything else look old. One from long before the window says nothing either, and is left out.
func (f *Feed) Append(instance string, samples ...pipeline.Sample) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.series[instance]
	if s == nil {
		s = &series{}
		f.series[instance] = s
	}
	delete(f.failing, instance)
	p := &f.config.Params
	earliest, latest := now.Add(-2*p.Window).UnixMilli(), now.Add(p.Interval).UnixMilli()
	most := max(mostSamples, 2*int(p.Window/p.Interval))
	for _, x := range samples {
		switch {
		case x.T > latest:
			f.failing[instance] = fmt.Errorf("a sample is dated %s, which is still to come: check the clocks", time.UnixMilli(x.T).UTC().Format(time.RFC3339))
		case x.T < earliest:
		case len(s.samples) >= most:
			f.failing[instance] = fmt.Errorf("more than %d samples within the window: must be about one each sample interval (%s)", most, p.Interval)
		default:
			s.add(x)
			f.newest = max(f.newest, x.T)
		}
	}
}

// Fail implements source.Sink.
func (f *Feed) Fail(instance string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing[instance] = err
}

// Trouble implements source.Sink.
func (f *Feed) Trouble(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trouble = err
}

// Snapshot returns what was last published, with the count of ready pods as it is now.
func (f *Feed) Snapshot() snapshot.Snapshot {
	s := *f.published.Load()
	if fleet := f.fleet.Load(); fleet != nil {
		s.Ready = (*fleet).Ready()
	}
	return s
}

// workspace is the memory that forecasts are made in, one after the other.
type workspace struct {
	memory    pipeline.Memory
	instances []pipeline.Instance
}

// run makes a forecast and publishes it, or the reason why there is none, which it returns ("" for none).
func (f *Feed) run(now time.Time, w *workspace) snapshot.Reason {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pipeline == nil {
		return snapshot.InvalidSpec
	}
	if f.newest > now.Add(f.config.Params.Interval).UnixMilli() { // the clock was ahead, and has been set back
		f.newest = 0
		f.beginAnew()
	}
	forecast, newestStart, err := f.forecast(now, w)
	s := f.describe(now)
	if err != nil {
		why := f.explain(err, now)
		s.Err = why
		f.publish(s)
		return why.Reason
	}
	s.Forecast = forecast
	history := pipeline.History{LastUp: f.replicas.rose, LastDown: f.replicas.fell, NewestStart: newestStart}
	s.Decision = f.config.Params.Cooldown.Apply(forecast.Decision, forecast.Target, now.UnixMilli(), history)
	f.publish(s)
	return ""
}

// forecast runs the pipeline over the samples of the fleet and tells when its newest instance started (ms).
func (f *Feed) forecast(now time.Time, w *workspace) (forecast pipeline.Forecast, newestStart int64, err error) {
	fleet := f.fleet.Load()
	if fleet == nil {
		return forecast, 0, unavailable(snapshot.NoReadyPods, "the scale target has not been found yet")
	}
	p := f.config.Params
	windowStart := now.Add(-p.Window)
	members := (*fleet).Instances(windowStart.Add(-p.RedistributionTimeout))
	w.instances = f.members(members, windowStart.UnixMilli(), w.instances)
	defer clear(w.instances) // the samples are the feed's
	in := pipeline.Input{
		Now: now.UnixMilli(), Instances: w.instances,
		TargetRose: f.replicas.rose, InitTimeout: f.initTimeout(),
	}
	if f.replicas.known {
		in.Target = max(1, f.replicas.count)
	}
	f.spacing.measure(in.Instances, in.Now, f.newest)
	if in.Since, err = f.coverage.cover(in.Instances, f.pace(), in.Now); err != nil {
		return forecast, 0, err
	}
	newestStart = pipeline.Never
	for _, m := range members {
		newestStart = max(newestStart, m.Start.UnixMilli())
	}
	forecast, err = f.pipeline.RunIn(&w.memory, in)
	return forecast, newestStart, err
}

// members joins instances with their samples, and forgets the samples of instances that are no more and the failures
// of those that have ended.
func (f *Feed) members(fleet []instances.Instance, windowStart int64, out []pipeline.Instance) []pipeline.Instance {
	out = out[:0]
	read := 0
	for i := range fleet {
		m := &fleet[i]
		x := pipeline.Instance{ID: m.ID, Start: m.Start.UnixMilli()}
		if !m.End.IsZero() {
			x.End = m.End.UnixMilli()
			delete(f.failing, m.ID)
		}
		if s := f.series[m.ID]; s != nil {
			s.trim(windowStart)
			x.Samples = s.samples
			read++
		}
		out = append(out, x)
	}
	if read < len(f.series) || len(f.failing) > 0 {
		f.forget(fleet)
	}
	return out
}

// forget drops what belongs to nobody of a fleet.
func (f *Feed) forget(fleet []instances.Instance) {
	present := make(map[string]bool, len(fleet))
	for i := range fleet {
		present[fleet[i].ID] = true
	}
	maps.DeleteFunc(f.series, func(id string, _ *series) bool { return !present[id] })
	maps.DeleteFunc(f.failing, func(id string, _ error) bool { return !present[id] })
}

// rateSpan is the span that the rate of samples is taken over.
const rateSpan = 10 * time.Second

// describe returns a snapshot of everything but the forecast.
func (f *Feed) describe(now time.Time) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Metric: f.key, TargetKind: f.config.TargetKind, TargetName: f.config.TargetName,
		Threshold: f.config.Params.Threshold, StaleAfter: f.config.Params.StaleAfter,
		Source: f.config.Source, SampleInterval: f.spacing.interval(), SampleDelay: f.spacing.lateness(),
		ReplicasLost: f.replicas.lost,
		InitTimeout:  f.initTimeout(), At: now, Failing: f.failures(), Trouble: f.trouble,
	}
	if f.newest > 0 {
		s.NewestSample = time.UnixMilli(f.newest)
	}
	count := 0
	for _, x := range f.series {
		count += x.countSince(now.Add(-rateSpan).UnixMilli())
	}
	s.SamplesPerSecond = float64(count) / rateSpan.Seconds()
	return s
}

func (f *Feed) failures() []snapshot.Failure {
	if len(f.failing) == 0 {
		return nil
	}
	names := map[string]string{}
	if fleet := f.fleet.Load(); fleet != nil {
		for _, m := range (*fleet).Instances(f.now()) {
			names[m.ID] = m.Pod.Name
		}
	}
	out := make([]snapshot.Failure, 0, len(f.failing))
	for id, err := range f.failing {
		out = append(out, snapshot.Failure{Pod: names[id], Err: err})
	}
	slices.SortFunc(out, func(a, b snapshot.Failure) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// explain turns an error of a run into the reason that is published, and begins anew where the data has run out.
func (f *Feed) explain(err error, now time.Time) *snapshot.Unavailable {
	age, limit := now.Sub(time.UnixMilli(f.newest)), f.config.Params.StaleAfter
	ranOut := f.newest > 0 && age > limit
	var why *snapshot.Unavailable
	var stale *pipeline.StaleError
	switch {
	case errors.As(err, &why):
	case errors.As(err, &stale), errors.Is(err, pipeline.ErrNoData):
		if ranOut {
			f.beginAnew()
		}
		why = unavailable(snapshot.WaitingForSamples, "no pod has been read twice within the window")
	default:
		why = unavailable(snapshot.BadSamples, "%v", err)
	}
	if why.Reason == snapshot.WaitingForSamples && ranOut {
		why = unavailable(snapshot.Stale, "the newest sample is %s old (limit %s)", age.Round(time.Second), limit)
		if every := f.spacing.interval(); 2*every > limit {
			why.Message += fmt.Sprintf("; samples are %s apart: staleAfter must be at least twice that", every.Round(time.Second))
		}
	}
	return why
}

func (f *Feed) initTimeout() time.Duration {
	initial := f.config.Params.InitTimeout
	if fleet := f.fleet.Load(); fleet != nil && f.config.Adaptive {
		return (*fleet).InitTimeout(initial)
	}
	return initial
}

func (f *Feed) publish(s *snapshot.Snapshot) { f.published.Store(s) }
