package report

import (
	"math"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
)

// Metrics are the Prometheus metrics of all pools. A scrape reads whole cycles: within a cycle it would find no
// workers, or workers and lease of different times.
type Metrics struct {
	mu  sync.Mutex // held while a cycle is set, and during a scrape
	all []prometheus.Collector

	workers, desired, recommended, limits, pending     *prometheus.GaugeVec
	leading, healthy, failures                         *prometheus.GaugeVec
	available, current, predicted, threshold, bySignal *prometheus.GaugeVec
	instances, spotTarget, startupTime                 *prometheus.GaugeVec
	decisions, events, failed                          *prometheus.CounterVec
}

// Reasons of pending pods.
const (
	pendingNeedsNode = "NeedsNode"
	pendingHasRoom   = "HasRoom"
	pendingNotHelped = "NotHelped"
)

// NewMetrics registers the metrics of all pools.
func NewMetrics(r prometheus.Registerer) *Metrics {
	var all []prometheus.Collector
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Name: "foresail_nodepool_" + name, Help: help}, append([]string{"pool"}, labels...))
		all = append(all, v)
		return v
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "foresail_nodepool_" + name, Help: help}, labels)
		all = append(all, v)
		return v
	}
	m := &Metrics{
		workers: gauge("workers", "Workers by state: ready, joining, unready, terminating, failed.", "state"),
		instances: gauge("instances", "Workers that count, by market, instance type and zone.",
			"market", "instance_type", "zone"),
		spotTarget:  gauge("spot_target_workers", "Workers that should be Spot by the market policy."),
		desired:     gauge("desired_workers", "Workers that the last decision desires, after minimum, maximum and batch."),
		recommended: gauge("recommended_workers", "Largest recommendation, before minimum, maximum and batch."),
		limits:      gauge("limit_workers", "Minimum and maximum of workers.", "limit"),
		pending: gauge("pending_pods", "Pending pods, by reason: NeedsNode (a new node of the pool could run it), "+
			"HasRoom (older than pendingFor, and existing nodes have room for it), or "+
			"NotHelped (the node launched for it did not take it: no other is launched for a while).", "reason"),
		leading:     gauge("leading", "1 while this process holds the lease of the pool, else 0."),
		healthy:     gauge("healthy", "1 while the pool can carry out its decisions, else 0."),
		failures:    gauge("failed_scale_ups", "Scale-ups in a row in which no node joined."),
		startupTime: gauge("startup_time_seconds", "Time from a launch to a Ready node, measured, or assumed until then."),
		available:   gauge("signal_available", "1 while the signal has a forecast, else 0.", "signal"),
		current:     gauge("signal_load", "Smoothed load of each worker now, in units of the signal.", "signal"),
		predicted:   gauge("signal_predicted_load", "Load of each worker at the horizon, in units of the signal.", "signal"),
		threshold:   gauge("signal_threshold", "Threshold of the signal, in its units.", "signal"),
		bySignal:    gauge("signal_recommended_workers", "Workers that the signal recommends.", "signal"),
		decisions:   counter("decisions_total", "Decisions, including those to change nothing.", "pool", "step", "reason"),
		events: counter("events_total", "Events: launches, joins, drains, terminations and their failures.",
			"pool", "reason"),
		failed: counter("notifications_failed_total", "Notifications that could not be sent, or were dropped "+
			"because too many were queued, by receiver: webhook, cloudwatch or report.", "to"),
	}
	m.all = all
	r.MustRegister(m)
	for _, to := range []string{"webhook", "cloudwatch", "report"} {
		m.failed.WithLabelValues(to) // from 0, so that the first failure is an increase
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.all {
		c.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := make(chan prometheus.Metric)
	go func() {
		defer close(live)
		for _, c := range m.all {
			c.Collect(live)
		}
	}()
	for metric := range live {
		read := reading{desc: metric.Desc()}
		read.err = metric.Write(&read.value)
		out <- &read
	}
}

// reading is the value of a metric at one time.
type reading struct {
	desc  *prometheus.Desc
	value dto.Metric
	err   error
}

func (r *reading) Desc() *prometheus.Desc { return r.desc }

func (r *reading) Write(out *dto.Metric) error {
	out.Label, out.Gauge, out.Counter = r.value.Label, r.value.Gauge, r.value.Counter
	return r.err
}

// Forget removes the metrics of a pool that was deleted.
func (m *Metrics) Forget(pool string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := prometheus.Labels{"pool": pool}
	for _, v := range []*prometheus.GaugeVec{
		m.workers, m.desired, m.recommended, m.limits, m.pending,
		m.leading, m.healthy, m.failures,
		m.available, m.current, m.predicted, m.threshold, m.bySignal,
		m.instances, m.spotTarget, m.startupTime,
	} {
		v.DeletePartialMatch(of)
	}
	m.decisions.DeletePartialMatch(of)
	m.events.DeletePartialMatch(of)
}

// countedFromZero are the events whose counters start at 0: Prometheus does not count the first value as an increase.
var countedFromZero = []journal.EventReason{
	journal.EventLaunched, journal.EventLaunchFailed, journal.EventJoinFailed,
	journal.EventInterrupted, journal.EventRepairStarted, journal.EventDrainFailed,
}

func (m *Metrics) set(cycle nodepool.CycleReport) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pool := cycle.Pool
	m.leading.WithLabelValues(pool).Set(oneIf(cycle.Leading))
	m.healthy.WithLabelValues(pool).Set(oneIf(healthy(cycle).Status == metav1.ConditionTrue))
	m.setJournal(cycle)
	for _, reason := range countedFromZero {
		m.events.WithLabelValues(pool, string(reason)).Add(0)
	}
	for _, e := range cycle.Events {
		m.events.WithLabelValues(pool, string(e.Reason)).Inc()
	}
	m.setDecision(cycle)
	m.setWorkers(cycle)
	m.setSignals(pool, cycle.Snapshot.Signals)
}

