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

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/internal/schedule"
	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/gate"
)

// Config is the configuration of one PredictedMetric.
type Config struct {
	Params         pipeline.Params
	MeasureStartup bool          // take T_I from the start-ups of pods
	Source         string        // the kind of source, such as pods
	Origin         string        // identifies where samples come from and whose they are
	Interval       time.Duration // how often the source reads; 0: samples are pushed
	Created        time.Time     // when the PredictedMetric was created
	Counter        bool          // samples are rates of a counter

	// Farther asks for a forecast of the time at which a node has started as well. NodeStartupTime is how long one takes; 0: what
	// Options.NodeStartupTime returns.
	Farther         bool
	NodeStartupTime time.Duration

	Schedules *schedule.Calendar // used by one forecast at a time; nil: none

	DryRun bool // nothing may act on the forecasts

	TargetGroup, TargetKind, TargetName string // of the scale target
}

// target identifies the scale target of a feed.
type target struct{ namespace, group, kind, name string }

// Pods is the pods of the target, as package podtracker follows them.
type Pods interface {
	// Instances returns the active instances and those that ended at or after since.
	Instances(since time.Time) []podtracker.Instance
	// Lost returns since when changes of the pods are not seen, and why; zero while they are seen.
	Lost() (since time.Time, why error)
	// Ready counts ready pods as the HPA controller does.
	Ready() int
	// StartupTime estimates how long a pod takes to start as a method does, from an assumed value and the start-ups measured.
	StartupTime(m pipeline.Method, initial time.Duration) time.Duration
	// StartupTimeOnNode is the same without the wait for a node.
	StartupTimeOnNode(m pipeline.Method, initial time.Duration) time.Duration
	// StartupsMeasured counts those.
	StartupsMeasured() int
}

// leastReadings is for how many readings of a pod there is room at least, for those who read more often than they forecast.
const leastReadings = 1000

// Feed receives the samples of one PredictedMetric and makes its forecasts. It is a source.Direct and safe for concurrent use.
// Nothing waits for a forecast that is being made but the next one.
type Feed struct {
	key       types.NamespacedName
	scaled    target
	now       func() time.Time
	nodes     func() time.Duration // Options.NodeStartupTime; set before the feed is found
	group     *group               // of scaled; set before the feed is found
	inbox     *inbox
	published atomic.Pointer[snapshot.Snapshot]
	pods      atomic.Pointer[Pods]
	settings  atomic.Pointer[settings]
	scaleLost atomic.Pointer[func() time.Time]
	scaleRead atomic.Bool  // the scale of the target has been read, or could not be
	beyond    atomic.Bool  // it is beyond the budget of its namespace
	kept      atomic.Int64 // how many samples of an instance the last forecast had, in the mean
	followed  atomic.Int64 // how many instances the last forecast looked at, -1: not known
	watch     watch

	mu             sync.Mutex // of what is below, which belongs to the forecast that is being made
	using          *settings
	bounds         *pipeline.Bounds // of the schedules, nil without any
	active         []string         // the names of these
	stopped        time.Time        // since when it is beyond the budget, while it is
	window         time.Duration    // how far back the last one looked, which follows the startup time
	replicas       replicas
	clock          clock
	podsLost       time.Time // since when changes of the pods are not seen; zero: they are
	unseen         unseen
	floor          floor
	series         map[string]*samples.Packed
	forgotten      int // how often any of these were dropped
	released       int // how often the inbox has let go of them
	failing        map[string]failing
	refused        refusals
	sourceErr      error     // why the source as a whole cannot be read
	sourceFailures int       // how many times in a row it was reported
	sourceFailed   time.Time // the first of these times
	newest         int64     // time of the newest sample (ms), 0 without one
	coverage       coverage
	spacing        spacing
	accuracy       pipeline.Accuracy
	past           *pipeline.Past // what has been learned of the load; nil before the first forecast
	sought         bool           // it is known whether there is a checkpoint
	stored         int64          // the newest load of the checkpoint that is known of (ms)
}

// settings are a configuration and its pipeline, nil if the spec was rejected.
type settings struct {
	Config
	pipeline *pipeline.Pipeline // run with the feed's mu held
}

func (c *Config) target(key types.NamespacedName) target {
	return target{key.Namespace, c.TargetGroup, c.TargetKind, c.TargetName}
}

