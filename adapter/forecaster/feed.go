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

	"github.com/foresail/foresail/adapter/podtracker"
	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
)

// Config is the configuration of one PredictedMetric.
type Config struct {
	Params         pipeline.Params
	MeasureStartup bool          // take T_I from the start-ups of pods
	Source         string        // the kind of source, such as pods
	Origin         string        // identifies where samples come from and whose they are
	Interval       time.Duration // how often the source reads; 0: samples are pushed

	TargetGroup, TargetKind, TargetName string // of the scale target
}

// target identifies the scale target of a feed.
type target struct{ namespace, group, kind, name string }

// Pods is the pods of the target, as package podtracker follows them.
type Pods interface {
	// Instances returns the active instances and those that ended at or after since.
	Instances(since time.Time) []podtracker.Instance
	// Ready counts ready pods as the HPA controller does.
	Ready() int
	// StartupTime estimates how long a pod takes to start as a method does, from an assumed value and the start-ups measured.
	StartupTime(m pipeline.Method, initial time.Duration) time.Duration
	// StartupsMeasured counts those.
	StartupsMeasured() int
}

// maxSamples bounds the samples of one instance, unless the window has more ticks than half of it.
const maxSamples = 20_000

// Feed receives the samples of one PredictedMetric and makes its forecasts. It is a source.Sink and safe for concurrent use.
type Feed struct {
	key       types.NamespacedName
	scaled    target
	now       func() time.Time
	group     *group // of scaled; set before the feed is found
	published atomic.Pointer[snapshot.Snapshot]
	pods      atomic.Pointer[Pods]

	mu        sync.Mutex
	config    Config
	pipeline  *pipeline.Pipeline
	window    time.Duration // how far back the last forecast looked, which follows the startup time
	replicas  replicas
	series    map[string]*samples.Series
	failing   map[string]error
	sourceErr error // why the source as a whole cannot be read
	newest    int64 // time of the newest sample (ms), 0 without one
	coverage  coverage
	spacing   spacing
}

// replicas is the number of replicas that the target is set to, and when it was last seen to change (ms).
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
		series:   map[string]*samples.Series{}, failing: map[string]error{},
	}
	return f, f.configure(c)
}

// newRejected returns a feed without forecasts, whose snapshot says why the spec was rejected.
func newRejected(key types.NamespacedName, c Config, now func() time.Time, why error) *Feed {
	f := &Feed{key: key, scaled: c.target(key), now: now, config: c}
	s := f.describe(now())
	s.Err = unavailable(snapshot.InvalidSpec, "%v", why)
	f.publish(s)
	return f
}

// configure makes c the configuration, or changes nothing if its parameters are invalid.
func (f *Feed) configure(c Config) error {
	p, err := pipeline.New(c.Params)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.config, f.pipeline = c, p
	f.window = c.Params.WindowFor(f.startupTime())
	if f.published.Load() == nil {
		s := f.describe(f.now())
		s.Err = unavailable(snapshot.WaitingForSamples, "no sample has been read yet")
		f.publish(s)
	}
	return nil
}

// reset drops the samples before a gap. After it all pods must be read again before their sum is a load, and values across
// the gap would be invented.
func (f *Feed) reset() { f.series, f.coverage = map[string]*samples.Series{}, coverage{} }

func (f *Feed) readsFrom(origin string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pipeline != nil && f.config.Origin == origin
}

// SetPods sets the pods whose samples count.
func (f *Feed) SetPods(pods Pods) { f.pods.Store(&pods) }

// HasPods returns whether SetPods has been called.
func (f *Feed) HasPods() bool { return f.pods.Load() != nil }

// SetReplicas sets the replicas of the target as of now. The first call counts as a scale-up: there may have been one just
// before this process started, whose pods are not ready yet.
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
	f.group.replicas.Store(int64(count))
}

// LoseReplicas marks the replicas of the target as unreadable from now on. The last known number stays.
func (f *Feed) LoseReplicas() {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.replicas.lost.IsZero() {
		f.replicas.lost = now
	}
}

