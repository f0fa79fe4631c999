// Package dashboard is the door of `foresail dashboard`: JSON about every PredictedMetric, and the
// last hour of each. Answers come from published snapshots, and cost the same however many people
// look.
//
//	GET /dashboard/v1/metrics                     a page of all PredictedMetrics, filtered and sorted: Fleet
//	GET /dashboard/v1/metrics/{namespace}/{name}  one of them with its history: Detail
//	GET /dashboard/v1/metrics/{namespace}/{name}/trace  how its newest forecast came about: Trace
//
// The shape has the version of its path. Fields may be added to it; a change of their meaning gets a new path.
package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

const (
	// Path is the path that Handler serves, with everything below it.
	Path = "/dashboard/"
	// MetricsPath is the path of the Fleet. MetricsPath + "/" + NAMESPACE + "/" + NAME is that of a Detail.
	MetricsPath = Path + "v1/metrics"

	// fleetAge is the time for which readers share a computed fleet.
	fleetAge = time.Second
)

// Reader returns published snapshots, from memory. It is safe for concurrent use.
type Reader interface {
	// Get returns the snapshot of one PredictedMetric, and false if there is no such PredictedMetric.
	Get(metric types.NamespacedName) (snapshot.Snapshot, bool)
	// All returns the snapshots of all, in any order.
	All() []snapshot.Snapshot
	// Trace returns how the newest forecast came about, nil if it is not known or not known yet, and
	// false if there is no such PredictedMetric. Who asks again in a second gets the next one.
	Trace(metric types.NamespacedName) (*snapshot.Trace, bool)
}

// Dashboard answers what the page asks. It is safe for concurrent use.
type Dashboard struct {
	reader  Reader
	now     func() time.Time
	history *history

	// guards the fields below; held while rows are computed, so that concurrent readers compute them
	// once
	mu      sync.Mutex
	rows    []Row
	summary Summary
	made    time.Time
}

// New returns a dashboard that reads the time from now.
func New(reader Reader, now func() time.Time) *Dashboard {
	return &Dashboard{reader: reader, now: now, history: newHistory()}
}

// Run records a point of every PredictedMetric each Step, until the context ends.
func (d *Dashboard) Run(ctx context.Context) error {
	ticker := time.NewTicker(Step)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			d.record()
		}
	}
}

func (d *Dashboard) record() { d.history.record(d.reader.All(), d.now()) }

// Handler serves Path.
func (d *Dashboard) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+MetricsPath, d.serveFleet)
	mux.HandleFunc("GET "+MetricsPath+"/{namespace}/{name}", d.serveDetail)
	mux.HandleFunc("GET "+MetricsPath+"/{namespace}/{name}/trace", d.serveTrace)
	return mux
}

func (d *Dashboard) serveFleet(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	now := d.now()
	rows, summary := d.all(now)
	fleet := q.answer(rows, summary, now)
	if q.shape > 0 {
		for i := range fleet.Items {
			item := &fleet.Items[i]
			item.Shape = shapeOf(d.history.since(types.NamespacedName{Namespace: item.Namespace, Name: item.Name}, 0),
				q.shape, now)
		}
	}
	write(w, fleet)
}

// all returns the rows of all PredictedMetrics, which are immutable from then on, and their summary.
func (d *Dashboard) all(now time.Time) ([]Row, Summary) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if age := now.Sub(d.made); d.made.IsZero() || age < 0 || age >= fleetAge {
		d.rows, d.summary = rowsOf(d.reader.All(), now)
		d.made = now
	}
	return d.rows, d.summary
}

func (d *Dashboard) serveDetail(w http.ResponseWriter, r *http.Request) {
	since, err := parseSince(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	key := asked(r)
	s, ok := d.reader.Get(key)
	if !ok {
		notFound(w, key)
		return
	}
	now := d.now()
	write(w, detailOf(&s, d.history.since(key, since), now))
}

func (d *Dashboard) serveTrace(w http.ResponseWriter, r *http.Request) {
	key := asked(r)
	t, ok := d.reader.Trace(key)
	if !ok {
		notFound(w, key)
		return
	}
	write(w, traceOf(t))
}

func asked(r *http.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}

func notFound(w http.ResponseWriter, metric types.NamespacedName) {
	http.Error(w, fmt.Sprintf("There is no PredictedMetric %s.", metric), http.StatusNotFound)
}

// parseSince returns the time in seconds after which points are wanted; 0: all that there are.
func parseSince(values url.Values) (uint32, error) {
	text := values.Get("since")
	if text == "" {
		return 0, nil
	}
	since, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, errors.New("since: " + strconv.Quote(clip(text)) + ": must be a time in whole seconds since 1970")
	}
	return uint32(since), nil
}

func write(w http.ResponseWriter, answer any) {
	content, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(content) // the client may be gone
}
