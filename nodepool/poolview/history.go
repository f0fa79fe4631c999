package poolview

import (
	"maps"
	"sync"
	"time"

	"github.com/foresail/foresail/api/v1alpha1"
)

const (
	// historySpan and historyStep bound the history of a pool: one point every five seconds, for an
	// hour.
	historySpan = time.Hour
	historyStep = 4 * time.Second // a little less than the page's period, so that a late answer loses no point
)

// Point is the state of a pool at a time. Unknown values are nil.
type Point struct {
	At      int64  `json:"at"` // seconds since 1970
	Ready   *int32 `json:"ready"`
	Workers *int32 `json:"workers"`
	Desired *int32 `json:"desired"`
	Pending *int32 `json:"pendingPods"`
	Min     *int32 `json:"min"`
	Max     *int32 `json:"max"`
}

// history holds the last hour of each pool, as far as the page has requested it. The zero value is
// ready to use.
type history struct {
	mu    sync.Mutex
	pools map[string][]Point
}

// record adds the current state of a pool.
func (h *history) record(pool *v1alpha1.WorkerPool, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pools == nil {
		h.pools = map[string][]Point{}
	}
	points := h.pools[pool.Name]
	if n := len(points); n > 0 {
		switch since := now.Sub(time.Unix(points[n-1].At, 0)); {
		case since < -time.Minute:
			points = nil // the clock was set back: points are ordered by time
		case since < historyStep: // including a request that began before another one and ended after it
			return
		}
	}
	s := &pool.Status
	points = append(points, Point{
		At: now.Unix(), Ready: s.ReadyWorkers, Workers: s.Workers, Desired: s.Desired, Pending: s.PendingPods,
		Min: new(pool.Spec.Min), Max: new(pool.Spec.Max),
	})
	oldest := now.Add(-historySpan).Unix()
	for len(points) > 0 && points[0].At < oldest {
		points = points[1:]
	}
	h.pools[pool.Name] = points
}

// keep drops the pools that are not in a complete list.
func (h *history) keep(pools []v1alpha1.WorkerPool) {
	names := map[string]bool{}
	for i := range pools {
		names[pools[i].Name] = true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.pools, func(name string, _ []Point) bool { return !names[name] })
}

// lastHour returns the last hour of a pool: until the first point the decisions in its status, and
// then the points.
func (h *history) lastHour(pool *v1alpha1.WorkerPool, now time.Time) []Point {
	h.mu.Lock()
	points := h.pools[pool.Name]
	h.mu.Unlock()
	first := now.Unix()
	if len(points) > 0 {
		first = points[0].At
	}
	return append(decided(pool.Status.Decisions, now.Add(-historySpan).Unix(), first), points...)
}

// decided returns points for decisions between two times. The decisions are ordered newest first.
func decided(decisions []v1alpha1.PoolDecision, from, to int64) []Point {
	points := []Point{}
	for i := len(decisions) - 1; i >= 0; i-- {
		d := &decisions[i]
		for _, at := range []int64{d.Time.Unix(), lastOf(d)} {
			if at < from || at >= to || len(points) > 0 && at <= points[len(points)-1].At {
				continue
			}
			points = append(points, Point{At: at, Workers: new(d.Workers), Desired: new(d.Desired)})
		}
	}
	return points
}

func lastOf(d *v1alpha1.PoolDecision) int64 {
	if d.Last == nil {
		return d.Time.Unix()
	}
	return d.Last.Unix()
}
