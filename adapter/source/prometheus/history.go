package prometheus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/internal/share"
	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/gate"
)

const (
	// historyDelay is the age of the end of a history: newer samples are in the window of the forecast.
	historyDelay = 5 * time.Minute
	// piecePoints is about the number of points that one query of a history requests, of minPiece
	// to longestPiece minutes. All queries of a history request at most maxPoints: that of a larger
	// fleet is shorter.
	piecePoints, minPiece, longestPiece = 10_000, 30, 24 * 60
	maxPoints                           = 4_000_000
	// historyPause is how long a server is left alone after a query, if that did not take longer.
	historyPause = 200 * time.Millisecond
	// slotPoll is how often it is checked whether live queries leave room.
	slotPoll = 100 * time.Millisecond
	// longestRange is the longest range that a mean may be of.
	longestRange = 5 * time.Minute
)

var _ source.Historian = (*Source)(nil)

// History implements source.Historian. It reads means of minutes by range queries, from the newest
// to the oldest, one at a time of each server and with pauses, and none while live queries wait.
func (s *Source) History(ctx context.Context, key types.NamespacedName, p *pipeline.Params,
	span time.Duration) (source.History, error) {
	s.mu.Lock()
	u := s.subscriptions[key]
	s.mu.Unlock()
	if u == nil {
		return source.History{}, errors.New("the source is not set")
	}
	h, err := newHistory(u, p, span, s.options.Now())
	if err != nil {
		return source.History{}, err
	}
	err = h.read(ctx)
	return source.History{
		Begin: h.begin.Add(time.Duration(h.from) * time.Minute).UnixMilli(), Minutes: h.sums.minutes(h.from),
		Points: h.points, Queries: h.queries,
	}, err
}

// history is one that is being read.
type history struct {
	subscription *subscription
	question     promapi.Question
	pods         *regexp.Regexp // nil of a target as a whole
	begin        time.Time      // of its first minute
	shift        time.Duration  // by which the middle of a range is before its end, more than that of a minute
	sums         *minuteSums

	from            int // minutes from here on have been read
	points, queries int
	partial         string // what the server warned of
}

func newHistory(u *subscription, p *pipeline.Params, span time.Duration, now time.Time) (*history, error) {
	c, g := &u.config, u.group
	u.mu.Lock()
	spacing := cmp.Or(time.Duration(u.spacing)*time.Millisecond, c.Interval)
	u.mu.Unlock()
	over, err := meanOver(spacing, c.Type)
	if err != nil {
		return nil, err
	}
	h := &history{subscription: u, shift: (over - time.Minute) / 2}
	selector := c.Query
	if !c.Whole {
		if selector, err = h.selectPods(); err != nil {
			return nil, err
		}
	}
	h.question = promapi.Question{
		Address: c.Address, Query: meanQuery(selector, over, c.Type, p.Model.Kind),
		Accepted: acceptedQuery(c.PodLabel, g.tenancy.NamespaceLabel),
		Timeout:  g.source.options.Timeout, MaxSeries: g.source.options.MaxSeries, Tenant: g.key.namespace,
	}
	minutes := int(span / time.Minute)
	h.begin = now.Add(-historyDelay - h.shift).Truncate(time.Minute).Add(-time.Duration(minutes) * time.Minute)
	h.sums, h.from = newMinuteSums(minutes, loadOf(p, h.subscription.config.Type)), minutes
	return h, nil
}

// meanOver returns what a mean of a minute is taken over: more than a minute where samples are so
// far apart that it may have too few.
func meanOver(spacing time.Duration, as source.Type) (time.Duration, error) {
	needed := 2 * spacing
	if as == source.Counter {
		needed = 4 * spacing
	}
	over := (max(needed, time.Minute) + time.Minute - 1).Truncate(time.Minute)
	if over > longestRange {
		return 0, fmt.Errorf("samples are %s apart, which is too far for means of minutes", spacing.Round(time.Second))
	}
	return over, nil
}