func newFeed(key types.NamespacedName, c Config, now func() time.Time) (*Feed, error) {
	f := emptyFeed(key, c, now)
	if err := f.configure(c); err != nil {
		return nil, err
	}
	f.using = f.settings.Load()
	f.publishErr(unavailable(snapshot.WaitingForSamples, "no sample has been read yet"), now())
	return f, nil
}

// newRejected returns a feed without forecasts, whose snapshot says why the spec was rejected.
func newRejected(key types.NamespacedName, c Config, now func() time.Time, why error) *Feed {
	f := emptyFeed(key, c, now)
	f.publishErr(unavailable(snapshot.InvalidSpec, "%v", why), now())
	return f
}

func emptyFeed(key types.NamespacedName, c Config, now func() time.Time) *Feed {
	f := &Feed{key: key, scaled: c.target(key), now: now, inbox: newInbox()}
	f.using = &settings{Config: c}
	f.settings.Store(f.using)
	f.followed.Store(-1)
	f.reset()
	f.failing = map[string]failing{}
	return f
}

// configure makes c the configuration, or changes nothing if its parameters are invalid.
func (f *Feed) configure(c Config) error {
	p, err := pipeline.New(c.Params)
	if err != nil {
		return err
	}
	next := &settings{Config: c, pipeline: p}
	f.settings.Store(next)
	f.accept(c.Params.WindowFor(f.startupTime(next)))
	return nil
}

// accept lets in as many samples as a window of this length needs.
func (f *Feed) accept(window time.Duration) {
	c := f.settings.Load()
	f.inbox.limit(limits{
		interval: c.Params.Interval, window: window, most: 2 * c.readings(window), values: gate.LimitsOf(&c.Params, c.Counter),
	})
}

// readings returns how many readings of one instance a window of this length may have.
func (c *Config) readings(window time.Duration) int { return max(leastReadings, int(window/c.every())) }

// every returns how often an instance is read.
func (c *Config) every() time.Duration {
	if c.Interval > 0 {
		return min(c.Params.Interval, c.Interval)
	}
	return c.Params.Interval
}

// reset drops the samples before a gap. After it all pods must be read again before their sum is a load, and values across
// the gap would be invented.
func (f *Feed) reset() {
	f.series, f.coverage, f.refused = map[string]*samples.Packed{}, coverage{}, refusals{}
	f.forgotten++
	f.accuracy.Forget()
}

func (f *Feed) readsFrom(origin string) bool {
	c := f.settings.Load()
	return c.pipeline != nil && c.Origin == origin
}

// SetPods sets the pods whose samples count.
func (f *Feed) SetPods(pods Pods) { f.pods.Store(&pods) }

// HasPods returns whether SetPods has been called.
func (f *Feed) HasPods() bool { return f.pods.Load() != nil }

// SetReplicas sets the replicas of the target as of now. The first call counts as a scale-up.
func (f *Feed) SetReplicas(count int) {
	f.scaleRead.Store(true)
	f.inbox.setReplicas(count, f.now().UnixMilli())
	f.group.replicas.Store(int64(count))
}

// WatchReplicas sets what returns since when changes of the replicas are not seen, zero while they are. With nil they
// are as of the last SetReplicas.
func (f *Feed) WatchReplicas(lost func() time.Time) { f.scaleLost.Store(&lost) }

// LoseReplicas marks the replicas of the target as unreadable from now on. The last known number stays.
func (f *Feed) LoseReplicas() {
	f.scaleRead.Store(true)
	f.inbox.loseReplicas(f.now())
}

// Append implements source.Sink. A sample from the future is a failure of its instance: it would make all others look old.
// Samples from long before the window are ignored.
func (f *Feed) Append(instance string, added ...pipeline.Sample) {
	now := f.now()
	b := f.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limits.most > 0 {
		b.add(b.of(instance), added, now)
	}
}

// Fail implements source.Sink.
func (f *Feed) Fail(instance string, err error) { f.inbox.fail(instance, err) }

// SourceFailed implements source.Sink.
func (f *Feed) SourceFailed(err error) { f.inbox.failSource(err, f.now()) }

// Refuses implements source.Refuser.
func (f *Feed) Refuses() bool { return f.beyond.Load() }

// Snapshot returns the snapshot published last, with dry run and the number of ready pods as of now, and the joint decision of the
// last round for the replicas of now.
func (f *Feed) Snapshot() snapshot.Snapshot {
	s := *f.published.Load()
	s.Ready, s.DryRun = f.ready(), f.dryRun()
	s.Combined = f.group.decision()
	return s
}

