package prometheus

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/internal/share"
)

// beginWithin is the maximum time until the first query of a new group, and until the next one after a subscription has
// joined.
const beginWithin = 2 * time.Second

// group sends one query for all subscriptions that share it.
type group struct {
	source  *Source
	key     groupKey
	tenancy promapi.Tenancy
	server  *server
	cancel  context.CancelFunc
	joined  chan struct{} // signals that a subscription has joined

	mu            sync.Mutex
	subscriptions []*subscription // not changed but replaced

	// Used only by the goroutine of run:
	random   *rand.Rand // spreads retries
	phase    time.Duration
	failures int       // in a row
	answered time.Time // when the newest whole answer was requested, zero = the whole window is due
	spacing  int64     // between samples, of the newest answer that shows it (ms)
}

func newGroup(s *Source, key groupKey, v *server) *group {
	phase := source.Phase(key.interval, key.address, key.namespace, key.query, key.podLabel)
	return &group{
		source: s, key: key, tenancy: s.options.Servers.Tenancy(key.address), server: v, cancel: func() {},
		joined: make(chan struct{}, 1),
		phase:  phase, random: rand.New(rand.NewPCG(0, uint64(phase))),
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

// part removes a subscription and returns whether none is left.
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

// run queries until ctx ends: at the phase of the group within its interval, so that groups are spread over it; soon
// after a subscription has joined; and less and less often while the server fails.
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

// soon scales the phase to beginWithin, or to the interval if that is shorter.
func (g *group) soon() time.Duration {
	return time.Duration(float64(g.phase) / float64(g.key.interval) * float64(min(beginWithin, g.key.interval)))
}

// pause returns the time until the next query, after one that ended with err.
func (g *group) pause(err error) time.Duration {
	if err == nil {
		g.failures = 0
		return source.UntilNext(time.Duration(g.source.options.Now().UnixNano()), g.phase, g.key.interval)
	}
	g.failures++
	return spread(source.Backoff(g.failures, g.key.interval, g.source.options.MaxBackoff),
		g.key.interval, g.random.Float64())
}

// spread shortens a wait by up to a half, by a random number from 0 to 1, but not below the interval. A server that
// fails fails many groups at once.
func spread(wait, interval time.Duration, random float64) time.Duration {
	return max(interval, wait-time.Duration(random*float64(wait)/2))
}

// step is the time in which every series gets a sample and is queried (ms).
func (g *group) step() int64 { return max(g.key.interval.Milliseconds(), g.spacing) }

// span returns the span of the next query, and whether it is the whole window. After a complete answer it reaches back
// to that answer, and two steps more for late samples. It is never longer than that of a first query.
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

// ask queries the server once and gives the answer, or the error, to the subscriptions.
func (g *group) ask(ctx context.Context) error {
	if !slices.ContainsFunc(g.list(), func(u *subscription) bool { return !source.Refuses(u.sink) }) {
		return nil // nothing takes what would be read
	}
	query, cancel := context.WithCancel(ctx)
	defer cancel()
	slot := g.server.slots.Lease(g.key.namespace, cancel)
	defer slot.End()
	if err := g.enter(ctx, slot); err != nil {
		return err
	}
	subscriptions := g.list()
	span, whole := g.span(subscriptions)
	began := g.source.options.Now()
	a, err := g.query(query, span)
	slot.End()
	if err != nil && slot.Recalled() {
		err = g.slotRevoked(began)
	}
	g.count(ctx, a, err, g.source.options.Now().Sub(began))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && a.empty() && a.foreign == 0 {
		// Samples may be further apart than this span: report nothing until the whole window was queried.
		g.answered = time.Time{}
		if !whole {
			return nil
		}
	}
	if err != nil {
		for _, u := range subscriptions {
			u.fail(err)
		}
		return err
	}
	g.take(a, began, span, subscriptions)
	return nil
}

// enter waits for a slot of the server. Subscriptions learn of a long wait while it lasts.
func (g *group) enter(ctx context.Context, slot *share.Lease) error {
	patience := max(g.key.interval, g.source.options.MaxBackoff)
	report := time.AfterFunc(patience, func() {
		err := promapi.Fail(promapi.Timeout,
			"%s: no query slot of %d within %v: other queries of the namespace take them; "+
				"queries must be fewer, faster, or have longer intervals", g.key.address, g.server.slots.Total(), patience)
		for _, u := range g.list() {
			u.fail(err)
		}
	})
	defer report.Stop()
	return slot.Take(ctx, 1)
}

// slotRevoked returns the error of a query whose slot went to another namespace.
func (g *group) slotRevoked(began time.Time) error {
	return promapi.Fail(promapi.Timeout,
		"%s: query %.200q was ended after %v, because other namespaces need their share of the %d query slots; "+
			"it must be faster, or the namespace must have fewer queries",
		g.key.address, g.key.query, g.source.options.Now().Sub(began).Round(time.Millisecond), g.server.slots.Total())
}

// take gives an answer to the subscriptions.
func (g *group) take(a *answer, began time.Time, span time.Duration, subscriptions []*subscription) {
	g.spacing = cmp.Or(a.spacing, g.spacing)
	if !a.empty() && a.partial == "" {
		g.answered = began
	}
	for _, u := range subscriptions {
		u.take(a, taking{now: began, span: span, step: g.step(), spacing: cmp.Or(g.spacing, g.step())})
	}
}

// query queries the server over a span.
func (g *group) query(ctx context.Context, span time.Duration) (*answer, error) {
	o := &g.source.options
	q := promapi.Question{
		Address: g.key.address, Query: g.key.query, Accepted: acceptedQuery(g.key.podLabel, g.tenancy.NamespaceLabel),
		Timeout: o.timeout(g.key.interval), MaxSeries: o.MaxSeries,
		Tenant: g.key.namespace,
	}
	matrix, warnings, err := q.Samples(ctx, g.server.client, span)
	if err != nil {
		return nil, err
	}
	a, err := g.newAnswer(matrix, warnings)
	if err != nil {
		return nil, promapi.Fail(promapi.Content, "%s: query %.200q: %w", g.key.address, g.key.query, err)
	}
	return a, nil
}

// count records a query in metrics.
func (g *group) count(ctx context.Context, a *answer, err error, took time.Duration) {
	o := outcome{err: err}
	if a != nil {
		o.partial, o.empty = a.partial != "", a.empty()
	}
	g.source.telemetry.asked(ctx, o, took)
}

// server is one address that groups query. Namespaces share its slots.
type server struct {
	client  *promapi.Client
	slots   *share.Pool // of live queries
	history *share.Pool // one slot, held while a query for a history is under way and for a while after it
	groups  int         // that ask it; the source's lock guards it
}

// close closes the connections to a server, which may be nil, that is not queried any more.
func (v *server) close() {
	if v != nil {
		v.client.CloseIdleConnections()
	}
}
