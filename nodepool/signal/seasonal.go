package signal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/foresail/foresail/internal/nodequery"
	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/pipeline"
)

const (
	day  = 24 * time.Hour
	week = 7 * day

	seasonalStep    = 5 * time.Minute  // between samples of the past
	seasonalWidth   = 30 * time.Minute // before and after the time of day, that belongs to it
	seasonalEvery   = time.Hour        // the past is learned again
	seasonalTimeout = 30 * time.Second // of one query
	seasonalBackoff = time.Minute      // after the first failure; it doubles, up to an hour
	// seasonalChunk is how much is asked for at once: Prometheus returns at most 11,000 samples of a series.
	seasonalChunk = 10_000 * seasonalStep
)

// seasonal learns the past weeks, and tells what they had at an hour (seed 001, layer two). It is safe for concurrent use.
//
// With one week it looks at the same time of day of the last seven days, and with more at the same time of the same day of
// the week. Times of day are UTC's: where clocks are put forward, the profile is an hour late until it has been relearned.
type seasonal struct {
	config SeasonalConfig
	nodequery.Question

	mu       sync.Mutex
	past     samples.Series
	err      error     // of the last attempt
	next     time.Time // the next one; zero = at once
	failures int       // in a row
	asking   bool
}

func newSeasonal(o *Options) (*seasonal, error) {
	c := *o.Seasonal
	if c.Weeks < 1 || c.Weeks > 12 {
		return nil, &pipeline.FieldError{Field: "weeks", Value: c.Weeks, Accept: "from 1 to 12"}
	}
	if !(c.MinConfidence >= 0 && c.MinConfidence <= 1) {
		return nil, &pipeline.FieldError{Field: "minConfidence", Value: c.MinConfidence, Accept: "between 0 and 1"}
	}
	q, err := newQuestion(o, &c.Query, seasonalStep, seasonalTimeout)
	if err != nil {
		return nil, err
	}
	return &seasonal{config: c, Question: q}, nil
}

// refresh has the past learned beside, if it is time to, until ctx ends.
func (s *seasonal) refresh(ctx context.Context, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	early := now.Before(s.next) && s.next.Sub(now) <= seasonalEvery // it is later only if the clock was set back
	if s.asking || early {
		return
	}
	s.asking = true
	go func() {
		past, err := s.learn(ctx, now)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asking, s.err = false, err
		if err == nil {
			s.past, s.failures, s.next = slices.Grow(past, 1), 0, now.Add(seasonalEvery) // not nil, though there may be none
			return
		}
		s.next = now.Add(min(seasonalBackoff<<min(s.failures, 10), seasonalEvery))
		s.failures++
	}()
}

// learn asks for the past weeks, a chunk after the other.
func (s *seasonal) learn(ctx context.Context, now time.Time) ([]pipeline.Sample, error) {
	step := seasonalStep.Milliseconds()
	end := nodequery.Floor(now.UnixMilli(), step)
	var lines []nodequery.Line
	for from := end - (time.Duration(s.config.Weeks)*week + seasonalWidth).Milliseconds(); from <= end; {
		to := min(from+seasonalChunk.Milliseconds()-step, end)
		some, err := s.Ask(ctx, from, to)
		if err != nil {
			return nil, err
		}
		lines = append(lines, some...)
		from = to + step
	}
	past, err := nodequery.Join(lines)
	if err != nil {
		return nil, fmt.Errorf("%s: query %.200q returns %w", s.Text.Address, s.Text.Query, err)
	}
	return past, nil
}

var errNotLearned = errors.New("the past has not been learned yet")

// at tells what past weeks had at a time to come.
func (s *seasonal) at(ahead time.Time) *plan.Seasonal {
	s.mu.Lock()
	past, err := s.past, s.err
	s.mu.Unlock()
	switch {
	case past == nil && err != nil:
		return &plan.Seasonal{Err: err.Error()}
	case past == nil:
		return &plan.Seasonal{Err: errNotLearned.Error()}
	}
	p := profileOf(past, ahead, s.config.Weeks)
	out := &plan.Seasonal{Nodes: p.nodes(), Confidence: p.confidence()}
	switch {
	case p.found < p.fewest:
		out.Err = fmt.Sprintf("the past has this hour on %d of %d days, fewer than %d", p.found, p.desired, p.fewest)
	case out.Confidence < s.config.MinConfidence:
		out.Err = fmt.Sprintf("the confidence of %.2f is below %.2f: %d of %d days, which differ by %.1f of %.1f nodes on average",
			out.Confidence, s.config.MinConfidence, p.found, p.desired, p.deviation, p.load)
	default:
		out.Known = true
	}
	return out
}

// profile is what days of the past had at one hour.
type profile struct {
	desired, found, fewest int     // days: looked at, that have at least half of their samples, that must
	complete               float64 // the share of samples that there are, of the days found
	load                   float64 // the median of the days' means, in nodes
	deviation              float64 // from it, the mean over the days
}

// profileOf looks at the same hour as a time to come has.
func profileOf(past samples.Series, ahead time.Time, weeks int) profile {
	p, period := profile{desired: 7, fewest: 3}, day
	if weeks > 1 {
		p, period = profile{desired: weeks, fewest: 2}, week
	}
	const expected = float64(2 * seasonalWidth / seasonalStep)
	var days []float64
	for i := range p.desired {
		middle := ahead.Add(-time.Duration(i+1) * period)
		first, end := middle.Add(-seasonalWidth).UnixMilli(), middle.Add(seasonalWidth).UnixMilli()
		around := past[past.From(first):past.From(end)]
		if share := min(1, float64(len(around))/expected); share >= 0.5 {
			p.complete += share
			days = append(days, mean(around))
		}
	}
	if p.found = len(days); p.found == 0 {
		return p
	}
	p.complete /= float64(p.found)
	p.load = samples.Median(days)
	for _, x := range days {
		p.deviation += math.Abs(x-p.load) / float64(p.found)
	}
	return p
}

// nodes is the load rounded up.
func (p *profile) nodes() int {
	return int(min(max(0, math.Ceil(p.load-negligible)), mostWorkers))
}

// confidence grows with how many days there are, how whole and how alike they are, from 0 to 1. Differences are seen
// beside the load, or beside one node if it is less.
func (p *profile) confidence() float64 {
	if p.found == 0 {
		return 0
	}
	alike := 1 - min(1, p.deviation/max(1, p.load))
	return float64(p.found) / float64(p.desired) * p.complete * alike
}

func mean(of []pipeline.Sample) (m float64) {
	for _, s := range of {
		m += s.V / float64(len(of))
	}
	return m
}