// meanQuery returns the query for means of the selected series. With the model Quadratic the
// load of a pod is the square, whose mean is that of the value, squared, and the variance.
func meanQuery(selector string, over time.Duration, as source.Type, kind pipeline.ModelKind) string {
	function := "avg_over_time"
	if as == source.Counter {
		function = "rate"
	}
	of := fmt.Sprintf("(%s[%ds])", selector, over/time.Second)
	query := function + of
	if kind == pipeline.Quadratic {
		query += " ^ 2"
		if as == source.Gauge {
			query += " + stdvar_over_time" + of
		}
	}
	return query
}

// loadOf returns the load of a pod by what meanQuery returns, and whether it read the maximum of
// its metric. The load is NaN if it is unknown.
func loadOf(p *pipeline.Params, as source.Type) func(float64) (float64, bool) {
	of, possible := p.Model.Load, gate.LimitsOf(p, as == source.Counter).Check
	top, limited := p.Saturation.Max*(1-p.Saturation.Zone), p.Saturation.Enabled
	if p.Model.Kind == pipeline.Quadratic {
		unit := p.Model.Load(p.Threshold)
		of, possible = func(v float64) float64 { return v }, func(v float64) (float64,
			error) {
			return gate.Number(v, unit)
		}
		top = p.Model.Load(top)
	}
	return func(v float64) (float64, bool) {
		v, err := possible(v)
		if err != nil {
			return math.NaN(), false
		}
		return of(v), limited && v >= top
	}
}

// selectPods returns a selector of the pods that the target has and had. It fails where their names
// do not tell them from others: those of all present pods must be of the form that the kind of the
// target gives them.
func (h *history) selectPods() (string, error) {
	c := &h.subscription.config
	form, ok := podNames(c.Target, c.TargetName)
	if !ok {
		return "", fmt.Errorf("%w: pods of the kind %s may have any name", source.ErrAmbiguous, c.Target)
	}
	h.pods = regexp.MustCompile("^(?:" + form + ")$")
	active := h.subscription.podIndex.Active()
	if len(active) == 0 {
		return "", errors.New("the target has no ready pod")
	}
	for _, x := range active {
		if !h.pods.MatchString(x.Pod.Name) {
			return "", fmt.Errorf("%w: the pod %s of the target is not named as one of the %s %s", source.ErrAmbiguous,
				x.Pod.Name, c.Target.Kind, c.TargetName)
		}
	}
	return matching(c.Query, c.PodLabel, form)
}

// matching returns a selector with another condition.
func matching(query, label, pattern string) (string, error) {
	matchers, err := promQL.ParseMetricSelector(query)
	if err != nil {
		return "", err
	}
	m, err := labels.NewMatcher(labels.MatchRegexp, label, pattern)
	if err != nil {
		return "", err
	}
	return selectorOf(append(matchers, m)), nil
}

// read reads piece by piece, shorter ones after the server failed with a long one.
func (h *history) read(ctx context.Context) error {
	longest := longestPiece
	pods := max(1, len(h.subscription.podIndex.Active())) // points in a minute
	for h.from > 0 && h.points < maxPoints {
		length := min(longest, max(minPiece, piecePoints/pods))
		from := max(0, h.from-length)
		points, err := h.piece(ctx, from)
		switch {
		case err == nil:
			if points > 0 {
				pods = max(1, points/(h.from-from))
			}
			h.from = from
		case length > minPiece && mayBeTooMuch(err):
			longest = max(minPiece, length/4)
		default:
			return err
		}
	}
	switch {
	case h.partial != "":
		return fmt.Errorf("the server warns, so series may be missing: %s", h.partial)
	case h.sums.doubled != "":
		return fmt.Errorf("the pod %s has several series: must be one", h.sums.doubled)
	}
	return nil
}

// mayBeTooMuch reports whether a query of less may succeed.
func mayBeTooMuch(err error) bool {
	var f *promapi.Failure
	return errors.As(err, &f) && (f.Kind == promapi.Limit || f.Kind == promapi.Timeout || f.Kind == promapi.Status)
}

