package prometheus

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/foresail/foresail/adapter/source"
)

// beginWithin is the time within which a group that has begun, or that someone has joined, asks for the first time.
const beginWithin = 2 * time.Second

// group asks once for all subscriptions that share a query.
type group struct {
	source *Source
	key    groupKey
	server *server
	cancel context.CancelFunc
	joined chan struct{} // someone has

	mu            sync.Mutex
	subscriptions []*subscription // not changed but replaced

	// Of the goroutine that asks:
	random   *rand.Rand // spreads retries
	phase    time.Duration
	failures int       // in a row
	answered time.Time // when the newest whole answer was asked for, zero = the whole window is to be asked for
	spacing  int64     // of the samples of the newest answer that told (ms)
}

func newGroup(s *Source, key groupKey, v *server) *group {
	phase := source.Phase(key.interval, key.address, key.query, key.podLabel, key.namespaceLabel)
	return &group{
		source: s, key: key, server: v, cancel: func() {}, joined: make(chan struct{}, 1),
		phase: phase, random: rand.New(rand.NewPCG(0, uint64(phase))),
	}
}

func (g *group) join(u *subscription) {
	g.mu.Lock()
	g.subscriptions = append(slices.Clone(g.subscriptions), u)
	g.mu.Unlock()
	select {
	case g.joined <- struct{}{}:
	default:
	}
}

// part takes a subscription out and tells whether none is left.
func (g *group) part(u *subscription) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.subscriptions = slices.DeleteFunc(slices.Clone(g.subscriptions), func(x *subscription) bool { return x == u })
	return len(g.subscriptions) == 0
}

func (g *group) list() []*subscription {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.subscriptions
}

// run asks until ctx ends: at the group's own phase within its interval, so that groups are spread over it; soon after
// someone has joined; and ever less often while the server fails.
func (g *group) run(ctx context.Context) {
	now := g.source.options.Now
	due := now().Add(g.soon())
	timer := time.NewTimer(due.Sub(now()))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.joined:
			if soon := now().Add(g.soon()); g.failures == 0 && soon.Before(due) {
				due = soon
			}
		case <-timer.C:
			err := g.ask(ctx)
			if ctx.Err() != nil {
				return
			}
			due = now().Add(g.pause(err))
		}
		timer.Reset(due.Sub(now()))
	}
}

// soon is the part of beginWithin, or of the interval if that is shorter, that the phase is of the interval.
func (g *group) soon() time.Duration {
	return time.Duration(float64(g.phase) / float64(g.key.interval) * float64(min(beginWithin, g.key.interval)))
}

// pause returns how long not to ask after a query that ended so.
func (g *group) pause(err error) time.Duration {
	if err == nil {
		g.failures = 0
		return source.UntilNext(time.Duration(g.source.options.Now().UnixNano()), g.phase, g.key.interval)
	}
	g.failures++
	return spread(source.Backoff(g.failures, g.key.interval, g.source.options.MaxBackoff), g.key.interval, g.random.Float64())
}

// spread shortens a wait by up to a half, as a number from 0 to 1 decides, but to no less than the interval: one server
// may be asked by many groups, which it fails all at once.
func spread(wait, interval time.Duration, random float64) time.Duration {
	return max(interval, wait-time.Duration(random*float64(wait)/2))
}

// step is the time in which each series gets a sample and all are asked for (ms).
func (g *group) step() int64 { return max(g.key.interval.Milliseconds(), g.spacing) }

// span is how far back a query has to reach for those who wait for the answer. As long as whole answers come, that is
// since the last, and two steps more for samples that were late. It never is more than a whole first answer has.
func (g *group) span(subscriptions []*subscription) (span time.Duration, whole bool) {
	var most, first time.Duration
	for _, u := range subscriptions {
		most = max(most, u.config.reach())
		if u.waits() {
			first = max(first, u.config.reach())
		}
	}
	span = most
	if !g.answered.IsZero() {
		span = max(first, max(0, g.source.options.Now().Sub(g.answered))+2*time.Duration(g.step())*time.Millisecond)
	}
	return min(span, most), span >= most
}

// ask queries the server once and hands the answer, or why there is none, to the subscriptions.
func (g *group) ask(ctx context.Context) error {
	if !g.server.enter(ctx) {
		return ctx.Err()
	}
	subscriptions := g.list()
	span, whole := g.span(subscriptions)
	began := g.source.options.Now()
	a, err := g.query(ctx, span)
	g.server.exit()
	g.count(ctx, a, err, g.source.options.Now().Sub(began))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && a.empty() {
		// Samples may be further apart than was asked for: what is said about them waits until all was asked for.
		g.answered = time.Time{}
		if !whole {
			return nil
		}
	}
	if err != nil {
		for _, u := range subscriptions {
			u.refuse(err)
		}
		return err
	}
	g.take(a, began, span, subscriptions)
	return nil
}

// take hands an answer to the subscriptions.
func (g *group) take(a *answer, began time.Time, span time.Duration, subscriptions []*subscription) {
	g.spacing = cmp.Or(a.spacing, g.spacing)
	if !a.empty() && a.partial == "" {
		g.answered = began
	}
	for _, u := range subscriptions {
		u.take(a, taking{now: began, span: span, step: g.step(), spacing: cmp.Or(g.spacing, g.step())})
	}
}

// query asks the server for a span.
func (g *group) query(ctx context.Context, span time.Duration) (*answer, error) {
	o := &g.source.options
	timeout := o.timeout(g.key.interval)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	matrix, warnings, err := g.server.rangeVector(ctx, g.key.query, span,
		v1.WithTimeout(wholeSeconds(timeout)), // or the server would work on what nobody waits for
		v1.WithLimit(uint64(o.MaxSeries)+1))   // one more tells that there are too many
	if err != nil {
		return nil, explain(err, &g.key, timeout)
	}
	if len(matrix) > o.MaxSeries {
		return nil, fail(resultLimit, "%s: query %.200q returns more than %d series; it must select less", g.key.address, g.key.query, o.MaxSeries)
	}
	a, err := newAnswer(matrix, &g.key, warnings)
	if err != nil {
		return nil, fail(resultContent, "%s: query %.200q: %w", g.key.address, g.key.query, err)
	}
	return a, nil
}

// count tells the metrics how a query went.
func (g *group) count(ctx context.Context, a *answer, err error, took time.Duration) {
	t := g.source.telemetry
	t.duration.Observe(took.Seconds())
	as := resultSuccess
	var why *failure
	switch {
	case ctx.Err() != nil:
		as = resultCancelled
	case errors.As(err, &why):
		as = why.as
	case a.partial != "":
		as = resultPartial
	case a.empty():
		as = resultEmpty
	}
	if a != nil {
		t.series.Add(float64(len(a.series) + len(a.unlabeled)))
	}
	t.queries.WithLabelValues(string(as)).Inc()
}
