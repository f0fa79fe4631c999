package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// Fleet is a page of the PredictedMetrics that match a query.
type Fleet struct {
	Time     time.Time `json:"time"` // by the clock of the replica
	Summary  Summary   `json:"summary"`
	Matching int       `json:"matching"` // how many match the query, on all pages
	Offset   int       `json:"offset"`
	Limit    int       `json:"limit"`
	Items    []Row     `json:"items"`
}

// Summary counts all PredictedMetrics, whatever the query.
type Summary struct {
	Metrics     int `json:"metrics"`
	Unavailable int `json:"unavailable"`
	ScalingUp   int `json:"scalingUp"`
	ScalingDown int `json:"scalingDown"`
	AtMaximum   int `json:"atMaximum"`
	Late        int `json:"late"`
}

// Row is the state of one PredictedMetric. What is not known is null.
type Row struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	TargetKind string `json:"targetKind"`
	TargetName string `json:"targetName"`
	Whole      bool   `json:"whole,omitempty"`  // the load is measured as a whole, not at each pod
	DryRun     bool   `json:"dryRun,omitempty"` // nothing acts on the forecast
	Available  bool   `json:"available"`        // there is a forecast
	Reason     string `json:"reason"`           // of the decision, or why there is none
	Cause      string `json:"cause,omitempty"`  // why there is no forecast or no decision, as a sentence
	Load       Number `json:"loadPerPod"`
	Predicted  Number `json:"predictedPerPod"`
	Threshold  Number `json:"threshold"`
	Ready      Count  `json:"ready"`    // pods
	Replicas   Count  `json:"replicas"` // that the target is set to
	Desired    Count  `json:"desired"`
	Learned    Number `json:"learnedSeconds"` // time that the load was learned from; 0: none, or none yet
	// the share of the last day with too few pods, though more could have been ordered
	Late       Number `json:"lateRatio"`
	LateKnown  Number `json:"lateKnownSeconds"` // the part of the last day that Late is about
	LateJudged bool   `json:"lateJudged"`       // that part is at least lateAfter
	// the share of the last day in which even the maximum number of pods was too few
	AtMaximum Number `json:"atMaximumRatio"`
	Lateness  Number `json:"lateness"` // the requested share; 0: none
	Shape     *Shape `json:"shape,omitempty"`

	up, down   bool
	rank       int    // by trouble, the worst first
	name       string // with the namespace
	searchText string // what a search looks through, in lower case
}

// lateAfter is how much of the load must be known before too many late minutes count as trouble. In
// the first minutes of a new PredictedMetric a single late one is half of them.
const lateAfter = time.Hour

// The ranks of rows that are sorted by trouble.
const (
	rankBroken  = iota // no forecast, or no decision
	rankWaiting        // no forecast yet, or no pods: often as intended
	rankMaximum
	rankLate
	rankHealthy
)

func rankOf(r *Row) int {
	switch r.Reason {
	case string(snapshot.WaitingForSamples), string(snapshot.WarmingUp), string(snapshot.NoReadyPods):
		return rankWaiting
	case string(pipeline.AtMaximum):
		return rankMaximum
	}
	switch {
	case r.Desired < 0:
		return rankBroken
	case states["late"](r):
		return rankLate
	}
	return rankHealthy
}

// states are what a query may ask for, each with the rows that are in it.
var states = map[string]func(r *Row) bool{
	"":            func(*Row) bool { return true },
	"unavailable": func(r *Row) bool { return !r.Available },
	"up":          func(r *Row) bool { return r.up },
	"down":        func(r *Row) bool { return r.down },
	"maximum":     func(r *Row) bool { return r.Reason == string(pipeline.AtMaximum) },
	"late":        func(r *Row) bool { return r.LateJudged && r.Lateness > 0 && r.Late > r.Lateness },
}

// texts and numbers are what rows may be sorted by.
var (
	texts = map[string]func(r *Row) string{
		"name":   func(r *Row) string { return r.name },
		"target": func(r *Row) string { return r.TargetName },
		"reason": func(r *Row) string { return r.Reason },
	}
	numbers = map[string]func(r *Row) Number{
		sortTrouble: func(r *Row) Number { return Number(r.rank) },
		"load":      func(r *Row) Number { return r.Load / r.Threshold },
		"predicted": func(r *Row) Number { return r.Predicted / r.Threshold },
		"threshold": func(r *Row) Number { return r.Threshold },
		"ready":     func(r *Row) Number { return number(r.Ready) },
		"replicas":  func(r *Row) Number { return number(r.Replicas) },
		"desired":   func(r *Row) Number { return number(r.Desired) },
		"learned":   func(r *Row) Number { return r.Learned },
		"late":      func(r *Row) Number { return r.Late },
	}
)

func number(c Count) Number {
	if c < 0 {
		return unknown
	}
	return Number(c)
}

// rowsOf returns the rows of snapshots by name, and their summary.
func rowsOf(all []snapshot.Snapshot, now time.Time) ([]Row, Summary) {
	rows := make([]Row, len(all))
	for i := range all {
		rows[i] = rowOf(&all[i], now)
		r := &rows[i]
		r.name = r.Namespace + "/" + r.Name
		r.rank = rankOf(r)
		r.searchText = strings.ToLower(r.name + " " + r.TargetKind + "/" + r.TargetName)
	}
	sum := Summary{
		Metrics: len(all), Unavailable: countOf(rows, "unavailable"), ScalingUp: countOf(rows, "up"),
		ScalingDown: countOf(rows, "down"),
		AtMaximum:   countOf(rows, "maximum"), Late: countOf(rows, "late"),
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.name, b.name) })
	return rows, sum
}

