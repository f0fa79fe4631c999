package scaler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/pipeline"
)

// feed makes forecasts of what it has read of pods, as the adapter does: pods count from their
// Ready condition on, whose time has whole seconds.
type feed struct {
	pipeline *pipeline.Pipeline
	source   lab.Source
	meter    func(*lab.Pod) *lab.Meter
	warmUp   int64 // for how long the fleet is read before a forecast is made (ms)
	begun    int64 // the first sample (ms), 0 = none yet
	series   map[string]*series
	last     pipeline.Forecast // zero if the last one failed
	memory   pipeline.Memory
	past     *pipeline.Learned
}

// series is what has been read of one pod.
type series struct {
	samples []pipeline.Sample
	upTo    int64 // everything until then has been read
}

// warmUpTicks is how many sample intervals the adapter waits for before it makes a forecast.
const warmUpTicks = 10

var (
	errNoReadyPods = errors.New("no pod is ready")
	errWarmingUp   = errors.New("pods have not been read for long enough")
)

func newFeed(p pipeline.Params, s *Setup, source lab.Source, warmUp time.Duration) (*feed, error) {
	p.Threshold, p.Min, p.Max = s.Threshold, s.Min, s.Max
	made, err := pipeline.New(p)
	if err != nil {
		return nil, err
	}
	f := &feed{pipeline: made, source: source, meter: busy, warmUp: warmUp.Milliseconds(), series: map[string]*series{},
		past: pipeline.NewLearned(&p)}
	if s.Past != nil {
		f.past = s.Past.Clone()
	}
	return f, nil
}

// forecast makes a forecast and returns its decision as cooldowns leave it.
func (f *feed) forecast(v *lab.View) (pipeline.Forecast, pipeline.Decision, error) {
	f.last = pipeline.Forecast{}
	p := f.pipeline.Params()
	// A count that is there at the beginning is taken to have just risen.
	startup := startupTime(v, p.Method, p.StartupTime)
	in := pipeline.Input{Now: v.Now, Target: v.Target, TargetRose: max(0, v.Rose), StartupTime: startup}
	newest := pipeline.Never
	in.Instances = f.instances(v, v.Now-(p.WindowFor(startup)+p.RedistributionTimeout).Milliseconds())
	for i := range in.Instances {
		newest = max(newest, in.Instances[i].Start)
	}
	if err := f.cover(v, &in); err != nil {
		return pipeline.Forecast{}, pipeline.Decision{}, err
	}
	in.Learned = f.past
	forecast, err := f.pipeline.RunIn(&f.memory, in)
	if err != nil {
		return pipeline.Forecast{}, pipeline.Decision{}, err
	}
	f.past.Learn(f.memory.Loads(), p.LearnOptions(), nil)
	f.last = forecast
	h := pipeline.ScalingTimes{LastUp: in.TargetRose, LastDown: pipeline.Never, NewestStart: newest}
	if v.Fell >= 0 {
		h.LastDown = v.Fell
	}
	return forecast, p.Cooldown.Apply(forecast.Decision, forecast.Target, v.Now, h), nil
}

// instances reads the pods and returns those that were active at or after a time, each with its samples.
func (f *feed) instances(v *lab.View, since int64) []pipeline.Instance {
	out := make([]pipeline.Instance, 0, len(v.Pods))
	for _, p := range v.Pods {
		if p.Ready > v.Now || p.Ended < since {
			continue
		}
		s := f.series[p.ID]
		if s == nil {
			s = &series{upTo: max(0, since)} // nothing was read before the run
			f.series[p.ID] = s
		}
		s.read(f.source, p, f.meter(p), v.Now, since)
		x := pipeline.Instance{ID: p.ID, Start: wholeSeconds(p.Ready), Samples: s.samples}
		if p.Ended <= v.Now {
			x.End = p.Ended
		}
		out = append(out, x)
	}
	if len(out) < len(f.series) {
		f.forget(out)
	}
	return out
}

func (f *feed) forget(kept []pipeline.Instance) {
	present := make(map[string]bool, len(kept))
	for i := range kept {
		present[kept[i].ID] = true
	}
	for id := range f.series {
		if !present[id] {
			delete(f.series, id)
		}
	}
}

