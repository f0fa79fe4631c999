package externalmetrics

import "github.com/foresail/foresail/adapter/snapshot"

// The metrics that are served; see the package comment for what each is.
const (
	LoadTotal = "predicted_load_total"
	Load      = "predicted_load"
	Replicas  = "predicted_replicas"
)

// The labels of each item, which selectors match.
const (
	LabelMetric = "predictedmetric" // name of the PredictedMetric
	LabelKind   = "kind"            // kind of its scale target
	LabelTarget = "target"          // name of its scale target
)

// metric is one external metric.
type metric struct {
	name string
	sums bool // the values of several PredictedMetrics add up to something
	// value returns the value in milli-units, or why there is none.
	value func(*snapshot.Snapshot) (int64, *refusal)
}

func servedMetrics() []metric {
	return []metric{
		{name: LoadTotal, sums: true, value: loadTotal},
		{name: Load, value: load},
		{name: Replicas, value: replicas},
	}
}

func loadTotal(s *snapshot.Snapshot) (int64, *refusal) {
	d, err := newDemand(s.Forecast.Serve, s.Threshold)
	if err != nil {
		return 0, unservable(s, LoadTotal, err)
	}
	return d.total(), nil
}

func load(s *snapshot.Snapshot) (int64, *refusal) {
	if s.Ready <= 0 {
		return 0, noReadyPods(s)
	}
	d, err := newDemand(s.Forecast.Serve, s.Threshold)
	if err != nil {
		return 0, unservable(s, Load, err)
	}
	return d.perPod(int64(s.Ready)), nil
}

func replicas(s *snapshot.Snapshot) (int64, *refusal) {
	if s.Undecided() {
		return 0, undecided(s)
	}
	return 1000 * int64(s.Joint.Wanted), nil
}

// itemLabels presents the labels of a snapshot's item to a selector.
type itemLabels struct{ *snapshot.Snapshot }

// Has tells whether the item has the label.
func (l itemLabels) Has(label string) bool {
	_, ok := l.Lookup(label)
	return ok
}

// Get returns the label's value, empty if the item does not have the label.
func (l itemLabels) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}

// Lookup returns the label's value and whether the item has the label.
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