func countOf(rows []Row, state string) (n int) {
	for i := range rows {
		if states[state](&rows[i]) {
			n++
		}
	}
	return n
}

func rowOf(s *snapshot.Snapshot, now time.Time) Row {
	p := pointOf(s, now)
	r := Row{
		Namespace: s.Metric.Namespace, Name: s.Metric.Name, TargetKind: s.TargetKind, TargetName: s.TargetName,
		Whole: s.Whole, DryRun: s.DryRun,
		Available: !math.IsNaN(float64(p.level)), Reason: reasons[p.reason], Cause: causeOf(s, now),
		Load: Number(p.perPod), Predicted: Number(p.predictedPerPod), Threshold: Number(s.Threshold),
		Ready: Count(p.ready), Replicas: Count(p.target), Desired: Count(p.desired),
		Learned: Number(s.Learned.Seconds()), Late: unknown, AtMaximum: unknown, Lateness: Number(s.Lateness),
	}
	if day := s.Accuracy.LastDay; day.LateKnown > 0 {
		r.Late, r.LateKnown, r.LateJudged = Number(day.Late), Number(day.LateKnown.Seconds()), day.LateKnown >= lateAfter
		r.AtMaximum = Number(day.AtMaximum)
	}
	if p.desired >= 0 && !s.DryRun { // then the target is scaled by others
		r.up, r.down = p.desired > p.target, p.desired < p.target
	}
	return r
}

const (
	// sortTrouble sorts the worst first: broken, waiting, at the maximum, late, then all others by name.
	sortTrouble            = "trouble"
	defaultLimit, maxLimit = 50, 200
	maxShape               = 120 // values of each line of a Shape
	maxSearch              = 253 // the length of a name
)

// query holds the parameters of a request for a page of the fleet.
type query struct {
	search        string // in lower case
	state, sort   string
	descending    bool
	limit, offset int
	shape         int // values of each line of a Shape; 0: rows have none
}

func parseQuery(values url.Values) (query, error) {
	q := query{
		search: strings.ToLower(values.Get("search")), state: values.Get("state"),
		sort:       cmp.Or(values.Get("sort"), sortTrouble),
		descending: values.Get("order") == "desc", limit: defaultLimit,
	}
	var errs []error
	if len(q.search) > maxSearch {
		errs = append(errs, fmt.Errorf("search: %d bytes: must be at most %d", len(q.search), maxSearch))
	}
	if states[q.state] == nil {
		errs = append(errs, notOneOf("state", q.state, slices.Collect(maps.Keys(states))))
	}
	if texts[q.sort] == nil && numbers[q.sort] == nil {
		errs = append(errs, notOneOf("sort", q.sort,
			slices.Concat(slices.Collect(maps.Keys(texts)), slices.Collect(maps.Keys(numbers)))))
	}
	if order := values.Get("order"); order != "" && order != "asc" && order != "desc" {
		errs = append(errs, fmt.Errorf("order: %q: must be asc or desc", clip(order)))
	}
	errs = append(errs, parseNumber(values, "limit", &q.limit, 1, maxLimit),
		parseNumber(values, "offset", &q.offset, 0, math.MaxInt32),
		parseNumber(values, "shape", &q.shape, 0, maxShape))
	return q, errors.Join(errs...)
}

func notOneOf(field, value string, names []string) error {
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	return fmt.Errorf("%s: %q: must be one of %s", field, clip(value), strings.Join(names, ", "))
}

func parseNumber(values url.Values, field string, to *int, least, most int) error {
	text := values.Get(field)
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return fmt.Errorf("%s: %q: must be a whole number from %d to %d", field, clip(text), least, most)
	}
	*to = n
	return nil
}

// answer returns the page of the rows, which are sorted by name.
func (q *query) answer(rows []Row, sum Summary, now time.Time) Fleet {
	found := make([]*Row, 0, len(rows))
	for i := range rows {
		if q.matches(&rows[i]) {
			found = append(found, &rows[i])
		}
	}
	if q.sort != "name" || q.descending {
		slices.SortStableFunc(found, q.order())
	}
	f := Fleet{Time: now, Summary: sum, Matching: len(found), Offset: q.offset, Limit: q.limit, Items: []Row{}}
	from := min(q.offset, len(found))
	for _, r := range found[from:min(from+q.limit, len(found))] {
		f.Items = append(f.Items, *r)
	}
	return f
}

func (q *query) matches(r *Row) bool {
	if !states[q.state](r) {
		return false
	}
	return q.search == "" || strings.Contains(r.searchText, q.search)
}

// order returns how rows compare. It leaves rows of equal values in the order of their names. Those
// without a value come last in either order.
func (q *query) order() func(a, b *Row) int {
	sign := 1
	if q.descending {
		sign = -1
	}
	if of := texts[q.sort]; of != nil {
		return func(a, b *Row) int { return sign * strings.Compare(of(a), of(b)) }
	}
	of := numbers[q.sort]
	return func(a, b *Row) int {
		x, y := float64(of(a)), float64(of(b))
		if math.IsNaN(x) || math.IsNaN(y) {
			return cmp.Compare(y, x) // NaN is less than any number
		}
		return sign * cmp.Compare(x, y)
	}
}
