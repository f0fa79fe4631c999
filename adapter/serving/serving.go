// Package serving holds what the doors share: the APIs through which Foresail serves forecasts to
// autoscalers. A door translates requests of its protocol into a Query, and the Items or the *Error
// of the answer back. It needs this package and package snapshot alone.
//
// Three metrics exist. Each PredictedMetric has one item of each, in its own namespace, labelled
// with its name (predictedmetric) and with the kind and the name of its scale target (kind,
// target). τ is the threshold, N(A_ω, τ) the number of instances that the forecast requires, as a
// real number, and R the target's ready pods:
//
//	predicted_load_total  τ·N(A_ω, τ)    for an HPA target of type AverageValue and value τ
//	predicted_load        τ·N(A_ω, τ)/R  for an HPA target of type Value and value τ
//	predicted_replicas    N*             for an HPA target of type AverageValue, value 1 and tolerance 0
//
// While method Adaptive finds the present count acceptable, the value is τ times that count in
// place of τ·N(A_ω, τ).
//
// N* is the largest that any PredictedMetric of the target desires; see snapshot.Combined.
//
// # Values
//
// Values are whole milli-units, and the HPA divides them by its target in whole milli-units. N(A_ω,
// τ) is rounded up to three significant digits (to thousandths at the finest, to whole instances at
// the coarsest) before it is multiplied by τ, so that jitter does not rewrite the status of the
// HPA. The result of the HPA is still ⌈N(A_ω, τ)⌉, as the pipeline rounds it. A threshold finer
// than a milli-unit counts as the next whole one, as it does in the HPA's target.
//
// predicted_load_total loses nothing to milli-units. predicted_load does: its result is exact while
// R is less than τ in milli-units, and above that up to ⌈R/τ in milli-units⌉ instances too high,
// never too low. A metric whose threshold is below 0.1 should therefore be scaled up (percent
// instead of shares, milliseconds instead of seconds) or be read as predicted_load_total.
//
// # Errors
//
// An autoscaler does not check how old a value is, so the age is checked at each read, by the clock
// of the reader. A missing value is an error and never a number or an empty list. The HPA copies
// messages into its conditions and events, so the message of one cause stays the same: ages in it
// are coarse.
package serving

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

// The labels of each item, which selectors match.
const (
	LabelMetric = "predictedmetric" // name of the PredictedMetric
	LabelKind   = "kind"            // kind of its scale target
	LabelTarget = "target"          // name of its scale target
)

// Reader returns published snapshots. It answers from memory, never waits for a forecast, and is
// safe for concurrent use. It has every PredictedMetric that exists: the snapshot of one without a
// forecast says why.
type Reader interface {
	// Get returns the snapshot of one PredictedMetric, and false if there is no such PredictedMetric.
	Get(metric types.NamespacedName) (snapshot.Snapshot, bool)
	// List returns the snapshots of a namespace, sorted by name.
	List(namespace string) []snapshot.Snapshot
}

// Query is one read of a metric.
type Query struct {
	Namespace string
	Selector  labels.Selector // of the labels of items
	Metric    string
	Now       time.Time // by which freshness is judged
}

// ByName returns the selector of the one PredictedMetric of a name.
func ByName(name string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{LabelMetric: name})
}

// Item is the value of one PredictedMetric.
type Item struct {
	Labels    map[string]string
	Milli     int64     // the value, in milli-units
	Timestamp time.Time // of the newest sample; not in the future, even if the clock of a pod is ahead
}

// Read returns the item of the one PredictedMetric of the namespace that the selector matches, or
// an *Error. Where it matches several, autoscalers would add their values up. Two of one target
// would count its load twice, and every user who may create PredictedMetrics in the namespace could
// raise the value that an HPA reads. A PredictedMetric in dry run has no value, and is ignored if
// another one of the target is not in dry run.
func Read(reader Reader, q Query) (Item, error) {
	s, err := q.one(reader)
	if err != nil {
		return Item{}, err
	}
	return q.item(s)
}

// ReadTarget returns the Target of what Read reads, or an *Error.
func ReadTarget(reader Reader, q Query) (milli int64, err error) {
	s, err := q.one(reader)
	if err != nil {
		return 0, err
	}
	return Target(q.Metric, s)
}

// one returns the snapshot of the one PredictedMetric that the selector matches.
func (q Query) one(reader Reader) (*snapshot.Snapshot, error) {
	if err := CheckMetric(q.Metric); err != nil {
		return nil, err
	}
	found := acting(q.find(reader))
	switch {
	case len(found) == 0:
		return nil, notFound(q, reader.List(q.Namespace))
	case len(found) > 1:
		return nil, ambiguous(q, found)
	}
	return &found[0], nil
}

// find returns the snapshots that the selector matches. A selector that names the PredictedMetric,
// as nearly all do, is one lookup.
func (q *Query) find(reader Reader) []snapshot.Snapshot {
	var candidates []snapshot.Snapshot
	if name, named := q.Selector.RequiresExactMatch(LabelMetric); named {
		if s, ok := reader.Get(types.NamespacedName{Namespace: q.Namespace, Name: name}); ok {
			candidates = []snapshot.Snapshot{s}
		}
	} else {
		candidates = reader.List(q.Namespace)
	}
	var found []snapshot.Snapshot
	for i := range candidates {
		if q.Selector.Matches(itemLabels{&candidates[i]}) {
			found = append(found, candidates[i])
		}
	}
	return found
}

// acting leaves out the PredictedMetrics in dry run, unless all are: a trial must not make a
// selector ambiguous.
func acting(found []snapshot.Snapshot) []snapshot.Snapshot {
	if !slices.ContainsFunc(found, func(s snapshot.Snapshot) bool { return !s.DryRun }) {
		return found
	}
	return slices.DeleteFunc(found, func(s snapshot.Snapshot) bool { return s.DryRun })
}

func (q *Query) item(s *snapshot.Snapshot) (Item, error) {
	if s.DryRun {
		return Item{}, dryRun(s)
	}
	if err := Check(s, q.Now); err != nil {
		return Item{}, err
	}
	milli, err := Value(q.Metric, s)
	if err != nil {
		return Item{}, err
	}
	timestamp := s.NewestSample
	if timestamp.After(q.Now) {
		timestamp = q.Now
	}
	return Item{Labels: itemLabels{s}.set(), Milli: milli, Timestamp: timestamp}, nil
}

// itemLabels presents the labels of a snapshot's item to a selector, as a labels.Labels.
type itemLabels struct{ *snapshot.Snapshot }

// Has implements labels.Labels.
func (l itemLabels) Has(label string) bool {
	_, ok := l.Lookup(label)
	return ok
}

// Get implements labels.Labels.
func (l itemLabels) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}

// Lookup implements labels.Labels.
func (l itemLabels) Lookup(label string) (value string, ok bool) {
	switch label {
	case LabelMetric:
		return l.Metric.Name, true
	case LabelKind:
		return l.TargetKind, true
	case LabelTarget:
		return l.TargetName, true
	default:
		return "", false
	}
}

func (l itemLabels) set() map[string]string {
	return map[string]string{LabelMetric: l.Metric.Name, LabelKind: l.TargetKind, LabelTarget: l.TargetName}
}