// Append implements source.Sink. A sample from the future is a failure of its instance: it would make all others look old.
// Samples from long before the window are ignored.
func (f *Feed) Append(instance string, added ...pipeline.Sample) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.series[instance]
	if s == nil {
		s = &samples.Series{}
		f.series[instance] = s
	}
	delete(f.failing, instance)
	p := &f.config.Params
	earliest, latest := now.Add(-2*f.window).UnixMilli(), now.Add(p.Interval).UnixMilli()
	most := max(maxSamples, 2*int(f.window/p.Interval))
	for _, x := range added {
		switch {
		case x.T > latest:
			f.failing[instance] = fmt.Errorf("a sample is dated %s, which is in the future: check the clocks", time.UnixMilli(x.T).UTC().Format(time.RFC3339))
		case x.T < earliest:
		case len(*s) >= most:
			f.failing[instance] = fmt.Errorf("more than %d samples within the window: must be about one each sample interval (%s)", most, p.Interval)
		default:
			s.Add(x)
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

// SourceFailed implements source.Sink.
func (f *Feed) SourceFailed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sourceErr = err
}

// Snapshot returns the snapshot published last, with the number of ready pods as of now, and the joint decision of the last
// round for the replicas of now.
func (f *Feed) Snapshot() snapshot.Snapshot {
	s := *f.published.Load()
	s.Ready = f.ready()
	s.Combined = f.group.decision()
	return s
}

func (f *Feed) ready() int {
	if pods := f.pods.Load(); pods != nil {
		return (*pods).Ready()
	}
	return 0
}

// awaitsData returns whether there are ready pods that have not been read for long enough.
func (f *Feed) awaitsData() bool {
	u, ok := errors.AsType[*snapshot.Unavailable](f.published.Load().Err)
	return ok && (u.Reason == snapshot.WaitingForSamples || u.Reason == snapshot.WarmingUp) && f.ready() > 0
}

// workspace is memory that forecasts reuse, one after the other.
type workspace struct {
	memory    pipeline.Memory
	instances []pipeline.Instance
}

// run makes a forecast and publishes it. Without a forecast it publishes and returns the reason, else it returns "".
func (f *Feed) run(now time.Time, w *workspace) snapshot.Reason {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pipeline == nil {
		return snapshot.InvalidSpec
	}
	if f.newest > now.Add(f.config.Params.Interval).UnixMilli() { // the clock was ahead, and has been set back
		f.newest = 0
		f.reset()
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

// forecast runs the pipeline over the samples of the pods, and returns when the newest instance started (ms).
func (f *Feed) forecast(now time.Time, w *workspace) (forecast pipeline.Forecast, newestStart int64, err error) {
	pods := f.pods.Load()
	if pods == nil {
		return forecast, 0, unavailable(snapshot.NoReadyPods, "the scale target has not been found yet")
	}
	p := f.config.Params
	startupTime := f.startupTime()
	f.window = p.WindowFor(startupTime)
	windowStart := now.Add(-f.window)
	members := (*pods).Instances(windowStart.Add(-p.RedistributionTimeout))
	w.instances = f.members(members, windowStart.UnixMilli(), w.instances)
	defer clear(w.instances) // the samples are the feed's
	in := pipeline.Input{
		Now: now.UnixMilli(), Instances: w.instances,
		TargetRose: f.replicas.rose, StartupTime: startupTime,
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

// members joins instances with their samples. It drops the samples of instances that no longer exist, and the failures of
// ended ones.
func (f *Feed) members(fleet []podtracker.Instance, windowStart int64, out []pipeline.Instance) []pipeline.Instance {
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
			s.Trim(windowStart)
			x.Samples = *s
			read++
		}
		out = append(out, x)
	}
	if read < len(f.series) || len(f.failing) > 0 {
		f.forget(fleet)
	}
	return out
}

// forget drops samples and failures of instances that no longer exist.
func (f *Feed) forget(fleet []podtracker.Instance) {
	present := make(map[string]bool, len(fleet))
	for i := range fleet {
		present[fleet[i].ID] = true
	}
	maps.DeleteFunc(f.series, func(id string, _ *samples.Series) bool { return !present[id] })
	maps.DeleteFunc(f.failing, func(id string, _ error) bool { return !present[id] })
}

// rateSpan is the time over which the rate of samples is measured.
const rateSpan = 10 * time.Second

// describe returns a snapshot without a forecast.
func (f *Feed) describe(now time.Time) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Metric: f.key, TargetKind: f.config.TargetKind, TargetName: f.config.TargetName,
		Threshold: f.config.Params.Threshold, StaleAfter: f.config.Params.StaleAfter,
		Source: f.config.Source, SampleInterval: f.spacing.interval(), SampleDelay: f.spacing.delay(),
		ReplicasLost: f.replicas.lost,
		StartupTime:  f.startupTime(), At: now, Failing: f.failures(), SourceErr: f.sourceErr,
	}
	if pods := f.pods.Load(); pods != nil && f.config.MeasureStartup {
		s.StartupsMeasured = (*pods).StartupsMeasured()
	}
	if f.newest > 0 {
		s.NewestSample = time.UnixMilli(f.newest)
	}
	count := 0
	for _, x := range f.series {
		count += x.CountSince(now.Add(-rateSpan).UnixMilli())
	}
	s.SamplesPerSecond = float64(count) / rateSpan.Seconds()
	return s
}

func (f *Feed) failures() []snapshot.Failure {
	if len(f.failing) == 0 {
		return nil
	}
	names := map[string]string{}
	if pods := f.pods.Load(); pods != nil {
		for _, m := range (*pods).Instances(f.now()) {
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

// explain turns an error of a run into the published reason. It resets the feed where the samples have run out.
func (f *Feed) explain(err error, now time.Time) *snapshot.Unavailable {
	newest, limit := time.UnixMilli(f.newest), f.config.Params.StaleAfter
	ranOut := f.newest > 0 && snapshot.TooOld(newest, now, limit)
	var why *snapshot.Unavailable
	var stale *pipeline.StaleError
	switch {
	case errors.As(err, &why):
	case errors.As(err, &stale), errors.Is(err, pipeline.ErrNoData):
		if ranOut {
			f.reset()
		}
		why = unavailable(snapshot.WaitingForSamples, "no pod has been read twice within the window")
	default:
		why = unavailable(snapshot.BadSamples, "%v", err)
	}
	if why.Reason == snapshot.WaitingForSamples && ranOut {
		why = unavailable(snapshot.Stale, "the newest sample is %s old (limit %s)", now.Sub(newest).Round(time.Second), limit)
		if every := f.spacing.interval(); 2*every > limit {
			why.Message += fmt.Sprintf("; samples are %s apart: staleAfter must be at least twice that", every.Round(time.Second))
		}
	}
	return why
}

func (f *Feed) startupTime() time.Duration {
	p := &f.config.Params
	if pods := f.pods.Load(); pods != nil && f.config.MeasureStartup {
		return (*pods).StartupTime(p.Method, p.StartupTime)
	}
	return p.StartupTime
}

func (f *Feed) publish(s *snapshot.Snapshot) { f.published.Store(s) }
