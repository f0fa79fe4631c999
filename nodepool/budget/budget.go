// Package budget answers how many workers of a pool may be disrupted at once, by the rules of Karpenter's disruption budgets:
// of the budgets that are active the smallest counts, and while none is active there is no limit.
package budget

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
)

// Budgets are the disruption budgets of a pool. The zero value never limits.
type Budgets struct {
	list []budget
	err  error
}

// budget allows nodes, or a percentage of the workers: always, or for a duration from each time of a schedule.
type budget struct {
	nodes    int
	percent  bool
	schedule *cron.SpecSchedule // nil if always active
	duration time.Duration
	text     string
}

// Parse returns the budgets of a pool. Where one cannot be understood, Allowed allows nothing: an unreadable limit is not no
// limit. Err has the reason.
func Parse(of []v1alpha1.DisruptionBudget) Budgets {
	var b Budgets
	var errs []error
	for i := range of {
		parsed, err := parse(&of[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.disruption.budgets[%d].%w", i, err))
		}
		b.list = append(b.list, parsed)
	}
	b.err = errors.Join(errs...)
	return b
}

// Err names the fields that cannot be understood, with their values.
func (b Budgets) Err() error { return b.err }

// Allowed returns how many of the workers may be disrupted at once, at a time, and the budget that says so.
func (b Budgets) Allowed(now time.Time, workers int) (nodes int, why string) {
	if b.err != nil {
		return 0, b.err.Error()
	}
	nodes, why = max(0, workers), "no budget is active"
	limited := false
	for i := range b.list {
		of := &b.list[i]
		if !of.active(now) {
			continue
		}
		if n := min(of.of(workers), max(0, workers)); !limited || n < nodes {
			nodes, why, limited = n, of.text, true
		}
	}
	return nodes, why
}

// active tells whether a time of the schedule lies within the duration before now, now included.
func (b *budget) active(now time.Time) bool {
	if b.schedule == nil {
		return true
	}
	start := b.schedule.Next(now.UTC().Add(-b.duration))
	return !start.IsZero() && !start.After(now)
}

// of returns how many of the workers the budget allows. A percentage is rounded up, as Karpenter and PodDisruptionBudgets do, so
// that small pools are not stuck.
func (b *budget) of(workers int) int {
	if !b.percent {
		return b.nodes
	}
	return (max(0, workers)*b.nodes + 99) / 100
}

func parse(of *v1alpha1.DisruptionBudget) (budget, error) {
	b := budget{text: "the budget nodes " + of.Nodes.String()}
	if err := b.setNodes(of.Nodes); err != nil {
		return b, err
	}
	if of.Schedule == "" && of.Duration == nil {
		return b, nil
	}
	schedule, err := parseSchedule(of.Schedule)
	if err != nil {
		return b, err
	}
	if of.Duration == nil || of.Duration.Duration <= 0 {
		return b, errors.New("duration: must be a duration above 0s, as there is a schedule")
	}
	b.schedule, b.duration = schedule, of.Duration.Duration
	b.text += fmt.Sprintf(" of schedule %s for %s", of.Schedule, b.duration)
	return b, nil
}

func (b *budget) setNodes(value intstr.IntOrString) error {
	number, percent := strings.CutSuffix(value.String(), "%")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || percent && n > 100 {
		return fmt.Errorf("nodes: %q: must be a number of nodes or a percentage up to 100%%, such as 2 or 10%%", value.String())
	}
	b.nodes, b.percent = n, percent
	return nil
}

// parseSchedule returns a schedule in UTC that has times.
func parseSchedule(text string) (*cron.SpecSchedule, error) {
	// The zone stands first for the library as well, which panics at a zone that nothing follows.
	parsed, err := cron.ParseStandard("TZ=UTC " + text)
	if err != nil {
		return nil, fmt.Errorf("schedule: %q: must be a cron schedule: %w", text, err)
	}
	schedule, ok := parsed.(*cron.SpecSchedule)
	if !ok { // @every
		return nil, fmt.Errorf("schedule: %q: must be a cron schedule of five fields, or a macro such as @daily", text)
	}
	if !comes(schedule) {
		return nil, fmt.Errorf("schedule: %q: must be a cron schedule with times that come, unlike 31 February", text)
	}
	return schedule, nil
}

// comes tells whether a schedule has times. The library looks ahead for five years; these begin with a leap year, so that they
// have every date.
func comes(s *cron.SpecSchedule) bool {
	if s.Minute == 0 || s.Hour == 0 { // lone commas: it would look at every minute
		return false
	}
	return !s.Next(time.Date(2023, time.December, 31, 23, 59, 59, 0, time.UTC)).IsZero()
}
