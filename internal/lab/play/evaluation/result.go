package evaluation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/lab/play/backtest"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/pipeline"
)

// Result is what Foresail did for a PredictedMetric, next to what others would have done with the same load.
type Result struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Target    string   `json:"target"`
	Threshold string   `json:"threshold"`
	Recorded  string   `json:"recordedEvery"`
	Replicas  int      `json:"foresailReplicas"`   // whose metrics were read
	Currency  string   `json:"currency,omitempty"` // of costs; empty without prices
	Spans     []Span   `json:"spans"`
	Notes     []string `json:"notes"` // what was assumed
	// Unsimulated is why there is nothing but what happened; empty if there is more.
	Unsimulated string `json:"unsimulated,omitempty"`

	began  []time.Time    // of each block, for the charts
	played [][]score.Pods // by who scaled, as it ran first, then block
}

// Span is what happened in some time.
type Span struct {
	Name       string    `json:"name"` // such as 7d
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Hours      float64   `json:"hours"`
	KnownHours float64   `json:"knownHours"` // of which all figures are
	Blocks     int       `json:"blocks"`     // hours, or parts of them, that intervals are drawn from
	Gaps       []Gap     `json:"gaps"`       // the longest
	MoreGaps   int       `json:"moreGaps"`
	Verdict    []string  `json:"verdict"`
	Rows       []Row     `json:"rows"` // as it ran, then what was simulated
	Forecast   Forecast  `json:"forecast"`

	prices *score.Prices // nil: nothing is in money
}

// Row is what happened, or would have happened, with a scaler.
type Row struct {
	Scaler           string   `json:"scaler"` // "" as it ran
	Title            string   `json:"title"`
	TooFewMinutes    Estimate `json:"minutesTooFewPods"` // ready, though the target could have had more
	TooFewShare      float64  `json:"shareTooFewPods"`
	AtMaximumMinutes Estimate `json:"minutesAtMaximum"` // with more load than the maximum number of pods holds
	PodHours         Estimate `json:"podHours"`
	ScaleUps         float64  `json:"scaleUps"`
	ScaleDowns       float64  `json:"scaleDowns"`
	// Cost is that of pods and of time above the threshold, which is too few pods or at the
	// maximum; nil without prices.
	Cost *Estimate `json:"cost,omitempty"`
	// ThanRan is how much more than as it ran, ThanForesail how much more than Foresail simulated.
	ThanRan      *Difference `json:"moreThanAsItRan,omitempty"`
	ThanForesail *Difference `json:"moreThanForesailSimulated,omitempty"`
}

// Estimate is a figure with its interval, which is absent where there are too few hours for one.
type Estimate struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// Clear reports whether the interval excludes zero.
func (e Estimate) Clear() bool {
	return e.Low != nil && score.Span{Low: *e.Low, High: *e.High}.Clear()
}

// Difference is between two scalers in the same hours.
type Difference struct {
	TooFewMinutes Estimate  `json:"minutesTooFewPods"`
	PodHours      Estimate  `json:"podHours"`
	Cost          *Estimate `json:"cost,omitempty"`
}

// Forecast is how good the forecasts were, as Foresail's own metrics have it; absent where they do not.
type Forecast struct {
	ErrorRatio    *float64 `json:"errorRatio,omitempty"`    // of the naive forecast's: below 1 is better
	LateRatio     *float64 `json:"lateRatio,omitempty"`     // share of the time with too few pods ordered
	LatenessRatio *float64 `json:"latenessRatio,omitempty"` // that was allowed
}

// shownGaps is how many gaps a report lists.
const shownGaps = 5

// Spans of time before the end of a record, by their names.
type Spans struct {
	Names   []string
	Lengths []time.Duration
}

// Longest is the longest.
func (s *Spans) Longest() time.Duration { return slices.Max(s.Lengths) }

