package forecaster

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/gate"
)

// predictor makes the forecasts of a feed, one after the other. The feed's mu is held.
type predictor struct {
	*shared
	using    *settings
	bounds   *pipeline.Bounds // of the schedules, nil without any
	active   []string         // the names of these
	window   time.Duration    // how far back the last forecast looked, which follows the startup time
	replicas replicas
	clock    clock
	podsLost time.Time // since when changes of the pods are not seen; zero: they are
	unseen   unseen
	floor    floor
	readings readings
	accuracy pipeline.Accuracy
	learned  learnedLoad
}

func newPredictor(s *shared) predictor {
	p := predictor{shared: s, using: s.settings.Load()}
	p.readings.failing = map[string]failing{}
	p.reset()
	return p
}

// workspace is memory that forecasts reuse, one after the other.
type workspace struct {
	memory    pipeline.Memory
	instances []pipeline.Instance
	samples   []pipeline.Sample // of the instances, one after the other
	highest   float64           // no sample of the instances is higher
	filter    gate.Filter
}

// run returns the snapshot of a forecast, or of the reason why there is none.
func (p *predictor) run(now time.Time, w *workspace) *snapshot.Snapshot {
	p.updateBounds(now)
	p.replicas = p.readings.collect(p.inbox, now)
	p.followClock(now)
	p.podsLost = time.Time{}
	forecast, newestStart, err := p.forecast(now, w)
	s := p.emptySnapshot(now)
	if err != nil {
		p.watch.trace.Store(nil)
		s.Err = p.unavailableReason(err, now)
		return s
	}
	s.Forecast = forecast
	s.Lateness = p.using.Params.Lateness
	if p.bounds != nil {
		s.Lateness = p.bounds.Lateness
	}
	if p.using.Params.Method == pipeline.Adaptive {
		s.Learned = p.learned.past.Known()
	}
	s.Accuracy = snapshot.Accuracy{LastHour: p.accuracy.LastHour(), LastDay: p.accuracy.LastDay()}
	history := pipeline.ScalingTimes{LastUp: p.replicas.rose, LastDown: p.replicas.fell, NewestStart: newestStart}
	s.Decision = p.using.Params.Cooldown.Apply(forecast.Decision, forecast.Target, now.UnixMilli(), history)
	return s
}

// fail returns a snapshot without a forecast, and why there is none.
func (p *predictor) fail(why error, now time.Time) *snapshot.Snapshot {
	p.watch.trace.Store(nil)
	p.updateBounds(now)
	s := p.emptySnapshot(now)
	s.Err = why
	return s
}

// adoptSettings has the forecast follow the configuration of now. The floor is of the parameters
// that it was found with.
func (p *predictor) adoptSettings() {
	next := p.settings.Load()
	if next.Params != p.using.Params {
		p.floor = floor{}
	}
	p.using = next
}

// reset drops the samples before a gap. After it all pods must be read again before their sum is a
// load, and values across the gap would be invented.
func (p *predictor) reset() {
	p.readings.reset()
	p.accuracy.DropPending()
}

// clear drops everything that was read.
func (p *predictor) clear() {
	p.reset()
	clear(p.readings.failing)
	p.readings.newest = 0
	p.footprint.followed.Store(-1)
}

// followClock drops the samples of another clock than that of now, and moves what was counted from its
// times. Samples that lie ahead of the clock show that the clock of their sender was set back.
func (p *predictor) followClock(now time.Time) {
	tolerance := p.using.Params.Interval
	by := p.clock.step(now, tolerance)
	if by == 0 && p.readings.newest <= now.Add(tolerance).UnixMilli() {
		return
	}
	p.readings.newest = 0
	p.reset()
	if by == 0 {
		return
	}
	p.replicas = p.inbox.clockSet(by, now)
	p.readings.spacing.at = 0
	clear(p.readings.failing)
	p.clock.set(p.target.instances(now.Add(-p.window)), by, now)
	p.learned.rewind(now)
}

// updateBounds notes the bounds that hold at a time.
func (p *predictor) updateBounds(now time.Time) {
	c := &p.using.Config
	if c.Schedules == nil {
		p.bounds, p.active = nil, nil
		return
	}
	ahead := c.Params.HorizonFor(p.target.startupTime(c))
	forNode := ahead
	if c.NodeForecast {
		forNode += p.target.nodeStartupTime(c)
	}
	p.bounds, p.active = c.Schedules.At(now, ahead, forNode)
}

