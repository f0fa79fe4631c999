package tell

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
)

// Metrics is what Prometheus can read of all pools.
type Metrics struct {
	workers, desired, recommended, limits, pending, room, open, leading, healthy, failures *prometheus.GaugeVec
	available, current, predicted, threshold, voted                                        *prometheus.GaugeVec
	instances, spotTarget, startupTime                                                     *prometheus.GaugeVec
	decisions, events, failed                                                              *prometheus.CounterVec
	dropped                                                                                prometheus.Counter
}

// NewMetrics makes the metrics of all pools and registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "foresail_nodepool_" + name, Help: help}, append([]string{"pool"}, labels...))
		r.MustRegister(v)
		return v
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "foresail_nodepool_" + name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	m := &Metrics{
		workers:     gauge("workers", "Workers by state: ready, joining, unready, terminating, failed.", "state"),
		instances:   gauge("instances", "Workers that count, by what they are.", "market", "instance_type", "zone"),
		spotTarget:  gauge("spot_target_workers", "Of the workers that count, how many the market policy wants to be Spot."),
		desired:     gauge("desired_workers", "Workers that the last decision aims at, after minimum, maximum and batch."),
		recommended: gauge("recommended_workers", "Largest recommendation, before minimum, maximum and batch."),
		limits:      gauge("limit_workers", "The minimum and the maximum.", "limit"),
		pending:     gauge("pending_pods", "Pods that no node takes and that a node of the pool could run."),
		room:        gauge("pending_pods_with_room", "Of the pending pods that have waited for long enough to count, those that nodes that are there have room for."),
		open:        gauge("action_open", "1 while an action of the kind is open, else 0.", "kind"),
		leading:     gauge("leading", "1 while this process holds the lease of the pool, else 0."),
		healthy:     gauge("healthy", "1 while the pool can do what it decides, else 0."),
		failures:    gauge("failed_scale_ups", "Scale-ups in a row in which no node joined."),
		startupTime: gauge("startup_time_seconds", "How long launches take until their nodes are Ready, as assumed or measured."),
		available:   gauge("signal_available", "1 while the signal has a forecast, else 0.", "signal"),
		current:     gauge("signal_load", "Smoothed load of each worker now, in units of the signal.", "signal"),
		predicted:   gauge("signal_predicted_load", "Load of each worker at the horizon, in units of the signal.", "signal"),
		threshold:   gauge("signal_threshold", "Threshold of the signal, in its units.", "signal"),
		voted:       gauge("signal_recommended_workers", "Workers that the signal recommends.", "signal"),
		decisions:   counter("decisions_total", "Decisions, those to do nothing included.", "pool", "step", "reason"),
		events:      counter("events_total", "What happened: launches, joins, drains, terminations and their failures.", "pool", "reason"),
		failed:      counter("notifications_failed_total", "What could not be told, by whom it was for.", "to"),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "foresail_nodepool_notifications_dropped_total", Help: "Sentences for the webhook that were dropped as too many waited.",
		}),
	}
	r.MustRegister(m.dropped)
	return m
}

// Forget drops what is exposed of a pool that is gone.
func (m *Metrics) Forget(pool string) {
	of := prometheus.Labels{"pool": pool}
	for _, v := range []*prometheus.GaugeVec{m.workers, m.desired, m.recommended, m.limits, m.pending, m.room, m.open, m.leading, m.healthy, m.failures,
		m.available, m.current, m.predicted, m.threshold, m.voted, m.instances, m.spotTarget, m.startupTime} {
		v.DeletePartialMatch(of)
	}
	m.decisions.DeletePartialMatch(of)
	m.events.DeletePartialMatch(of)
}

// countedFromZero are the events of which "none" must be told apart from "not known": the first one of a counter that
// begins with it is no increase.
var countedFromZero = []nodepool.EventReason{nodepool.EventLaunched, nodepool.EventLaunchFailed, nodepool.EventJoinFailed, nodepool.EventInterrupted, nodepool.EventDrainFailed}

func (m *Metrics) tell(told nodepool.Told) {
	pool := told.Pool
	m.leading.WithLabelValues(pool).Set(oneIf(told.Leading))
	m.healthy.WithLabelValues(pool).Set(oneIf(told.Health == nil && told.Snapshot.WorkersErr == "" && told.Record.Failures < launchesFail))
	m.tellJournal(told)
	for _, reason := range countedFromZero {
		m.events.WithLabelValues(pool, string(reason)).Add(0)
	}
	for _, e := range told.Events {
		m.events.WithLabelValues(pool, string(e.Reason)).Inc()
	}
	m.tellDecision(told)
	m.tellWorkers(told)
	m.tellSignals(pool, told.Snapshot.Signals)
}