// Evaluate reports on a record of the longest of the spans.
func Evaluate(ctx context.Context, pm *v1alpha1.PredictedMetric, r *Record, spans Spans, play Play) (*Result, error) {
	pm = pm.DeepCopy()
	pm.Spec.Default()
	p, err := params.FromSpec(pm.Spec)
	if err != nil {
		return nil, err
	}
	calendar, err := params.Schedules(pm.Spec, &p)
	if err != nil {
		return nil, err
	}
	f := fleetOf(&p, calendar)
	out := &Result{
		Namespace: pm.Namespace, Name: pm.Name, Target: pm.Spec.ScaleTargetRef.Kind + " " + pm.Spec.ScaleTargetRef.Name,
		Threshold: pm.Spec.Threshold.String(), Recorded: r.Step.String(), Replicas: r.Replicas,
	}
	blocks := r.blocks(f)
	if len(blocks) == 0 {
		return nil, fmt.Errorf("%w: there are samples of pods, but none of a load: neither %s nor %s", ErrNotRecorded,
			load, loadPerInstance)
	}
	if play.Prices != nil {
		out.Currency = play.Prices.Currency
	}
	e := evaluator{record: r, fleet: f, blocks: blocks, prices: play.Prices}
	ran := make([]score.Pods, len(blocks))
	for i, b := range blocks {
		ran[i] = r.ran(f, b)
		out.began = append(out.began, r.at(b.first))
	}
	e.played = [][]score.Pods{ran}
	if err := e.simulate(ctx, out, pm, play, p); err != nil {
		return nil, err
	}
	out.Notes = append(out.Notes, e.thresholds(p.Threshold)...)
	out.Notes = append(out.Notes, e.saturated(p.Saturation)...)
	out.Notes = append(out.Notes, e.maximum()...)
	for i, name := range spans.Names {
		out.Spans = append(out.Spans, e.span(name, spans.Lengths[i]))
	}
	out.played = e.played
	return out, nil
}

// evaluator has what happened in each block of the longest span.
type evaluator struct {
	record *Record
	fleet  *fleet
	blocks []block
	played [][]score.Pods // by who scaled, as it ran first, then block
	prices *score.Prices  // nil: nothing is in money
}

// simulate plays what happened with each scaler, or notes why it cannot.
func (e *evaluator) simulate(
	ctx context.Context, out *Result, pm *v1alpha1.PredictedMetric, play Play, p pipeline.Params,
) error {
	w, err := worldOf(pm, p, e.record, play)
	if none := new(unplayable); errors.As(err, &none) {
		out.Unsimulated = none.reason
		return nil
	}
	if err != nil {
		return err
	}
	figures, err := backtest.PlayParts(ctx, w.options, w.parts(e.record, e.blocks))
	e.played = append(e.played, figures...)
	out.Notes = append(w.notes, fmt.Sprintf("Requests arrive at random, as if %g a second kept a pod fully busy. "+
		"Seeds, the same for all scalers: %d.", play.Capacity, len(play.Seeds)))
	return err
}

// thresholds notes another threshold than that of now.
func (e *evaluator) thresholds(now float64) []string {
	other := e.during(func(m *Moment) bool { return math.Abs(m[threshold]-now) > 1e-6*now })
	if other == 0 {
		return nil
	}
	return []string{fmt.Sprintf("The threshold was another one for %s; all of the time is held against that of now.",
		other)}
}

// maximum notes which maximum time above the threshold was held against: none is recorded.
func (e *evaluator) maximum() []string {
	if !slices.ContainsFunc(e.played[0], func(p score.Pods) bool { return p.AboveThresholdMinutes > 0 }) {
		return nil
	}
	return []string{fmt.Sprintf("Time at the maximum is counted with today's maxReplicas of %d, outside of schedules: "+
		"if that was lower before, time at the maximum of then counts as too few pods.", e.fleet.max)}
}

// saturated notes that more load came than a metric with a maximum shows.
func (e *evaluator) saturated(s pipeline.Saturation) []string {
	at := e.during(func(m *Moment) bool { return s.Enabled && m[loadPerInstance] >= s.Max*(1-s.Zone) })
	if at == 0 {
		return nil
	}
	return []string{fmt.Sprintf("For %s pods were at the maximum of the metric: more load came than is recorded, and all others meet less than that.", at)}
}

// during is for how long something holds, of the time that is known.
func (e *evaluator) during(holds func(*Moment) bool) time.Duration {
	n := 0
	for _, b := range e.blocks {
		for i := b.first; i < b.last; i++ {
			if holds(&e.record.Moments[i]) {
				n++
			}
		}
	}
	return time.Duration(n) * e.record.Step
}

