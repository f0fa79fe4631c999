package capacitybuffer

import (
	"github.com/prometheus/client_golang/prometheus"
)

var (
	descReplicas = prometheus.NewDesc("foresail_capacity_buffer_replicas", "[ALPHA] Spare pods that the CapacityBuffer of a PredictedMetric asks for.",
		[]string{"namespace", "predictedmetric"}, nil)
	descStartup = prometheus.NewDesc("foresail_capacity_buffer_node_startup_time_seconds", "[ALPHA] Time from a pod that waits for a new node until it is scheduled, assumed or measured.", nil, nil)
)

// Describe implements prometheus.Collector.
func (k *Keeper) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descReplicas, descStartup} {
		out <- d
	}
}

// Collect implements prometheus.Collector. Only the leader has values.
func (k *Keeper) Collect(out chan<- prometheus.Metric) {
	for key, s := range k.Statuses() {
		if s != nil && s.Replicas != nil {
			n := float64(*s.Replicas)
			out <- prometheus.MustNewConstMetric(descReplicas, prometheus.GaugeValue, n, key.Namespace, key.Name)
		}
	}
	if s, ok := k.nodes.Startup(); ok {
		out <- prometheus.MustNewConstMetric(descStartup, prometheus.GaugeValue, s.Time.Seconds())
	}
}
