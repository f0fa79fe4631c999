package capacitybuffer

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	descReplicas = prometheus.NewDesc("foresail_capacity_buffer_replicas", "Spare pods that the CapacityBuffer of a PredictedMetric asks for.",
		[]string{"namespace", "predictedmetric"}, nil)
	descStartup = prometheus.NewDesc("foresail_capacity_buffer_node_startup_time_seconds", "Time from a pod that waits for a new node until it is scheduled, assumed or measured.", nil, nil)
	descNodes   = prometheus.NewDesc("foresail_capacity_buffer_nodes_measured", "Nodes that the startup time of nodes is measured from; 0: it is assumed.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *Controller) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descReplicas, descStartup, descNodes} {
		out <- d
	}
}

// Collect implements prometheus.Collector. Only the leader has values.
func (c *Controller) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	states := maps.Clone(c.states)
	c.mu.Unlock()
	for _, s := range states {
		if s.Buffer != nil && s.Buffer.Replicas != nil {
			out <- prometheus.MustNewConstMetric(descReplicas, prometheus.GaugeValue, float64(*s.Buffer.Replicas), s.Key.Namespace, s.Key.Name)
		}
	}
	if s, ok := c.Nodes.Startup(); ok {
		out <- prometheus.MustNewConstMetric(descStartup, prometheus.GaugeValue, s.Time.Seconds())
		out <- prometheus.MustNewConstMetric(descNodes, prometheus.GaugeValue, float64(s.Measured))
	}
}