// span reports on some time before the end.
func (e *evaluator) span(name string, length time.Duration) Span {
	r := e.record
	first := slices.IndexFunc(e.blocks, func(b block) bool { return r.To.Sub(r.at(b.first+1)) < length })
	if first < 0 {
		first = len(e.blocks)
	}
	s := Span{Name: name, From: r.To.Add(-length), To: r.To, Hours: length.Hours(), Blocks: len(e.blocks) - first,
		prices: e.prices}
	s.KnownHours = sum(e.played[0][first:]).Hours()
	begin := r.first(s.From)
	s.Gaps, s.MoreGaps = longest(r.gaps(e.fleet, begin, len(r.Moments)))
	s.Forecast = Forecast{
		ErrorRatio:    known(r.mean(errorRatio, begin, len(r.Moments))),
		LateRatio:     known(r.mean(lateRatio, begin, len(r.Moments))),
		LatenessRatio: known(r.mean(latenessRatio, begin, len(r.Moments))),
	}
	if s.Blocks > 0 {
		s.Rows = e.rows(first, s.KnownHours)
	}
	s.Verdict = s.verdict()
	return s
}

func known(v float64, _ time.Duration) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

// longest returns the longest gaps, in order of time, and how many more there are.
func longest(all []Gap) (some []Gap, more int) {
	bySize := slices.Clone(all)
	slices.SortStableFunc(bySize, func(a, b Gap) int { return int(b.To.Sub(b.From) - a.To.Sub(a.From)) })
	some = bySize[:min(shownGaps, len(bySize))]
	slices.SortFunc(some, func(a, b Gap) int { return a.From.Compare(b.From) })
	return some, len(all) - len(some)
}

// rows returns those of the blocks from one on.
func (e *evaluator) rows(first int, knownHours float64) (rows []Row) {
	names := append([]string{""}, simulated()...)
	ran := e.played[0][first:]
	var ours []score.Pods
	if len(e.played) > 1 {
		ours = e.played[slices.Index(names, foresailScaler)][first:]
	}
	for i, all := range e.played {
		blocks, total := all[first:], sum(all[first:])
		row := Row{
			Scaler: names[i], Title: title(names[i]), Cost: e.cost(blocks, nil),
			TooFewMinutes:    estimate(blocks, nil, score.Pods.TooFewMinutes),
			AtMaximumMinutes: estimate(blocks, nil, atMaximum),
			TooFewShare:      total.TooFewMinutes() / (60 * knownHours),
			PodHours:         estimate(blocks, nil, score.Pods.PodHours),
			ScaleUps:         total.ScaleUps, ScaleDowns: total.Actions - total.ScaleUps,
		}
		if i > 0 {
			row.ThanRan = e.difference(blocks, ran)
		}
		if i > 0 && names[i] != foresailScaler {
			row.ThanForesail = e.difference(blocks, ours)
		}
		rows = append(rows, row)
	}
	return rows
}

// title returns what a report calls a scaler; "" is what happened.
func title(name string) string {
	if name == "" {
		return "as it ran"
	}
	return scaler.Title(name)
}

func atMaximum(p score.Pods) float64 { return p.AtMaximumMinutes }

func sum(blocks []score.Pods) (total score.Pods) {
	for _, p := range blocks {
		total = total.Plus(p)
	}
	return total
}

func (e *evaluator) difference(a, b []score.Pods) *Difference {
	return &Difference{
		TooFewMinutes: estimate(a, b, score.Pods.TooFewMinutes), PodHours: estimate(a, b, score.Pods.PodHours),
		Cost: e.cost(a, b),
	}
}

// cost returns an estimate of the cost of blocks, nil without prices.
func (e *evaluator) cost(a, b []score.Pods) *Estimate {
	if e.prices == nil {
		return nil
	}
	out := estimate(a, b, func(p score.Pods) float64 { return p.Bill(e.prices) })
	return &out
}

// resampling is the seed of intervals.
const resampling = 1

// estimate returns the sum of a figure over blocks, or of its difference from the same blocks of
// another scaler. A difference by rounding alone is none: its interval would exclude 0.
func estimate(blocks, than []score.Pods, of func(score.Pods) float64) (e Estimate) {
	values := make([]float64, len(blocks))
	for i, p := range blocks {
		values[i] = of(p)
		if than == nil {
			continue
		}
		if values[i] -= of(than[i]); math.Abs(values[i]) <= 1e-9 {
			values[i] = 0
		}
	}
	for _, v := range values {
		e.Value += v
	}
	if s := score.Resampled(values, resampling); !math.IsNaN(s.Low) {
		e.Low, e.High = &s.Low, &s.High
	}
	return e
}
