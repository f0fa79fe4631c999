package backtest

import (
	"context"
	"fmt"
	"time"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/play"
	"github.com/foresail/foresail/internal/lab/world/fluid"
	"github.com/foresail/foresail/pipeline"
)

// Setting is a scaler and how it is set.
type Setting struct {
	Scaler   string
	Target   float64 // the utilisation that it aims at
	Min, Max int
	Params   pipeline.Params
	Metric   Metric
}

// Metric is what is measured of a pod.
type Metric string

// The metrics. Both are in pods' work: requests are divided by a pod's capacity.
const (
	Utilization Metric = "utilization" // which cannot rise above 1
	Requests    Metric = "requests"    // which show overload
)

// player plays settings against a trace.
type player struct {
	*Options
	done, all int // runs

	pasts pasts
}

func newPlayer(o *Options) *player {
	return &player{Options: o, pasts: pasts{Options: o, epoch: learningEpoch}}
}

// play plays each setting against each section with each seed, and returns figures in the order of settings.
func (p *player) play(ctx context.Context, settings []Setting, parts []section) ([]Figures, error) {
	runs, err := p.runs(ctx, settings, parts)
	if err != nil {
		return nil, err
	}
	each := len(parts) * len(p.Seeds)
	out := make([]Figures, len(settings))
	for i := range out {
		out[i] = sum(runs[i*each : (i+1)*each]).per(len(p.Seeds))
	}
	return out, nil
}

// runs plays each setting against each section with each seed, and returns all figures: by setting,
// then section, then seed.
func (p *player) runs(ctx context.Context, settings []Setting, parts []section) ([]Figures, error) {
	each := len(parts) * len(p.Seeds)
	runs := make([]Figures, len(settings)*each)
	p.all += len(runs)
	err := play.Each(ctx, len(runs), func(i int) (Figures, error) {
		return p.one(&settings[i/each], parts[i%each/len(p.Seeds)], p.Seeds[i%len(p.Seeds)])
	}, func(i int, f Figures) {
		runs[i] = f
		p.done++
		if p.Progress != nil {
			p.Progress(p.done, p.all)
		}
	})
	return runs, err
}

func sum(all []Figures) (total Figures) {
	for _, f := range all {
		total = total.plus(f)
	}
	return total
}

func (p *player) one(s *Setting, part section, seed uint64) (Figures, error) {
	record, errors, err := p.record(s, part, seed)
	if err != nil {
		return Figures{}, err
	}
	f := p.figuresOf(record, s)
	f.Forecast = errors
	return f, nil
}

func (p *player) record(s *Setting, part section, seed uint64) (*lab.Record, Errors, error) {
	load, span := part.load(p.load()), part.span()
	// Each section has chance of its own, the same for all settings.
	runSeed := lab.Random(seed, fmt.Sprintf("section from %d", part.from)).Uint64()
	known := before{recorded: p.recorded(part, seed)}
	if isOurs(s.Scaler) {
		known.past = p.pasts.of(s, part.from-lead.Milliseconds())
	}
	scaler, err := p.scaler(s, load, known, runSeed)
	if err != nil {
		return nil, Errors{}, err
	}
	watched := &observer{Scaler: scaler, load: load, cost: 1 / p.Capacity, begins: part.begins(),
		from: span.Lead.Milliseconds(), until: (span.Lead + span.Length).Milliseconds()}
	world := fluid.New(fluid.Config{
		Load: load, Seed: runSeed, Min: s.Min, Max: s.Max, Warm: p.need(s).Pods(load.Rate(0) / p.Capacity),
		Capacity: p.Capacity, Startup: p.Startup,
		Exact: p.exact(), Unclipped: s.Metric == Requests,
	})
	return lab.Run(world, watched, span, nil), watched.errors, nil
}

const (
	// longestSection bounds the memory of a run, and is short enough for several to be played at once.
	longestSection = 6 * time.Hour
	// sampled is how long sections are of which some stand for all.
	sampled = time.Hour
	// lead is longer than the windows of scalers, so that the start of a section does not matter.
	lead = 10 * time.Minute
)

// section is a part of a trace, from and to in ms.
type section struct{ from, to int64 }

// sections cuts a part of a trace into sections that are about as long as each other, and no longer
// than a limit but for a second.
func (s section) sections(longest time.Duration) []section {
	n := max(1, (s.to-s.from+longest.Milliseconds()-1)/longest.Milliseconds())
	out := make([]section, 0, n)
	for i := range n {
		begin, end := s.from+(s.to-s.from)*i/n, s.from+(s.to-s.from)*(i+1)/n
		out = append(out, section{begin / second * second, end / second * second})
	}
	return out
}

// sample takes short sections out of a part, about as many as the budget has time for: one of each
// stretch of the same length, which one is left to chance, lest it be the same hour of each day.
// All of a part is taken that is no longer.
func (s section) sample(budget time.Duration, seed uint64) []section {
	if time.Duration(s.to-s.from)*time.Millisecond <= budget {
		return s.sections(longestSection)
	}
	all := s.sections(sampled)
	n := max(1, int(budget/sampled))
	r := lab.Random(seed, "sections to play")
	out := make([]section, 0, n)
	for i := range n {
		begin, end := len(all)*i/n, len(all)*(i+1)/n
		out = append(out, all[begin+r.IntN(end-begin)])
	}
	return out
}

// length is how long sections last together.
func length(all []section) time.Duration {
	var total int64
	for _, s := range all {
		total += s.to - s.from
	}
	return time.Duration(total) * time.Millisecond
}

func (s section) span() lab.Span {
	return lab.Span{Lead: lead, Length: time.Duration(s.to-s.from) * time.Millisecond}
}

// load is the trace as it is in the section, which begins after the lead-in.
func (s section) load(trace lab.Load) lab.Load {
	return shifted{trace, s.from - lead.Milliseconds()}
}

// begins is when the trace begins, in the time of the section.
func (s section) begins() int64 { return lead.Milliseconds() - s.from }

// counted is a load that was recorded as counts of seconds: what the trace has at the beginning of
// a second holds for all of it.
type counted struct{ lab.Load }

// Rate implements lab.Load.
func (c counted) Rate(t int64) float64 { return c.Load.Rate(t - (t%second+second)%second) }

type shifted struct {
	lab.Load
	by int64
}

// Rate implements lab.Load.
func (l shifted) Rate(t int64) float64 { return l.Load.Rate(t + l.by) }