// piece reads the minutes from one up to those that have been read. It returns how many points there were.
func (h *history) piece(ctx context.Context, from int) (points int, err error) {
	matrix, warnings, err := h.ask(ctx, from)
	if err != nil {
		return 0, err
	}
	if len(warnings) > 0 {
		h.partial = promapi.Short(strings.Join(warnings[:min(promapi.Shown, len(warnings))], "; "))
		h.sums.spoil(from, h.from)
		return 0, nil
	}
	part := h.sums.piece(from, h.from)
	for _, stream := range matrix {
		if stream == nil {
			continue
		}
		if len(stream.Histograms) > 0 {
			return 0, errors.New("its samples are native histograms: must be numbers")
		}
		h.points += len(stream.Values)
		points += len(stream.Values)
		name, ok := h.nameOf(stream.Metric)
		if !ok {
			continue
		}
		for _, v := range stream.Values {
			if at, ok := h.minuteOf(v.Timestamp, from); ok {
				part.add(name, at, float64(v.Value))
			}
		}
	}
	if h.pods != nil && h.from == len(h.sums.sums) {
		if err := h.checkPresent(part); err != nil {
			return points, err
		}
	}
	part.end()
	return points, nil
}

// nameOf names what a series is of: a pod of the target, or a part of its load. It returns false of
// series that are of others, which a server returns that does not apply the matchers of a query.
func (h *history) nameOf(metric model.Metric) (string, bool) {
	g := h.subscription.group
	if g.tenancy.Namespace(string(metric[model.LabelName(g.tenancy.NamespaceLabel)])) != g.key.namespace {
		return "", false
	}
	if h.pods == nil {
		return metric.String(), true
	}
	pod := string(metric[model.LabelName(g.key.podLabel)])
	return pod, h.pods.MatchString(pod)
}

// minuteOf is the minute whose mean is evaluated at a time, if that is one of the piece.
func (h *history) minuteOf(t model.Time, from int) (int, bool) {
	since := t.Time().Sub(h.begin) - h.shift
	at := int(since/time.Minute) - 1
	return at, since%time.Minute == 0 && from <= at && at < h.from
}

// checkPresent returns an error if a pod that is there now has a name of the target's pods but is
// not one of them: then others may have had such names before.
func (h *history) checkPresent(newest *piece) error {
	for pod, values := range newest.of {
		if !values[len(values)-1].known {
			continue
		}
		if _, ok := h.subscription.podIndex.Find(pod, 0); !ok {
			return fmt.Errorf("%w: the pod %s is named as one of the target, but is none of its ready pods",
				source.ErrAmbiguous, pod)
		}
	}
	return nil
}

// ask asks for a piece once it is its turn.
func (h *history) ask(ctx context.Context, from int) (model.Matrix, v1.Warnings, error) {
	g := h.subscription.group
	turn := g.server.history.Lease(g.key.namespace, nil)
	defer turn.End()
	if err := g.server.enterHistory(ctx, turn); err != nil {
		return nil, nil, err
	}
	now := g.source.options.Now
	began := now()
	matrix, warnings, err := h.question.Range(ctx, g.server.client, v1.Range{
		Start: h.begin.Add(h.shift + time.Duration(from+1)*time.Minute),
		End:   h.begin.Add(h.shift + time.Duration(h.from)*time.Minute), Step: time.Minute,
	})
	took := now().Sub(began)
	h.queries++
	g.source.telemetry.asked(ctx, outcome{partial: len(warnings) > 0, empty: len(matrix) == 0, err: err}, took)
	sleep(ctx, max(historyPause, took)) // the server is left alone for a while
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	return matrix, warnings, err
}

// enterHistory waits for the turn of a query for a history, and then until live queries leave a slot.
func (v *server) enterHistory(ctx context.Context, turn *share.Lease) error {
	if err := turn.Take(ctx, 1); err != nil {
		return err
	}
	for v.slots.InUse() == v.slots.Total() {
		if !sleep(ctx, slotPoll) {
			return ctx.Err()
		}
	}
	return nil
}

// sleep returns false once the context has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
