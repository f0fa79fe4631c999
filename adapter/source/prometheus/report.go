package prometheus

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/promapi"
)

// graceSteps is how many steps after its start a pod must have a series.
const graceSteps = 3

// report finds the problems of an answer.
type report struct {
	subscription *subscription
	answer       *answer
	taking       taking
	came         map[string]bool // the pods of the fleet that have series
	finite       bool            // a value of theirs is a number
}

// overdue returns the active instances that must have series by now.
func (r *report) overdue(active []podtracker.Instance) []podtracker.Instance {
	before := r.taking.now.Add(-graceSteps * time.Duration(r.taking.step) * time.Millisecond)
	return slices.DeleteFunc(slices.Clone(active), func(x podtracker.Instance) bool { return !x.Start.Before(before) })
}

// missing reports the instances without series if others of the fleet have some. If none has, the query is wrong.
func (r *report) missing(active []podtracker.Instance) {
	if len(r.came) == 0 {
		return
	}
	for _, x := range r.overdue(active) {
		if !r.came[x.Pod.Name] {
			r.subscription.sink.Fail(x.ID, fmt.Errorf("no series of the query has %s=%q in the last %v%s",
				r.subscription.config.PodLabel, x.Pod.Name, r.taking.span, r.warning()))
		}
	}
}

func (r *report) warning() string {
	if r.answer.partial == "" {
		return ""
	}
	return "; the server warns: " + r.answer.partial
}

// trouble returns why the query cannot be used for the fleet, or nil.
func (r *report) trouble(active []podtracker.Instance) error {
	c := &r.subscription.config
	unlabeled, all := len(r.answer.unlabeled), len(r.answer.unlabeled)+len(r.answer.series)
	switch {
	case len(r.came) == 0 && len(r.overdue(active)) == 0:
		return nil // no pod must have a series yet
	case all == 0 && r.answer.foreign > 0:
		return foreignError(c, r.answer.foreign)
	case all == 0:
		return emptyError(c, r.taking.span, r.warning())
	case unlabeled == all:
		return fmt.Errorf("%s: query %.200q returns series without the label %q, so their pods are unknown; they have %s",
			c.Address, c.Query, c.PodLabel, labelNames(r.answer.unlabeled))
	case len(r.came) == 0:
		return source.NotYet{Err: fmt.Errorf("%s: query %.200q returns no series of the target's pods, such as %q; %s is %s%s",
			c.Address, c.Query, active[0].Pod.Name, c.PodLabel, r.otherPods(), r.warning())}
	case unlabeled > 0:
		return fmt.Errorf("%s: query %.200q: %d of %d series do not have the label %q, so their pods are unknown; they have %s",
			c.Address, c.Query, unlabeled, all, c.PodLabel, labelNames(r.answer.unlabeled))
	case !r.finite && r.subscription.begun:
		return fmt.Errorf("%s: query %.200q returns no finite number for any pod", c.Address, c.Query)
	}
	return nil
}

func emptyError(c *Config, span time.Duration, warning string) error {
	return source.NotYet{Err: fmt.Errorf(
		"%s: query %.200q returns nothing for the last %v%s: is the metric scraped, and do the labels match?",
		c.Address, c.Query, span, warning)}
}

func foreignError(c *Config, series int) error {
	return fmt.Errorf("%s: query %.200q returns only series of other namespaces (%d), which are rejected: the server must apply the matchers of a query",
		c.Address, c.Query, series)
}

func (r *report) otherPods() string {
	names := map[string]bool{}
	for _, x := range r.answer.series {
		names[x.pod] = true
	}
	return promapi.Some(slices.Sorted(maps.Keys(names)))
}

// labelNames lists the labels of some series.
func labelNames(all []*series) string {
	names := map[string]bool{}
	for _, x := range all {
		for name := range x.labels {
			if name != model.MetricNameLabel {
				names[string(name)] = true
			}
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	if len(sorted) == 0 {
		return "no labels"
	}
	return promapi.Some(sorted)
}