// read appends what has come in, and drops what is older than a time but for the newest such sample.
func (s *series) read(source lab.Source, p *lab.Pod, m *lab.Meter, now, since int64) {
	s.samples = source.Read(p, m, s.upTo, now, s.samples)
	if n := len(s.samples); n > 0 {
		s.upTo = max(s.upTo, s.samples[n-1].T)
	}
	drop := 0
	for drop+1 < len(s.samples) && s.samples[drop+1].T < since {
		drop++
	}
	s.samples = append(s.samples[:0], s.samples[drop:]...)
}

// cover returns an error as long as there are too few samples for a forecast, as in the adapter.
func (f *feed) cover(v *lab.View, in *pipeline.Input) error {
	active, first := 0, int64(0)
	for i := range in.Instances {
		x := &in.Instances[i]
		if x.End != 0 {
			continue
		}
		active++
		if n := len(x.Samples); n > 0 && (first == 0 || x.Samples[0].T < first) {
			first = x.Samples[0].T
		}
	}
	if active == 0 {
		f.begun = 0
		return errNoReadyPods
	}
	if f.begun == 0 {
		f.begun = first
	}
	if f.warmUp > 0 && (f.begun == 0 || f.begun+f.warmUp > v.Now) {
		return errWarmingUp
	}
	in.Since = f.begun
	return nil
}

// startupTime estimates how long a pod takes to start from those that exist, in order of readiness.
func startupTime(v *lab.View, m pipeline.Method, initial time.Duration) time.Duration {
	started := slices.DeleteFunc(running(v), func(p *lab.Pod) bool { return p.Ready > v.Now || p.Ready <= p.Created })
	slices.SortFunc(started, func(a, b *lab.Pod) int {
		return cmp.Or(cmp.Compare(a.Ready, b.Ready), cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	estimate := pipeline.NewStartupTime(m, initial)
	for _, p := range started[max(0, len(started)-64):] {
		estimate.Observe(wholeSeconds(p.Created), wholeSeconds(p.Ready))
	}
	return estimate.Value()
}

func wholeSeconds(t int64) int64 { return lab.AtOrBefore(t, 0, 1000) }

// Metric is what Foresail reads of each pod.
type Metric int

// The metrics there are.
const (
	Utilization Metric = iota // busy share of the event loop, which ends at 1
	// requests per second, which do not saturate; the threshold is as many as keep a pod of average
	// speed that busy
	Requests
	Both // a PredictedMetric of each, of which the HPA takes the larger
)

// feeds returns a forecast for each PredictedMetric that the HPA reads.
func (s *Setup) feeds() ([]*feed, error) {
	if s.Metric < Utilization || s.Metric > Both {
		return nil, fmt.Errorf("metric: %d: must be Utilization, Requests or Both", s.Metric)
	}
	var feeds []*feed
	if s.Metric != Requests {
		p := paramsOf(s)
		f, err := newFeed(p, s, s.Sources.Foresail, warmUpTicks*p.Interval)
		if err != nil {
			return nil, err
		}
		feeds = append(feeds, f)
	}
	if s.Metric != Utilization {
		f, err := s.ofRequests()
		if err != nil {
			return nil, err
		}
		feeds = append(feeds, f)
	}
	return feeds, nil
}

// ofRequests returns a forecast of requests per second, with the same settings but for what is of
// utilisation alone.
func (s *Setup) ofRequests() (*feed, error) {
	if !(s.Cost > 0) {
		return nil, fmt.Errorf("cost: %v: must be above 0 where requests are read", s.Cost)
	}
	r := *s
	r.Threshold = s.Threshold / s.Cost
	p := paramsOf(s)
	p.Saturation, p.Model = pipeline.Saturation{}, pipeline.Model{Kind: pipeline.Linear}
	f, err := newFeed(p, &r, s.Sources.Foresail, warmUpTicks*p.Interval)
	if err != nil {
		return nil, err
	}
	f.meter = requests
	return f, nil
}

func busy(p *lab.Pod) *lab.Meter { return &p.Busy }

func requests(p *lab.Pod) *lab.Meter { return &p.Requests }