// forecast runs the pipeline over the samples of the pods, and returns when the newest instance started (ms).
func (p *predictor) forecast(now time.Time, w *workspace) (forecast pipeline.Forecast, newestStart int64, err error) {
	pods, c := p.target.known(), &p.using.Config
	if pods == nil {
		return forecast, 0, unavailable(snapshot.NoReadyPods, "the scale target has not been found yet")
	}
	if err := p.checkPods(pods, now); err != nil {
		return forecast, 0, err
	}
	startupTime := p.target.startupTime(c)
	p.window = c.Params.WindowFor(startupTime)
	p.inbox.limit(p.settings.Load().limits(p.window))
	windowStart := now.Add(-p.window)
	members := pods.Instances(windowStart.Add(-c.Params.RedistributionTimeout))
	p.footprint.followed.Store(int64(len(members)))
	p.unpack(members, windowStart.UnixMilli(), w)
	in := pipeline.Input{
		Now: now.UnixMilli(), Instances: w.instances,
		TargetRose: p.replicas.rose, StartupTime: startupTime, Bounds: p.bounds, Learned: p.learned.of(&c.Params),
	}
	if p.replicas.known {
		in.Target = p.replicas.count
	}
	if c.NodeForecast {
		in.NodeStartupTime = p.target.nodeStartupTime(c)
	}
	if err := p.checkLoad(&in, windowStart.UnixMilli(), w); err != nil {
		return forecast, 0, err
	}
	newestStart = pipeline.Never
	for i := range in.Instances {
		newestStart = max(newestStart, in.Instances[i].Start)
	}
	forecast, err = p.runPipeline(in, w, members)
	if err == nil {
		p.learn(&forecast, w, now)
	}
	return forecast, newestStart, err
}

// runPipeline makes the forecast of members, and records its trace while one is requested.
func (p *predictor) runPipeline(
	in pipeline.Input, w *workspace, members []podtracker.Instance,
) (pipeline.Forecast, error) {
	if !p.watch.requested(in.Now) {
		p.watch.trace.Store(nil)
		return p.using.pipeline.RunIn(&w.memory, in)
	}
	forecast, stages, err := p.using.pipeline.Trace(&w.memory, in, snapshot.MaxTracedPods)
	if err == nil {
		p.watch.trace.Store(traceOf(forecast, stages.Newest(maxTicks), &in, members, p.readings.series))
	}
	return forecast, err
}

// learn judges the forecast and learns the load. While changes of the pods are not seen a part of
// the load is missing, which is learned once they are.
func (p *predictor) learn(forecast *pipeline.Forecast, w *workspace, now time.Time) {
	c := &p.using.Config
	if !c.Params.Whole && !p.unseen.until.IsZero() {
		p.floor.raise(forecast, &c.Params, now)
		return
	}
	p.accuracy.Judge(w.memory.Loads(), forecast.Claim(c.Params.Activation))
	p.learned.past.Learn(w.memory.Loads(), c.Params.LearnOptions(), c.Schedules.Unlearned)
	p.floor.recordServed(forecast, now)
}

// scale returns the scale by which the readings of a number of instances are filtered. None of them is above highest.
func (p *predictor) scale(instances int, highest float64) gate.Scale {
	c := &p.using.Params
	return gate.Scale{
		Model: c.Model, Unit: c.Model.Load(c.Threshold) * float64(max(1, instances)),
		Spacing: max(c.Interval, p.using.Interval, p.readings.spacing.interval()), Counted: p.using.Counter,
		Highest: highest,
	}
}

// checkPods returns why the pods are too old to forecast from. A load that is measured as a whole needs none.
func (p *predictor) checkPods(pods Pods, now time.Time) error {
	since, why := pods.Lost()
	limit := p.using.Params.StaleAfter
	p.podsLost = since
	p.unseen.observe(since, now, limit)
	recent := func(t time.Time) bool { return now.Sub(t).Abs() < max(coverWait, 2*p.using.Interval) }
	switch {
	case p.using.Params.Whole || p.unseen.until.IsZero():
		return nil
	case !since.IsZero() && snapshot.TooOld(since, now, limit):
		return unavailable(snapshot.PodsStale,
			"changes of the pods have not been seen since %s (limit %s), so their load is not known: %v",
			since.UTC().Format(time.RFC3339), limit, why)
	case recent(p.unseen.long):
		return unavailable(snapshot.PodsStale,
			"changes of the pods are seen again; those that have come meanwhile are read now")
	case since.IsZero() && !recent(p.unseen.until):
		p.unseen = unseen{}
	}
	return nil
}

