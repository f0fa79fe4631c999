package dashboard

import (
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/pipeline"
)

const (
	// Step is the time between two points of a PredictedMetric.
	Step = 5 * time.Second
	// Kept is how many of them are kept: those of an hour.
	Kept = 720

	// blockPoints is for how many points there is memory at a time, so that a PredictedMetric that is new takes little.
	blockPoints = 24
	maxBlocks   = Kept/blockPoints + 1
)

// point is the state of a PredictedMetric at a time, in 56 bytes: there may be millions. A load
// that is not known is NaN, a count that is not known is -1.
type point struct {
	at                                             uint32 // seconds since 1970
	level, total, planned, perPod, predictedPerPod float32
	threshold                                      float32
	each                                           float32 // the load that one pod holds at the threshold
	margin, limit                                  float32 // as in snapshot.Reasoning
	ready, target, desired                         int32
	horizon                                        uint16 // seconds
	reason                                         uint8  // index in reasons
	basis                                          pipeline.Basis
}

// reasons are the words of decisions, and those of why there is none.
var reasons = append([]string{
	string(pipeline.NoNeed), string(pipeline.TrendRising), string(pipeline.AboveThreshold), string(pipeline.Headroom),
	string(pipeline.BelowMinimum),
	string(pipeline.AtMaximum), string(pipeline.ScaleUpPending), string(pipeline.StillOverloaded),
	string(pipeline.CoolingDown),
	string(pipeline.Activated), string(pipeline.Idle), "Unknown",
}, serving.Reasons()...)

var reasonIndex = func() map[string]uint8 {
	index := make(map[string]uint8, len(reasons))
	for i, reason := range reasons {
		index[reason] = uint8(i)
	}
	return index
}()

// unknownReason stands for a word that reasons lack.
var unknownReason = reasonIndex["Unknown"]

func indexOf(reason string) uint8 {
	if i, ok := reasonIndex[reason]; ok {
		return i
	}
	return unknownReason
}

// pointOf returns the recorded part of a snapshot.
func pointOf(s *snapshot.Snapshot, now time.Time) point {
	unknown := float32(math.NaN())
	p := point{
		at: uint32(now.Unix()), ready: whole32(s.Ready), target: -1, desired: -1, threshold: float32(s.Threshold),
		level: unknown, total: unknown, planned: unknown, perPod: unknown, predictedPerPod: unknown, each: unknown,
	}
	if err := serving.Check(s, now); err != nil {
		p.reason = indexOf(serving.AsError(err).Reason)
		return p
	}
	f := &s.Forecast
	p.level, p.total, p.planned = float32(f.Level), float32(f.Total), float32(f.PlannedLoad)
	p.perPod, p.predictedPerPod, p.each = float32(f.LoadNow), float32(f.LoadPredicted), float32(f.Need.PerInstance)
	p.horizon = uint16(min(f.Horizon.Round(time.Second)/time.Second, math.MaxUint16))
	p.target = whole32(f.Target)
	if !s.HasDecision() {
		p.reason = indexOf(serving.ReasonScaleUnreadable)
		return p
	}
	p.desired, p.reason = whole32(s.Decision.Desired), indexOf(string(s.Decision.Reason))
	r := s.Reasoning()
	p.margin, p.limit, p.basis = float32(r.Margin), float32(r.Limit), r.Basis
	return p
}

func whole32(n int) int32 { return int32(min(n, math.MaxInt32)) }

// explain returns the sentence of the time of the point.
func (p *point) explain() string {
	reason := reasons[p.reason]
	if math.IsNaN(float64(p.level)) || p.desired < 0 {
		return "no decision: " + reason
	}
	r := snapshot.Reasoning{
		Desired: int(p.desired), Target: int(p.target), Reason: pipeline.Reason(reason),
		Horizon:   time.Duration(p.horizon) * time.Second,
		Threshold: float64(p.threshold), Each: float64(p.each), Planned: float64(p.planned), Margin: float64(p.margin),
		Basis: p.basis, Limit: float64(p.limit),
		Level: float64(p.level), Total: float64(p.total), LoadNow: float64(p.perPod),
		LoadPredicted: float64(p.predictedPerPod),
	}
	if r.Basis == pipeline.FromPresent {
		r.Planned = r.Level + r.Margin // planned is of the horizon, which Holt does not count pods for then
	}
	return r.String()
}

// history keeps the points of the last hour. It is safe for concurrent use.
type history struct {
	mu    sync.RWMutex
	rings map[types.NamespacedName]*ring
}

func newHistory() *history { return &history{rings: map[types.NamespacedName]*ring{}} }

// record adds a point of each snapshot, and forgets PredictedMetrics that are gone.
func (h *history) record(all []snapshot.Snapshot, now time.Time) {
	present := make(map[types.NamespacedName]bool, len(all))
	for i := range all {
		present[all[i].Metric] = true
		h.ring(all[i].Metric).add(pointOf(&all[i], now))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for key := range h.rings {
		if !present[key] {
			delete(h.rings, key)
		}
	}
}

func (h *history) ring(key types.NamespacedName) *ring {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rings[key]
	if r == nil {
		r = &ring{}
		h.rings[key] = r
	}
	return r
}

// since returns the points of a PredictedMetric after a time, in order, at most Kept.
func (h *history) since(key types.NamespacedName, after uint32) []point {
	h.mu.RLock()
	r := h.rings[key]
	h.mu.RUnlock()
	if r == nil {
		return nil
	}
	return r.since(after)
}

// ring keeps the newest points, in blocks that are reused.
type ring struct {
	mu     sync.Mutex
	blocks []*[blockPoints]point // in order; the last is filled
	filled int                   // how many points of the last there are
}

func (r *ring) add(p point) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.blocks); n > 0 && r.filled > 0 && r.blocks[n-1][r.filled-1].at > p.at {
		r.blocks = nil // the clock was set back: points are in order of time
	}
	switch {
	case len(r.blocks) > 0 && r.filled < blockPoints:
	case len(r.blocks) == maxBlocks:
		oldest := r.blocks[0]
		copy(r.blocks, r.blocks[1:])
		r.blocks[maxBlocks-1], r.filled = oldest, 0
	default:
		r.blocks, r.filled = append(r.blocks, new([blockPoints]point)), 0
	}
	r.blocks[len(r.blocks)-1][r.filled] = p
	r.filled++
}

func (r *ring) since(after uint32) []point {
	r.mu.Lock()
	defer r.mu.Unlock()
	var points []point
	for i, block := range r.blocks {
		n := blockPoints
		if i == len(r.blocks)-1 {
			n = r.filled
		}
		from := sort.Search(n, func(i int) bool { return block[i].at > after })
		points = append(points, block[from:n]...)
	}
	return slices.Clip(points[max(0, len(points)-Kept):])
}
