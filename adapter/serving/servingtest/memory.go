// Package servingtest has the snapshots that the tests of doors read.
package servingtest

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// Memory is a serving.Reader of snapshots that can be published at any time. It is safe for concurrent use.
type Memory struct {
	mu     sync.RWMutex
	held   map[types.NamespacedName]snapshot.Snapshot
	traces map[types.NamespacedName]*snapshot.Trace
}

// NewMemory returns a reader of snapshots.
func NewMemory(snapshots ...snapshot.Snapshot) *Memory {
	m := &Memory{held: map[types.NamespacedName]snapshot.Snapshot{}, traces: map[types.NamespacedName]*snapshot.Trace{}}
	m.Publish(snapshots...)
	return m
}

// Publish adds snapshots, or replaces those of the same PredictedMetrics.
func (m *Memory) Publish(snapshots ...snapshot.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range snapshots {
		m.held[s.Metric] = s
	}
}

// Get implements serving.Reader.
func (m *Memory) Get(metric types.NamespacedName) (snapshot.Snapshot, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s, ok := m.held[metric]
	return s, ok
}

// List implements serving.Reader.
func (m *Memory) List(namespace string) []snapshot.Snapshot {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var list []snapshot.Snapshot
	for _, s := range m.held {
		if s.Metric.Namespace == namespace {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b snapshot.Snapshot) int { return strings.Compare(a.Metric.Name, b.Metric.Name) })
	return list
}

// All returns all snapshots, in any order.
func (m *Memory) All() []snapshot.Snapshot {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Collect(maps.Values(m.held))
}

// PublishTrace sets how the newest forecast of a PredictedMetric came about.
func (m *Memory) PublishTrace(metric types.NamespacedName, t *snapshot.Trace) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.traces[metric] = t
}

// Trace implements dashboard.Reader.
func (m *Memory) Trace(metric types.NamespacedName) (*snapshot.Trace, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, ok := m.held[metric]
	return m.traces[metric], ok
}

// Now is the time at which the snapshots of Healthy are fresh.
var Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Healthy returns a fresh snapshot of shop/name for Deployment shop/target.
func Healthy(name, target string) snapshot.Snapshot {
	return snapshot.Snapshot{
		Metric:     types.NamespacedName{Namespace: "shop", Name: name},
		TargetKind: "Deployment", TargetName: target,
		Threshold: 0.7, StaleAfter: 30 * time.Second,
		Forecast:     pipeline.Forecast{Required: 14.27, ServedLoad: 0.7 * 14.27},
		Combined:     snapshot.Combined{Desired: 14, Metrics: 1},
		NewestSample: Now.Add(-2 * time.Second), At: Now.Add(-time.Second),
		Ready: 10,
	}
}

// Changed returns a snapshot with a change.
func Changed(s snapshot.Snapshot, change func(*snapshot.Snapshot)) snapshot.Snapshot {
	change(&s)
	return s
}