// unseen is when changes of the pods were not seen. That goes on to count until the pods that came meanwhile have been
// read. Zero: they have been.
type unseen struct {
	until time.Time
	long  time.Time // until when one such time was too long to forecast; short ones do not add up
}

// observe notes since when changes are not seen, zero if they are.
func (s *unseen) observe(since, now time.Time, limit time.Duration) {
	if since.IsZero() {
		return
	}
	s.until = now
	if snapshot.TooOld(since, now, limit) {
		s.long = now
	}
}

// checkLoad checks that the readings add up to a load, and from when on.
func (p *predictor) checkLoad(in *pipeline.Input, windowStart int64, w *workspace) (err error) {
	if p.using.Params.Whole {
		return p.addWholeLoad(in, windowStart, w)
	}
	r := &p.readings
	r.refused.setOutliers(w.filter.Apply(in.Instances, p.scale(1, w.highest)))
	in.Target = max(1, in.Target)
	r.spacing.measure(in.Instances, in.Now, r.newest)
	in.Since, err = r.coverage.cover(in.Instances, p.pace(), in.Now)
	why, failed := errors.AsType[*snapshot.Unavailable](err)
	if failed && why.Reason == snapshot.NoReadyPods && p.replicas.known && p.replicas.count == 0 {
		return unavailable(snapshot.NoReadyPods, "the target is scaled to 0 replicas. "+
			"No pod is left whose load could start it again: "+
			"set it to 1, and minReplicas of the HPA as well, or take a source with scope Target")
	}
	return err
}

// addWholeLoad adds the load of the target as a whole, once it has been read for long enough to see a trend.
func (p *predictor) addWholeLoad(in *pipeline.Input, windowStart int64, w *workspace) error {
	r := &p.readings
	s := r.series[source.WholeTarget]
	if s == nil {
		return unavailable(snapshot.WaitingForSamples, "the load of the target has not been read yet")
	}
	s.Trim(windowStart)
	total := []pipeline.Instance{{ID: source.WholeTarget, Samples: s.AppendTo(w.samples)}}
	w.samples = total[0].Samples[:0]
	r.refused.setOutliers(w.filter.Apply(total, p.scale(in.Target, s.Highest())))
	in.Total = total[0].Samples
	p.footprint.kept.Store(int64(len(in.Total)))
	if len(in.Total) == 0 {
		return unavailable(snapshot.WaitingForSamples, "the load of the target has not been read twice yet")
	}
	r.spacing.measure(total, in.Now, r.newest)
	pace := p.pace()
	if left := in.Total[0].T + max(warmUpTicks*pace.tick, 2*pace.reading) - in.Now; left > 0 {
		in := (time.Duration(left) * time.Millisecond).Round(time.Second)
		return unavailable(snapshot.WarmingUp, "the load of the target is read; a trend can be seen in %s", in)
	}
	return nil
}

// pace assumes that instances are read as often as their samples show, or as the source is set to, whichever is rarer.
func (p *predictor) pace() pace {
	c := &p.using.Params
	reading := max(p.using.Interval, p.readings.spacing.interval())
	return pace{
		tick: c.Interval.Milliseconds(), reading: reading.Milliseconds(),
		window: p.window.Milliseconds(), staleAfter: c.StaleAfter.Milliseconds(),
		gap: max(c.ReplacementGap(), 2*reading, 2*c.Interval).Milliseconds(),
	}
}

// unpack puts instances with their samples into a workspace. It drops the samples of instances that
// no longer exist, and the failures of ended ones.
func (p *predictor) unpack(fleet []podtracker.Instance, windowStart int64, w *workspace) {
	w.instances, w.samples, w.highest = w.instances[:0], w.samples[:0], 0
	r := &p.readings
	read := 0
	for i := range fleet {
		m := &fleet[i]
		start, counts := p.clock.start(m)
		if !counts {
			continue
		}
		x := pipeline.Instance{ID: m.ID, Start: start}
		if !m.End.IsZero() {
			x.End = m.End.UnixMilli()
			x.Start = min(x.Start, x.End)
			delete(r.failing, m.ID)
		}
		if s := r.series[m.ID]; s != nil && !p.using.Params.Whole {
			s.Trim(windowStart)
			from := len(w.samples)
			w.samples = s.AppendTo(w.samples)
			x.Samples = slices.Clip(w.samples[from:])
			w.highest = max(w.highest, s.Highest())
			read++
		}
		w.instances = append(w.instances, x)
	}
	p.footprint.kept.Store(int64(len(w.samples) / max(1, len(fleet))))
	if read < len(r.series) || len(r.failing)+len(p.clock.moved) > 0 {
		p.retainOnly(fleet)
	}
}

