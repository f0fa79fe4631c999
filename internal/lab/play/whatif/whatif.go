// Package whatif plays the recorded hour of a PredictedMetric again with other parameters, for the
// page of `foresail dashboard`: Foresail with these parameters, keda, and clairvoyant as the bound.
package whatif

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/foresail/foresail/internal/lab/play/backtest"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/internal/lab/world/workload"
	"github.com/foresail/foresail/pipeline"
)

const (
	// shortest is how much of the load must be known without a gap.
	shortest = 10 * time.Minute
	// longestGap is what two points may be apart.
	longestGap = 20 * time.Second
	// maxPlayed is how many pods are played at most, so that it takes seconds.
	maxPlayed = 500
	// longestStartup is how long pods may take to start.
	longestStartup = 30 * time.Minute
	// step is between two points of a result.
	step = 5 * time.Second

	// work is what a pod does in a second, in pieces: with so many, chance has no say.
	work = 1e6
)

// names are the scalers that are played.
var names = []string{"foresail-total", "keda", "clairvoyant"}

// Point is what was recorded at a time.
type Point struct {
	At              time.Time
	Load            float64 // of all pods; NaN: not known
	Ready, Replicas int     // -1: not known
}

// Result is what was played.
type Result struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Gaps bool      `json:"gaps"` // more was recorded, before or after a gap
	Step int       `json:"stepSeconds"`
	Runs []Run     `json:"runs"` // the first is what was recorded

	Assumed []string `json:"assumed"`
}

// Run is one scaler.
type Run struct {
	Name         string  `json:"name"`
	AboveMinutes float64 `json:"aboveThresholdMinutes"`
	PodHours     float64 `json:"podHours"`
	Replicas     []int   `json:"replicas"` // at From and each step after it; -1: not known
}

func runOf(name string, p *score.Pods, replicas []int) Run {
	return Run{Name: name, AboveMinutes: p.AboveThresholdMinutes, PodHours: p.PodHours(), Replicas: replicas}
}

// Play plays what is known of an hour for the longest time without a gap. Params are in units of the metric.
func Play(ctx context.Context, params pipeline.Params, recorded []Point) (*Result, error) {
	known := longest(recorded)
	if len(known) == 0 || known[len(known)-1].At.Sub(known[0].At) < shortest {
		return nil, fmt.Errorf("less than %s of the load are recorded without a gap: there is not enough to play",
			minutes(shortest))
	}
	options, err := optionsOf(params, known)
	if err != nil {
		return nil, err
	}
	played, err := backtest.Play(ctx, options, step)
	if err != nil {
		return nil, err
	}
	r := &Result{
		From: known[0].At, To: known[len(known)-1].At, Gaps: len(known) < len(recorded), Step: int(step / time.Second),
		Runs: []Run{asRecorded(known, params.Threshold)}, Assumed: assumed(options.Startup),
	}
	for _, p := range played {
		r.Runs = append(r.Runs, runOf(p.Scaler, &p.Pods, p.Replicas))
	}
	return r, nil
}

func minutes(d time.Duration) string { return fmt.Sprintf("%.0f minutes", d.Minutes()) }

// longest returns the longest part without a gap, of equals the newest.
func longest(points []Point) []Point {
	var best []Point
	begin := 0
	consider := func(end int) {
		if part := points[begin:end]; len(part) > 0 &&
			(len(best) == 0 || part[len(part)-1].At.Sub(part[0].At) >= best[len(best)-1].At.Sub(best[0].At)) {
			best = part
		}
	}
	for i, p := range points {
		switch {
		case math.IsNaN(p.Load) || p.Load < 0:
			consider(i)
			begin = i + 1
		case i > begin && p.At.Sub(points[i-1].At) > longestGap:
			consider(i)
			begin = i
		}
	}
	consider(len(points))
	return best
}

// optionsOf are in pods' work: a pod that is fully busy does 1 a second.
func optionsOf(params pipeline.Params, known []Point) (*backtest.Options, error) {
	if params.Model.Kind == pipeline.Overhead {
		return nil, &pipeline.FieldError{Field: "spec.baseline", Value: params.Model.Baseline,
			Accept: "absent for its load to be played"}
	}
	if params.Model.Kind != "" && params.Model.Kind != pipeline.Linear {
		return nil, fmt.Errorf("spec.model: %q: must be Linear for its load to be played", string(params.Model.Kind))
	}
	if params.StartupTime > longestStartup {
		return nil, &pipeline.FieldError{Field: "spec.startupTime", Value: params.StartupTime,
			Accept: fmt.Sprintf("at most %s to be played", longestStartup)}
	}
	most := 0.0
	for _, p := range known {
		most = max(most, p.Load)
	}
	if most == 0 {
		return nil, errors.New("the load was 0 all the time: there is nothing to play")
	}
	if need := most / params.Threshold; min(need, float64(params.Max)) > maxPlayed || params.Min > maxPlayed {
		return nil, fmt.Errorf("%.4g replicas would be needed: at most %d can be played",
			max(math.Ceil(need), float64(params.Min)), maxPlayed)
	}
	o := &backtest.Options{
		Scalers: names, Min: max(1, params.Min), Max: min(params.Max, maxPlayed), Capacity: work,
		Startup: params.StartupTime,
		Seeds:   []uint64{1}, Paper: scaler.PaperParams(), Behavior: scaler.RecommendedBehavior(),
	}
	full := o.InPods(params)
	points := make([]workload.Point, len(known))
	for i, p := range known {
		points[i] = workload.Point{At: p.At, Rate: p.Load / full * work}
	}
	trace, err := workload.NewTrace("recorded", points)
	if err != nil {
		return nil, err
	}
	o.Trace = trace
	return o, o.Validate()
}

// asRecorded returns the recorded replicas, with their figures at a threshold.
func asRecorded(known []Point, threshold float64) Run {
	var figures score.Pods
	var replicas []int
	next := known[0].At
	for i, p := range known {
		for ; !next.After(p.At); next = next.Add(step) {
			replicas = append(replicas, p.Replicas)
		}
		if i+1 == len(known) {
			break
		}
		lasted := known[i+1].At.Sub(p.At)
		figures.Seconds += float64(max(p.Ready, p.Replicas, 0)) * lasted.Seconds()
		if p.Load > threshold*float64(max(0, p.Ready)) {
			figures.AboveThresholdMinutes += lasted.Minutes()
		}
	}
	return runOf("recorded", &figures, replicas)
}

func assumed(startup time.Duration) []string {
	return []string{
		fmt.Sprintf("All pods are alike, share the load at random, and take %s to start, give or take 15%%.", startup),
		"The load is the smoothed one that was recorded, a point each 5 s with straight lines between. It stays the same whatever the replicas are.",
		"What Foresail has learned of the days before is not known: it begins with ten minutes of the first load, and as many pods as that needs.",
		"Foresail's HPA is the one that foresail hpa prints, keda's has the defaults; both look each 15 s. The clairvoyant knows the load to come, as no scaler does.",
		"Windows of spec.schedules are left out, and so are other PredictedMetrics of the target. Minutes above the threshold are those of the threshold given here, of the recorded replicas too.",
	}
}