func (f *Feed) dryRun() bool { return f.settings.Load().DryRun }

func (f *Feed) ready() int {
	if pods := f.pods.Load(); pods != nil {
		return (*pods).Ready()
	}
	return 0
}

// awaitsData reports whether there is a load, of ready pods or of the target as a whole, that has not been read for long
// enough, or may be one, of a target whose scale has not been read yet.
func (f *Feed) awaitsData() bool {
	if c := f.settings.Load(); c.pipeline != nil && !f.scaleRead.Load() {
		return true
	}
	u, ok := errors.AsType[*snapshot.Unavailable](f.published.Load().Err)
	awaited := []snapshot.Reason{snapshot.WaitingForSamples, snapshot.SourceFailing, snapshot.WarmingUp}
	return ok && slices.Contains(awaited, u.Reason) && (f.ready() > 0 || f.settings.Load().Params.Whole)
}

// workspace is memory that forecasts reuse, one after the other.
type workspace struct {
	memory    pipeline.Memory
	instances []pipeline.Instance
	samples   []pipeline.Sample // of the instances, one after the other
	highest   float64           // no sample of the instances is higher
	filter    gate.Filter
}

// run makes a forecast and publishes it. Without a forecast it publishes and returns the reason, else it returns "".
func (f *Feed) run(now time.Time, w *workspace) snapshot.Reason {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.use()
	f.beyond.Store(false)
	if f.using.pipeline == nil {
		return snapshot.InvalidSpec
	}
	f.schedule(now)
	f.collect()
	f.followClock(now)
	f.podsLost = time.Time{}
	forecast, newestStart, err := f.forecast(now, w)
	s := f.describe(now)
	if err != nil {
		f.watch.trace.Store(nil)
		why := f.explain(err, now)
		s.Err = why
		f.publish(s)
		return why.Reason
	}
	s.Forecast = forecast
	s.Lateness = f.using.Params.Lateness
	if f.bounds != nil {
		s.Lateness = f.bounds.Lateness
	}
	if f.using.Params.Method == pipeline.Adaptive {
		s.Learned = f.past.Known()
	}
	s.Accuracy = snapshot.Accuracy{LastHour: f.accuracy.LastHour(), LastDay: f.accuracy.LastDay()}
	history := pipeline.History{LastUp: f.replicas.rose, LastDown: f.replicas.fell, NewestStart: newestStart}
	s.Decision = f.using.Params.Cooldown.Apply(forecast.Decision, forecast.Target, now.UnixMilli(), history)
	f.publish(s)
	return ""
}

// use has the forecast follow the configuration of now. The floor is of the parameters that it was found with.
func (f *Feed) use() {
	next := f.settings.Load()
	if next.Params != f.using.Params {
		f.floor = floor{}
	}
	f.using = next
}

// followClock drops the samples of another clock than that of now, and moves what was counted from its
// times. Samples that lie ahead of the clock show that the clock of their sender was set back.
func (f *Feed) followClock(now time.Time) {
	tolerance := f.using.Params.Interval
	by := f.clock.step(now, tolerance)
	if by == 0 && f.newest <= now.Add(tolerance).UnixMilli() {
		return
	}
	f.newest = 0
	f.reset()
	if by == 0 {
		return
	}
	f.replicas = f.inbox.clockSet(by, now)
	f.spacing.at = 0
	clear(f.failing)
	if pods := f.pods.Load(); pods != nil {
		f.clock.set((*pods).Instances(now.Add(-f.window)), by, now)
	}
	if f.past != nil {
		f.past.Rewind(now.UnixMilli())
	}
	f.stored = min(f.stored, now.UnixMilli())
}

// schedule notes the bounds that hold at a time.
func (f *Feed) schedule(now time.Time) {
	c := f.using
	if c.Schedules == nil {
		f.bounds, f.active = nil, nil
		return
	}
	ahead := c.Params.HorizonFor(f.startupTime(c))
	farther := ahead
	if c.Farther {
		farther += f.nodeStartupTime()
	}
	f.bounds, f.active = c.Schedules.At(now, ahead, farther)
}

