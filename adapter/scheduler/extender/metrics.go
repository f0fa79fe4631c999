package extender

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// telemetry counts and times answers.
type telemetry struct {
	duration    *prometheus.HistogramVec // by verb and code
	connections prometheus.Counter
	unknown     prometheus.Counter

	ok      map[string]prometheus.Observer // of answers with 200, by verb
	refused [reasons]prometheus.Counter    // nil: the reason filters no node
	open    [gaps]prometheus.Counter
	noFit   [outcomes]prometheus.Counter
	state   []prometheus.Collector
}

// newTelemetry registers the metrics of an Extender.
func newTelemetry(r prometheus.Registerer, now func() time.Time, snapshot func() *clusterSnapshot,
	l *assumedPods) (*telemetry, error) {
	t := &telemetry{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "foresail_extender_request_duration_seconds",
			Help: "Time from the headers of a request until its answer was written, by verb and HTTP status.",
			// A scheduler gives up after 200 ms.
			Buckets: []float64{100e-6, 200e-6, 300e-6, 500e-6, 750e-6, 1e-3, 2e-3, 3e-3, 5e-3, 10e-3, 20e-3,
				50e-3, 100e-3, 200e-3, 500e-3, 1},
		}, []string{"verb", "code"}),
		connections: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "foresail_extender_connections_total",
			Help: "Connections of schedulers. A scheduler over HTTP/2 keeps one for as long as it runs.",
		}),
		unknown: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "foresail_extender_unknown_pods_total",
			Help: "Requests about pods that neither the watch nor a read had as pending or bound. Such a pod counts only once it is bound.",
		}),
		ok: map[string]prometheus.Observer{},
	}
	t.countVerdicts()
	for _, verb := range []string{verbFilter, verbPrioritize} {
		// from 0, so that the first one is an increase
		t.ok[verb] = t.duration.WithLabelValues(verb, strconv.Itoa(http.StatusOK))
	}
	t.watch(now, snapshot, l)
	if r == nil {
		return t, nil
	}
	return t, r.Register(t)
}

func (t *telemetry) countVerdicts() {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "foresail_extender_nodes_filtered_total",
		Help: "Nodes that were filtered, by reason: removing (a WorkerPool removes it), memory or cpu (predicted to exceed the limit).",
	}, []string{"reason"})
	for _, r := range []reason{removing, overMemory, overCPU} {
		t.refused[r] = refused.WithLabelValues(r.String())
	}
	open := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "foresail_extender_fail_open_total",
		Help: "Nodes that passed, or were scored by requests, for lack of data, by the missing data.",
	}, []string{"reason"})
	for g := noGap + 1; g < gaps; g++ {
		t.open[g] = open.WithLabelValues(g.String())
	}
	noFit := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "foresail_extender_no_fit_total",
		Help: "Times that the limits left no node for a pod, by outcome: waits (for a pool to grow), passed, or elsewhere (the scheduler tries other nodes).",
	}, []string{"outcome"})
	for _, r := range []outcome{elsewhere, waits, passed} {
		t.noFit[r] = noFit.WithLabelValues(r.String())
	}
	t.state = append(t.state, refused, open, noFit)
}

// watch adds gauges of the snapshot and of the assumed pods.
func (t *telemetry) watch(now func() time.Time, snapshot func() *clusterSnapshot, l *assumedPods) {
	gauge := func(name, help string, value func() float64) {
		t.state = append(t.state,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "foresail_extender_" + name, Help: help}, value))
	}
	gauge("cache_age_seconds",
		"Age of the cached state of the cluster that requests are answered from; -1 before the first.", func() float64 {
			if at := snapshot().at; !at.IsZero() {
				return now().Sub(at).Seconds()
			}
			return -1
		})
	gauge("assumed_pods", "Pods that samples do not include yet: bound recently, or about to be.", func() float64 {
		return float64(l.pods())
	})
}

// answered counts a request.
func (t *telemetry) answered(verb string, code int, took time.Duration) {
	of := t.ok[verb]
	if of == nil || code != http.StatusOK {
		of = t.duration.WithLabelValues(verb, strconv.Itoa(code))
	}
	of.Observe(took.Seconds())
}

// filtered counts filtered nodes.
func (t *telemetry) filtered(verdicts []verdict, r outcome) {
	var refused [reasons]int
	for i := range verdicts {
		if v := &verdicts[i]; r.filters(v) {
			refused[v.reason]++
		}
	}
	for i, n := range refused {
		if n > 0 {
			t.refused[i].Add(float64(n))
		}
	}
	if c := t.noFit[r]; c != nil {
		c.Inc()
	}
}

// judged counts missing data of nodes.
func (t *telemetry) judged(verdicts []verdict) {
	var open [gaps]int
	for i := range verdicts {
		open[verdicts[i].gap]++
	}
	for i, n := range open {
		if c := t.open[i]; c != nil && n > 0 {
			c.Add(float64(n))
		}
	}
}

// Describe implements prometheus.Collector.
func (t *telemetry) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range append([]prometheus.Collector{t.duration, t.connections, t.unknown}, t.state...) {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (t *telemetry) Collect(ch chan<- prometheus.Metric) {
	for _, c := range append([]prometheus.Collector{t.duration, t.connections, t.unknown}, t.state...) {
		c.Collect(ch)
	}
}
