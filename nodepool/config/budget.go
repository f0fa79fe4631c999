package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/schedule"
)

// Budgets are the disruption budgets of a pool, with the rules of Karpenter: the smallest of the
// active budgets applies, and without an active one there is no limit. The zero value never limits.
type Budgets struct {
	list []budget
	err  error
}

// budget allows a number of nodes, or a percentage of the workers: always, or in the windows of a
// schedule.
type budget struct {
	nodes   int
	percent bool
	window  *schedule.Window // nil if always active
	text    string
}

// ParseBudgets returns the budgets of a pool. If one cannot be parsed, Allowed allows nothing,
// because an unreadable limit is not the absence of a limit. Err has the reason.
func ParseBudgets(of []v1alpha1.DisruptionBudget) Budgets {
	var b Budgets
	var errs []error
	for i := range of {
		parsed, err := parseBudget(&of[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.disruption.budgets[%d].%w", i, err))
		}
		b.list = append(b.list, parsed)
	}
	b.err = errors.Join(errs...)
	return b
}

// Err returns the fields that cannot be parsed, with their values.
func (b Budgets) Err() error { return b.err }

// Allowed returns the number of workers that may be disrupted at once, at a time, and the budget
// that decides.
func (b Budgets) Allowed(now time.Time, workers int) (nodes int, why string) {
	if b.err != nil {
		return 0, b.err.Error()
	}
	nodes, why = max(0, workers), "no budget is active"
	limited := false
	for i := range b.list {
		of := &b.list[i]
		if of.window != nil && !of.window.Active(now) {
			continue
		}
		if n := min(of.of(workers), max(0, workers)); !limited || n < nodes {
			nodes, why, limited = n, of.text, true
		}
	}
	return nodes, why
}

// of returns the number of workers that the budget allows. A percentage is rounded up, as Karpenter
// and PodDisruptionBudgets do, so that small pools are not stuck.
func (b *budget) of(workers int) int {
	if !b.percent {
		return b.nodes
	}
	return (max(0, workers)*b.nodes + 99) / 100
}

func parseBudget(of *v1alpha1.DisruptionBudget) (budget, error) {
	b := budget{text: "the budget nodes " + of.Nodes.String()}
	if err := b.setNodes(of.Nodes); err != nil {
		return b, err
	}
	if of.Schedule == "" && of.Duration == nil {
		return b, nil
	}
	var duration time.Duration
	if of.Duration != nil {
		duration = of.Duration.Duration
	}
	window, err := schedule.Recurring(of.Schedule, "UTC", duration)
	if err != nil {
		return b, err
	}
	b.window = &window
	b.text += fmt.Sprintf(" of schedule %s for %s", of.Schedule, duration)
	return b, nil
}

func (b *budget) setNodes(value intstr.IntOrString) error {
	number, percent := strings.CutSuffix(value.String(), "%")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || percent && n > 100 {
		return fmt.Errorf("nodes: %q: must be a number of nodes or a percentage up to 100%%, such as 2 or 10%%",
			value.String())
	}
	b.nodes, b.percent = n, percent
	return nil
}