// forecast runs the pipeline over the samples of the pods, and returns when the newest instance started (ms).
func (f *Feed) forecast(now time.Time, w *workspace) (forecast pipeline.Forecast, newestStart int64, err error) {
	pods := f.pods.Load()
	if pods == nil {
		return forecast, 0, unavailable(snapshot.NoReadyPods, "the scale target has not been found yet")
	}
	p := &f.using.Params
	if err := f.checkPods(*pods, now); err != nil {
		return forecast, 0, err
	}
	startupTime := f.startupTime(f.using)
	f.window = p.WindowFor(startupTime)
	f.accept(f.window)
	windowStart := now.Add(-f.window)
	members := (*pods).Instances(windowStart.Add(-p.RedistributionTimeout))
	f.followed.Store(int64(len(members)))
	f.unpack(members, windowStart.UnixMilli(), w)
	in := pipeline.Input{
		Now: now.UnixMilli(), Instances: w.instances,
		TargetRose: f.replicas.rose, StartupTime: startupTime, Bounds: f.bounds,
	}
	if f.replicas.known {
		in.Target = f.replicas.count
	}
	if f.past == nil {
		f.past = pipeline.NewPast(p)
	}
	in.Past = f.past
	if f.using.Farther {
		in.NodeStartupTime = f.nodeStartupTime()
	}
	if p.Whole {
		err = f.addWhole(&in, windowStart.UnixMilli(), w)
	} else {
		f.refused.setOutliers(w.filter.Apply(in.Instances, f.scale(1, w.highest)))
		err = f.addInstances(&in)
	}
	if err != nil {
		return forecast, 0, err
	}
	newestStart = pipeline.Never
	for i := range in.Instances {
		newestStart = max(newestStart, in.Instances[i].Start)
	}
	forecast, err = f.runPipeline(in, members, w)
	switch {
	case err != nil:
	case f.unseen.until.IsZero() || p.Whole:
		f.accuracy.Judge(w.memory.Loads(), forecast.Claim(p.Activation))
		f.past.Learn(w.memory.Loads(), p.Learning(), f.using.Schedules.Unlearned)
		f.floor.note(&forecast, now)
	default: // what pods that are not known carry is missing; it is learned when they are
		f.floor.raise(&forecast, p, now)
	}
	return forecast, newestStart, err
}

// scale returns what the readings of a number of instances together are compared with. None of them is above highest.
func (f *Feed) scale(instances int, highest float64) gate.Scale {
	p := &f.using.Params
	return gate.Scale{
		Model: p.Model, Unit: p.Model.Load(p.Threshold) * float64(max(1, instances)),
		Spacing: max(p.Interval, f.using.Interval, f.spacing.interval()), Counted: f.using.Counter, Highest: highest,
	}
}

// checkPods returns why the pods are too old to forecast from. A load that is measured as a whole needs none.
func (f *Feed) checkPods(pods Pods, now time.Time) error {
	since, why := pods.Lost()
	limit := f.using.Params.StaleAfter
	f.podsLost = since
	f.unseen.note(since, now, limit)
	recent := func(t time.Time) bool { return now.Sub(t).Abs() < max(coverWait, 2*f.using.Interval) }
	switch {
	case f.using.Params.Whole || f.unseen.until.IsZero():
		return nil
	case !since.IsZero() && snapshot.TooOld(since, now, limit):
		return unavailable(snapshot.PodsStale,
			"changes of the pods have not been seen since %s (limit %s), so their load is not known: %v",
			since.UTC().Format(time.RFC3339), limit, why)
	case recent(f.unseen.long):
		return unavailable(snapshot.PodsStale,
			"changes of the pods are seen again; those that have come meanwhile are read now")
	case since.IsZero() && !recent(f.unseen.until):
		f.unseen = unseen{}
	}
	return nil
}

// unseen is when changes of the pods were not seen. That goes on to count until the pods that came meanwhile have been
// read. Zero: they have been.
type unseen struct {
	until time.Time
	long  time.Time // until when one such time was too long to forecast; short ones do not add up
}

// note notes since when changes are not seen, zero if they are.
func (u *unseen) note(since, now time.Time, limit time.Duration) {
	if since.IsZero() {
		return
	}
	u.until = now
	if snapshot.TooOld(since, now, limit) {
		u.long = now
	}
}

// addInstances checks that the samples of the instances add up to the load, and from when on.
func (f *Feed) addInstances(in *pipeline.Input) (err error) {
	in.Target = max(1, in.Target)
	f.spacing.measure(in.Instances, in.Now, f.newest)
	in.Since, err = f.coverage.cover(in.Instances, f.pace(), in.Now)
	if why, ok := errors.AsType[*snapshot.Unavailable](err); ok && why.Reason == snapshot.NoReadyPods && f.replicas.known && f.replicas.count == 0 {
		return unavailable(snapshot.NoReadyPods, "the target is scaled to 0 replicas. No pod is left whose load could start it again: "+
			"set it to 1, and minReplicas of the HPA as well, or take a source with scope Target")
	}
	return err
}

