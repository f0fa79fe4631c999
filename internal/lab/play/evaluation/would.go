package evaluation

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/play/backtest"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/internal/lab/world/workload"
	"github.com/foresail/foresail/internal/schedule"
	"github.com/foresail/foresail/pipeline"
)

const (
	// scraped is how often KEDA, or an adapter, gets to see a metric that Foresail reads more often.
	scraped = 5 * time.Second
	// mostPods bounds a simulated fleet.
	mostPods = 1000
	// leastStartup and mostStartup are what the simulator plays.
	leastStartup, mostStartup = time.Second, time.Hour
)

// The scalers that are simulated, by their names in internal/lab/scaler.
const (
	foresailScaler    = "foresail-total"
	hpaScaler         = "keda"
	sameScaler        = "keda/same-behavior"
	clairvoyantScaler = "clairvoyant"
)

func simulated() []string {
	return []string{foresailScaler, hpaScaler, sameScaler, clairvoyantScaler}
}

// Play is how the load is played.
type Play struct {
	Seeds []uint64
	// requests per second that keep a pod fully busy: how much chance there is in the load of a
	// second
	Capacity float64
	Prices   *score.Prices // nil: nothing is in money
	Progress func(done, all int)
}

// world is a target, its load as it is played, and what had to be assumed.
type world struct {
	options *backtest.Options
	start   time.Time // of the trace
	notes   []string
}

func (w *world) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// fleetOf returns the fleet of a PredictedMetric, whose calendar may be nil.
func fleetOf(p *pipeline.Params, c *schedule.Calendar) *fleet {
	return &fleet{model: p.Model, threshold: p.Threshold, whole: p.Whole, idle: p.Activation, max: p.Max, calendar: c}
}

// unplayable is why nothing can be simulated.
type unplayable struct{ reason string }

func (u *unplayable) Error() string { return u.reason }

// worldOf prepares a simulation of what the record has. Its error is *unplayable if there can be none.
func worldOf(pm *v1alpha1.PredictedMetric, p pipeline.Params, r *Record, play Play) (*world, error) {
	if p.Min == 0 {
		return nil, &unplayable{"spec.minReplicas is 0, and the simulator has no target without pods"}
	}
	w := &world{options: &backtest.Options{
		Scalers: simulated(), Seeds: play.Seeds, Progress: play.Progress, Capacity: play.Capacity, Min: p.Min,
		Max:   p.Max,
		Paper: scaler.PaperParams(), Behavior: scaler.RecommendedBehavior(),
	}}
	if a := pm.Spec.Autoscaler; a != nil {
		w.options.Behavior.ScaleDown.StabilizationWindowSeconds = a.ScaleDownStabilizationSeconds
	}
	if err := w.bound(r); err != nil {
		return nil, err
	}
	w.startup(pm, &p, r)
	w.sources(r)
	f := fleetOf(&p, nil)
	unit := w.options.InPods(p)
	if kind := p.Model.Kind; kind != pipeline.Linear {
		w.note("HPAs are simulated as if they read the load and not the metric, "+
			"which with spec.model %s is better than they could.", kind)
	}
	if len(pm.Spec.Schedules) > 0 {
		w.note("Bounds of spec.schedules are left out: all scalers are simulated with those of spec.")
	}
	return w, w.trace(r, f, unit)
}

// bound says how many pods there may be at most.
func (w *world) bound(r *Record) error {
	largest := 0
	for i := r.first(r.From); i < len(r.Moments); i++ {
		if n := pods(&r.Moments[i]); n > float64(largest) {
			largest = int(n)
		}
	}
	if w.options.Max == math.MaxInt32 {
		w.options.Max = max(2*largest, w.options.Min)
		w.note("spec.maxReplicas is absent: all scalers are simulated with at most %d pods, twice the most that there were.", w.options.Max)
	}
	if largest > mostPods {
		return &unplayable{fmt.Sprintf("there were %d pods, and the simulator plays at most %d", largest, mostPods)}
	}
	w.options.Max = min(w.options.Max, max(mostPods, w.options.Min))
	return nil
}

// startup is how long pods took to start: as measured at most times, else as the status or the spec has it.
func (w *world) startup(pm *v1alpha1.PredictedMetric, p *pipeline.Params, r *Record) {
	value, from := median(r, startupTime), "measured"
	if math.IsNaN(value) {
		value, from = p.StartupTime.Seconds(), "assumed by spec.startupTime"
		if s := pm.Status.StartupTime; s != nil {
			value, from = s.Seconds(), "measured, as the status has it"
		}
	}
	startup := time.Duration(value * float64(time.Second)).Round(100 * time.Millisecond)
	w.options.Startup = max(leastStartup, min(startup, mostStartup))
	w.note("A pod takes %s to start (%s).", w.options.Startup, from)
	if w.options.Startup != startup {
		w.note("The startup time is %s, of which the simulator plays %s to %s.", startup, leastStartup, mostStartup)
	}
}

// sources have scalers see pods as often as Foresail did, and HPAs no more often than every 5 s.
func (w *world) sources(r *Record) {
	interval := time.Second
	if v := median(r, sampleInterval); !math.IsNaN(v) {
		interval = max(time.Second, min(time.Duration(v*float64(time.Second)).Round(time.Second), coarsest))
	}
	others := max(scraped, interval)
	w.note("Foresail reads pods every %s as it did, and HPAs every %s.", interval, others)
	w.options.Sources = func(seed uint64) scaler.Sources {
		s := scaler.DefaultSources(seed)
		phase := func(of string, period time.Duration) time.Duration {
			return time.Duration(lab.Random(seed, "phase of "+of).Int64N(int64(period/time.Second))) * time.Second
		}
		s.Foresail.Window, s.Foresail.Period, s.Foresail.Phase = interval, interval, phase("the samples", interval)
		s.KEDA.Window, s.KEDA.Period, s.KEDA.Phase = others, others, phase("the scrapes", others)
		return s
	}
}

// trace is the load that was recorded.
func (w *world) trace(r *Record, f *fleet, unit float64) error {
	var points []workload.Point
	for i := range r.Moments {
		if total := f.total(&r.Moments[i]); !math.IsNaN(total) {
			points = append(points, workload.Point{At: r.at(i), Rate: total / unit})
		}
	}
	trace, err := workload.NewRecording("the recorded load", points, r.Step)
	if err != nil {
		return &unplayable{fmt.Sprintf("the load is known at too few times: %v", err)}
	}
	w.start, w.options.Trace = trace.Start, trace.Scaled(w.options.Capacity)
	if err := w.options.Validate(); err != nil {
		return &unplayable{err.Error()}
	}
	return nil
}

// parts are blocks in the time of the trace.
func (w *world) parts(r *Record, all []block) []backtest.Part {
	out := make([]backtest.Part, len(all))
	for i, b := range all {
		out[i] = backtest.Part{From: r.at(b.first).Sub(w.start), To: r.at(b.last).Sub(w.start)}
	}
	return out
}

// median is that of a metric over all that is reported on; NaN if it is never known.
func median(r *Record, m metric) float64 {
	var known []float64
	for i := r.first(r.From); i < len(r.Moments); i++ {
		if v := r.Moments[i][m]; !math.IsNaN(v) {
			known = append(known, v)
		}
	}
	if len(known) == 0 {
		return math.NaN()
	}
	slices.Sort(known)
	return known[len(known)/2]
}