// tellJournal exposes what the journal holds, and what is reckoned from it.
func (m *Metrics) tellJournal(told nodepool.Told) {
	if told.Decision.Reason == nodepool.NotDecided {
		of := prometheus.Labels{"pool": told.Pool}
		for _, v := range []*prometheus.GaugeVec{m.failures, m.startupTime, m.open} {
			v.DeletePartialMatch(of)
		}
		return
	}
	m.failures.WithLabelValues(told.Pool).Set(float64(told.Record.Failures))
	m.startupTime.WithLabelValues(told.Pool).Set(told.StartupTime.Seconds())
	for _, kind := range []plan.ActionKind{plan.ActionUp, plan.ActionDown} {
		m.open.WithLabelValues(told.Pool, string(kind)).Set(oneIf(told.Record.Action != nil && told.Record.Action.Kind == kind))
	}
}

func (m *Metrics) tellDecision(told nodepool.Told) {
	d := told.Decision
	if d.Reason == "" {
		return
	}
	m.decisions.WithLabelValues(told.Pool, string(d.Step), string(d.Reason)).Inc()
	if decided(told) {
		m.desired.WithLabelValues(told.Pool).Set(float64(d.Want))
		m.recommended.WithLabelValues(told.Pool).Set(float64(d.Recommended))
	} else {
		m.desired.DeleteLabelValues(told.Pool)
		m.recommended.DeleteLabelValues(told.Pool)
	}
	if !observed(told) {
		return // the limits are what was read last
	}
	m.limits.WithLabelValues(told.Pool, "min").Set(float64(told.Snapshot.Pool.Min))
	m.limits.WithLabelValues(told.Pool, "max").Set(float64(told.Snapshot.Pool.Max))
}

// decided tells whether the numbers of the decision mean anything: not if the journal or the workers could not be read.
func decided(told nodepool.Told) bool {
	reason := told.Decision.Reason
	return reason != "" && reason != nodepool.NotDecided && reason != plan.WorkersUnknown
}

// observed tells whether the tick came to look at anything: it does not if it has no configuration.
func observed(told nodepool.Told) bool { return !told.Snapshot.Now.IsZero() }

// workersKnown tells whether the workers are.
func workersKnown(told nodepool.Told) bool { return observed(told) && told.Snapshot.WorkersErr == "" }

// tellWorkers exposes nothing of what is not known.
func (m *Metrics) tellWorkers(told nodepool.Told) {
	of := prometheus.Labels{"pool": told.Pool}
	m.workers.DeletePartialMatch(of)
	m.instances.DeletePartialMatch(of)
	m.pending.DeletePartialMatch(of)
	m.room.DeletePartialMatch(of)
	m.spotTarget.DeletePartialMatch(of)
	if told.Snapshot.Pending.Known {
		m.pending.WithLabelValues(told.Pool).Set(float64(told.Snapshot.Pending.Pods))
		m.room.WithLabelValues(told.Pool).Set(float64(told.Snapshot.Pending.Room))
	}
	if !workersKnown(told) {
		return
	}
	states := map[string]int{"ready": 0, "joining": 0, "unready": 0, "terminating": 0, "failed": 0}
	for _, w := range told.Snapshot.Workers {
		states[stateOf(w)]++
		if w.Counts() {
			m.instances.WithLabelValues(told.Pool, string(w.Market), w.InstanceType, w.Zone).Inc()
		}
	}
	for state, n := range states { // whole numbers: whoever reads in between must not take none for all
		m.workers.WithLabelValues(told.Pool, state).Set(float64(n))
	}
	m.spotTarget.WithLabelValues(told.Pool).Set(spotTarget(told.Snapshot))
}

// spotTarget is what launches aim at, for as many workers as there are.
func spotTarget(s plan.Snapshot) float64 {
	workers, _ := counts(s.Workers)
	return math.Round(s.Pool.SpotRatio * float64(max(0, workers-s.Pool.OnDemandBase)))
}

func stateOf(w plan.Worker) string {
	switch {
	case w.Failed:
		return "failed"
	case w.Leaving:
		return "terminating"
	case w.Ready:
		return "ready"
	case w.Node == "":
		return "joining"
	}
	return "unready"
}

func (m *Metrics) tellSignals(pool string, signals []plan.Signal) {
	of := prometheus.Labels{"pool": pool}
	for _, v := range []*prometheus.GaugeVec{m.available, m.current, m.predicted, m.threshold, m.voted} {
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
			m.voted.WithLabelValues(pool, s.Name).Set(float64(s.Want))
		}
	}
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
