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
	seasonalWidth   = 30 * time.Minute // before and after a time of day that counts for it
	seasonalEvery   = time.Hour        // between two queries of the past
	seasonalTimeout = 30 * time.Second // of one query
	seasonalBackoff = time.Minute      // after the first failure; doubles up to an hour
	// seasonalChunk is the time range of one query: Prometheus returns at most 11,000 samples of a series.
	seasonalChunk = 10_000 * seasonalStep
)

// minConfidence is the confidence below which the floor has no effect: below it the days of the
// profile differ more than they agree.
const minConfidence = 0.5

// seasonal recommends the nodes that past weeks needed at the same hour. It is safe for concurrent use.
//
// Its nodes are a level, whatever the present load is. How the present load goes on, from what recurs, is learned by
// [pipeline.Learned], as for pods.
//
// One week compares the same time of day of the last seven days, several weeks the same time of the same day of the
// week. Times of day are UTC: after a change to summer time, the profile is an hour late until the window has passed.
type seasonal struct {
	config SeasonalConfig
	nodequery.Question

	mu       sync.Mutex
	past     samples.Series
	err      error     // of the last attempt
	next     time.Time // of the next attempt; zero = at once
	failures int       // in a row
	querying bool
}

func newSeasonal(o *Options) (*seasonal, error) {
	c := *o.Seasonal
	q, err := newQuestion(o, &c.Query, seasonalStep, seasonalTimeout)
	if err != nil {
		return nil, err
	}
	return &seasonal{config: c, Question: q}, nil
}

// refresh queries the past in the background if it is due, until ctx ends.
func (s *seasonal) refresh(ctx context.Context, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	early := now.Before(s.next) && s.next.Sub(now) <= seasonalEvery // further ahead only if the clock was set back
	if s.querying || early {
		return
	}
	s.querying = true
	go func() {
		past, err := s.learn(ctx, now)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.querying, s.err = false, err
		if err == nil {
			// Not nil, even without samples.
			s.past, s.failures, s.next = slices.Grow(past, 1), 0, now.Add(seasonalEvery)
			return
		}
		s.next = now.Add(min(seasonalBackoff<<min(s.failures, 10), seasonalEvery))
		s.failures++
	}()
}

// learn queries the past weeks in chunks.
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

// at returns the floor for a future time.
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
	case p.found < p.minDays:
		out.Err = fmt.Sprintf("the past has this hour on %d of %d days, fewer than %d", p.found, p.days, p.minDays)
	case out.Confidence < minConfidence:
		out.Err = fmt.Sprintf(
			"the confidence of %.2f is below %.2f: %d of %d days, which differ by %.1f of %.1f nodes on average",
			out.Confidence,
			minConfidence,
			p.found,
			p.days,
			p.deviation,
			p.load,
		)
	default:
		out.Known = true
	}
	return out
}

// profile summarizes one hour of past days.
type profile struct {
	days      int     // compared
	found     int     // of them, with at least half of their samples
	minDays   int     // of found days for a floor
	complete  float64 // mean share of samples of the days found
	load      float64 // median of the means of days, in nodes
	deviation float64 // mean deviation of the days from load
}

// profileOf returns the profile of the hour around a future time.
func profileOf(past samples.Series, ahead time.Time, weeks int) profile {
	p, period := profile{days: 7, minDays: 3}, day
	if weeks > 1 {
		p, period = profile{days: weeks, minDays: 2}, week
	}
	const expected = float64(2 * seasonalWidth / seasonalStep)
	var days []float64
	for i := range p.days {
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

// nodes returns the load rounded up.
func (p *profile) nodes() int {
	return int(min(max(0, math.Ceil(p.load-negligible)), maxWorkers))
}

// confidence returns a value from 0 to 1 that grows with the number, the completeness and the similarity of the days.
// Deviations are relative to the load, or to one node if that is more.
func (p *profile) confidence() float64 {
	if p.found == 0 {
		return 0
	}
	alike := 1 - min(1, p.deviation/max(1, p.load))
	return float64(p.found) / float64(p.days) * p.complete * alike
}

func mean(of []pipeline.Sample) (m float64) {
	for _, s := range of {
		m += s.V / float64(len(of))
	}
	return m
}