// setJournal sets the metrics that come from the journal.
func (m *Metrics) setJournal(cycle nodepool.CycleReport) {
	if cycle.Decision.Reason == nodepool.NotDecided {
		of := prometheus.Labels{"pool": cycle.Pool}
		for _, v := range []*prometheus.GaugeVec{m.failures, m.startupTime} {
			v.DeletePartialMatch(of)
		}
		return
	}
	m.failures.WithLabelValues(cycle.Pool).Set(float64(cycle.Record.Failures))
	m.startupTime.WithLabelValues(cycle.Pool).Set(cycle.StartupTime.Seconds())
}

func (m *Metrics) setDecision(cycle nodepool.CycleReport) {
	d := cycle.Decision
	if d.Reason == "" {
		return
	}
	m.decisions.WithLabelValues(cycle.Pool, string(d.Step), string(d.Reason)).Inc()
	if decided(cycle) {
		m.desired.WithLabelValues(cycle.Pool).Set(float64(d.Desired))
		m.recommended.WithLabelValues(cycle.Pool).Set(float64(d.Recommended))
	} else {
		m.desired.DeleteLabelValues(cycle.Pool)
		m.recommended.DeleteLabelValues(cycle.Pool)
	}
	if !observed(cycle) {
		return // the limits stay as last read
	}
	m.limits.WithLabelValues(cycle.Pool, "min").Set(float64(cycle.Snapshot.Pool.Min))
	m.limits.WithLabelValues(cycle.Pool, "max").Set(float64(cycle.Snapshot.Pool.Max))
}

// setWorkers sets the metrics of workers and pending pods, and removes those that are unknown.
func (m *Metrics) setWorkers(cycle nodepool.CycleReport) {
	of := prometheus.Labels{"pool": cycle.Pool}
	m.workers.DeletePartialMatch(of)
	m.instances.DeletePartialMatch(of)
	m.pending.DeletePartialMatch(of)
	m.spotTarget.DeletePartialMatch(of)
	if cycle.Snapshot.Pending.Known {
		m.pending.WithLabelValues(cycle.Pool, pendingNeedsNode).Set(float64(cycle.Snapshot.Pending.Pods))
		m.pending.WithLabelValues(cycle.Pool, pendingHasRoom).Set(float64(cycle.Snapshot.Pending.Room))
		m.pending.WithLabelValues(cycle.Pool, pendingNotHelped).Set(float64(cycle.Snapshot.Pending.BackingOff))
	}
	if !workersKnown(cycle) {
		return
	}
	states := map[string]int{"ready": 0, "joining": 0, "unready": 0, "terminating": 0, "failed": 0}
	for w := range plan.Workers(cycle.Snapshot.Instances) {
		states[stateOf(w)]++
		if w.Counts() {
			m.instances.WithLabelValues(cycle.Pool, string(w.Market), w.InstanceType, w.Zone).Inc()
		}
	}
	for state, n := range states {
		m.workers.WithLabelValues(cycle.Pool, state).Set(float64(n))
	}
	m.spotTarget.WithLabelValues(cycle.Pool).Set(spotTarget(cycle.Snapshot))
}

// spotTarget returns how many of the workers should be Spot.
func spotTarget(s plan.Snapshot) float64 {
	workers, _ := counts(s.Instances)
	return math.Round(s.Pool.SpotRatio * float64(max(0, workers-s.Pool.OnDemandBase)))
}

func stateOf(w *plan.Instance) string {
	switch {
	case w.Failed:
		return "failed"
	case w.Leaving:
		return "terminating"
	case w.Ready():
		return "ready"
	case w.Node.Name == "":
		return "joining"
	}
	return "unready"
}

func (m *Metrics) setSignals(pool string, signals []plan.Signal) {
	of := prometheus.Labels{"pool": pool}
	for _, v := range []*prometheus.GaugeVec{m.available, m.current, m.predicted, m.threshold, m.bySignal} {
		v.DeletePartialMatch(of)
	}
	for _, s := range signals {
		m.available.WithLabelValues(pool, s.Name).Set(oneIf(s.Known))
		m.threshold.WithLabelValues(pool, s.Name).Set(s.Threshold)
		if !s.Known {
			continue
		}
		m.current.WithLabelValues(pool, s.Name).Set(s.Now)
		m.predicted.WithLabelValues(pool, s.Name).Set(s.Predicted)
		if !s.InformsOnly {
			m.bySignal.WithLabelValues(pool, s.Name).Set(float64(s.Desired))
		}
	}
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