// addWhole adds the load of the target as a whole, once it has been read for long enough to see a trend.
func (f *Feed) addWhole(in *pipeline.Input, windowStart int64, w *workspace) error {
	s := f.series[source.WholeTarget]
	if s == nil {
		return unavailable(snapshot.WaitingForSamples, "the load of the target has not been read yet")
	}
	s.Trim(windowStart)
	total := []pipeline.Instance{{ID: source.WholeTarget, Samples: s.AppendTo(w.samples)}}
	w.samples = total[0].Samples[:0]
	f.refused.setOutliers(w.filter.Apply(total, f.scale(in.Target, s.Highest())))
	in.Total = total[0].Samples
	f.kept.Store(int64(len(in.Total)))
	if len(in.Total) == 0 {
		return unavailable(snapshot.WaitingForSamples, "the load of the target has not been read twice yet")
	}
	f.spacing.measure(total, in.Now, f.newest)
	p := f.pace()
	if left := in.Total[0].T + max(warmUpTicks*p.tick, 2*p.reading) - in.Now; left > 0 {
		return unavailable(snapshot.WarmingUp, "the load of the target is read; a trend can be seen in %s", (time.Duration(left) * time.Millisecond).Round(time.Second))
	}
	return nil
}

// unpack puts instances with their samples into a workspace. It drops the samples of instances that no longer exist, and the failures
// of ended ones.
func (f *Feed) unpack(fleet []podtracker.Instance, windowStart int64, w *workspace) {
	w.instances, w.samples, w.highest = w.instances[:0], w.samples[:0], 0
	read := 0
	for i := range fleet {
		m := &fleet[i]
		start, counts := f.clock.start(m)
		if !counts {
			continue
		}
		x := pipeline.Instance{ID: m.ID, Start: start}
		if !m.End.IsZero() {
			x.End = m.End.UnixMilli()
			x.Start = min(x.Start, x.End)
			delete(f.failing, m.ID)
		}
		if s := f.series[m.ID]; s != nil && !f.using.Params.Whole {
			s.Trim(windowStart)
			from := len(w.samples)
			w.samples = s.AppendTo(w.samples)
			x.Samples = slices.Clip(w.samples[from:])
			w.highest = max(w.highest, s.Highest())
			read++
		}
		w.instances = append(w.instances, x)
	}
	f.kept.Store(int64(len(w.samples) / max(1, len(fleet))))
	if read < len(f.series) || len(f.failing)+len(f.clock.moved) > 0 {
		f.forget(fleet)
	}
}

// forget drops samples and failures of instances that no longer exist.
func (f *Feed) forget(fleet []podtracker.Instance) {
	present := make(map[string]bool, len(fleet)+1)
	present[source.WholeTarget] = f.using.Params.Whole
	for i := range fleet {
		present[fleet[i].ID] = true
	}
	before := len(f.series)
	maps.DeleteFunc(f.series, func(id string, _ *samples.Packed) bool { return !present[id] })
	if len(f.series) < before {
		f.forgotten++
	}
	maps.DeleteFunc(f.failing, func(id string, _ failing) bool { return !present[id] })
	f.clock.forget(present)
}

// rateSpan is the time over which the rate of samples is measured.
const rateSpan = 10 * time.Second