// retainOnly drops samples and failures of instances that no longer exist.
func (p *predictor) retainOnly(fleet []podtracker.Instance) {
	present := make(map[string]bool, len(fleet)+1)
	present[source.WholeTarget] = p.using.Params.Whole
	for i := range fleet {
		present[fleet[i].ID] = true
	}
	p.readings.retainOnly(present)
	p.clock.retainOnly(present)
}

// emptySnapshot returns a snapshot without a forecast.
func (p *predictor) emptySnapshot(now time.Time) *snapshot.Snapshot {
	c, r := &p.using.Config, &p.readings
	fresh := now.Add(-c.Params.StaleAfter)
	s := &snapshot.Snapshot{
		Metric: p.key, TargetKind: c.TargetKind, TargetName: c.TargetName,
		Threshold: c.Params.Threshold, Activation: c.Params.Activation, StaleAfter: c.Params.StaleAfter,
		Whole: c.Params.Whole, Source: c.Source, SampleInterval: r.spacing.interval(), SampleDelay: r.spacing.delay(),
		ReplicasLost: p.replicasLost(), PodsLost: p.podsLost, Bounds: p.bounds, ActiveSchedules: p.active,
		StartupTime: p.target.startupTime(c), At: now, Failing: r.failures(&p.target, fresh, now),
		SourceErr: r.sourceErr,
		Refused:   r.refused.count(now.Add(-p.window)), SamplesPerSecond: r.perSecond(now),
	}
	if s.SourceErr == nil {
		s.SourceErr = r.failing[source.WholeTarget].err
	}
	if c.Params.Whole && s.SourceErr == nil {
		s.SourceErr = r.refused.reasons(fresh)[source.WholeTarget]
	}
	if pods := p.target.known(); pods != nil && c.MeasureStartup {
		s.StartupsMeasured = pods.StartupsMeasured()
	}
	if r.newest > 0 {
		s.NewestSample = time.UnixMilli(r.newest)
	}
	return s
}

// replicasLost returns since when the replicas of the target are not known: they cannot be read, or
// changes of them or of its pods are not seen.
func (p *predictor) replicasLost() (since time.Time) {
	for _, t := range []time.Time{p.replicas.lost, p.podsLost, p.target.scaleLost()} {
		if since.IsZero() || !t.IsZero() && t.Before(since) {
			since = t
		}
	}
	return since
}

// unavailableReason turns an error of a run into the published reason. It drops the samples where they have run out.
func (p *predictor) unavailableReason(err error, now time.Time) *snapshot.Unavailable {
	newest, limit := time.UnixMilli(p.readings.newest), p.using.Params.StaleAfter
	ranOut := p.readings.newest > 0 && snapshot.TooOld(newest, now, limit)
	var why *snapshot.Unavailable
	var stale *pipeline.StaleError
	switch {
	case errors.As(err, &why):
	case errors.As(err, &stale), errors.Is(err, pipeline.ErrNoData):
		if ranOut {
			p.reset()
		}
		nothing := "no pod"
		if p.using.Params.Whole {
			nothing = "no load of the target"
		}
		why = unavailable(snapshot.WaitingForSamples, "%s has been read twice within the window", nothing)
	default:
		why = unavailable(snapshot.BadSamples, "%v", err)
	}
	if why.Reason == snapshot.WaitingForSamples && ranOut {
		age := now.Sub(newest).Round(time.Second)
		why = unavailable(snapshot.Stale, "the newest sample is %s old (limit %s)", age, limit)
		if every := p.readings.spacing.interval(); 2*every > limit {
			why.Message += fmt.Sprintf("; samples are %s apart: staleAfter must be at least twice that",
				every.Round(time.Second))
		}
	}
	if why.Reason == snapshot.WaitingForSamples {
		if failure := p.readings.failure(&p.using.Config, p.target.instances(now), now); failure != "" {
			why = unavailable(snapshot.SourceFailing, "%s", failure)
		}
	}
	return why
}