// describe returns a snapshot without a forecast.
func (f *Feed) describe(now time.Time) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Metric: f.key, TargetKind: f.using.TargetKind, TargetName: f.using.TargetName,
		Threshold: f.using.Params.Threshold, Activation: f.using.Params.Activation, StaleAfter: f.using.Params.StaleAfter,
		Whole: f.using.Params.Whole, Source: f.using.Source, SampleInterval: f.spacing.interval(), SampleDelay: f.spacing.delay(),
		ReplicasLost: f.replicasLost(), PodsLost: f.podsLost, Bounds: f.bounds, ActiveSchedules: f.active,
		StartupTime: f.startupTime(f.using), At: now, Failing: f.failures(), SourceErr: f.sourceErr,
	}
	if s.SourceErr == nil {
		s.SourceErr = f.failing[source.WholeTarget].err
	}
	if f.using.Params.Whole && s.SourceErr == nil {
		s.SourceErr = f.refused.reasons(now.Add(-f.using.Params.StaleAfter))[source.WholeTarget]
	}
	s.Refused = f.refused.count(now.Add(-f.window))
	if pods := f.pods.Load(); pods != nil && f.using.MeasureStartup {
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

// replicasLost returns since when the replicas of the target are not known: they cannot be read, or changes of them or of
// its pods are not seen.
func (f *Feed) replicasLost() (since time.Time) {
	all := []time.Time{f.replicas.lost, f.podsLost}
	if lost := f.scaleLost.Load(); lost != nil && *lost != nil {
		all = append(all, (*lost)())
	}
	for _, t := range all {
		if since.IsZero() || !t.IsZero() && t.Before(since) {
			since = t
		}
	}
	return since
}

func (f *Feed) failures() []snapshot.Failure {
	reasons := f.refused.reasons(f.now().Add(-f.using.Params.StaleAfter))
	if len(f.failing)+len(reasons) == 0 {
		return nil
	}
	names := map[string]string{}
	if pods := f.pods.Load(); pods != nil {
		for _, m := range (*pods).Instances(f.now()) {
			names[m.ID] = m.Pod.Name
		}
	}
	maps.DeleteFunc(reasons, func(id string, _ error) bool { return names[id] == "" }) // its pod has ended
	for id, x := range f.failing {
		reasons[id] = x.err
	}
	delete(reasons, source.WholeTarget)
	out := make([]snapshot.Failure, 0, len(reasons))
	for id, err := range reasons {
		out = append(out, snapshot.Failure{Pod: names[id], Err: err})
	}
	slices.SortFunc(out, func(a, b snapshot.Failure) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// explain turns an error of a run into the published reason. It resets the feed where the samples have run out.
func (f *Feed) explain(err error, now time.Time) *snapshot.Unavailable {
	newest, limit := time.UnixMilli(f.newest), f.using.Params.StaleAfter
	ranOut := f.newest > 0 && snapshot.TooOld(newest, now, limit)
	var why *snapshot.Unavailable
	var stale *pipeline.StaleError
	switch {
	case errors.As(err, &why):
	case errors.As(err, &stale), errors.Is(err, pipeline.ErrNoData):
		if ranOut {
			f.reset()
		}
		why = unavailable(snapshot.WaitingForSamples, "%s has been read twice within the window", f.nothing())
	default:
		why = unavailable(snapshot.BadSamples, "%v", err)
	}
	if why.Reason == snapshot.WaitingForSamples && ranOut {
		why = unavailable(snapshot.Stale, "the newest sample is %s old (limit %s)", now.Sub(newest).Round(time.Second), limit)
		if every := f.spacing.interval(); 2*every > limit {
			why.Message += fmt.Sprintf("; samples are %s apart: staleAfter must be at least twice that", every.Round(time.Second))
		}
	}
	if why.Reason == snapshot.WaitingForSamples {
		if failure := f.failure(now); failure != "" {
			why = unavailable(snapshot.SourceFailing, "%s", failure)
		}
	}
	return why
}

// nothing says what has not been read.
func (f *Feed) nothing() string {
	if f.using.Params.Whole {
		return "no load of the target"
	}
	return "no pod"
}

func (f *Feed) startupTime(c *settings) time.Duration {
	p := &c.Params
	pods := f.pods.Load()
	switch {
	case pods == nil || !c.MeasureStartup:
		return p.StartupTime
	case c.Farther: // the farther forecast adds the wait for a node: the nearer one is of pods that find one
		return (*pods).StartupTimeOnNode(p.Method, p.StartupTime)
	}
	return (*pods).StartupTime(p.Method, p.StartupTime)
}

// nodeStartupTime returns how long a node takes to start, 0 while nobody asks.
func (f *Feed) nodeStartupTime() time.Duration {
	if f.using.NodeStartupTime > 0 || f.nodes == nil {
		return f.using.NodeStartupTime
	}
	return f.nodes()
}

func (f *Feed) publish(s *snapshot.Snapshot) { f.published.Store(s) }

// publishErr publishes why there is no forecast.
func (f *Feed) publishErr(why error, now time.Time) {
	f.watch.trace.Store(nil)
	f.schedule(now)
	s := f.describe(now)
	s.Err = why
	f.publish(s)
}
