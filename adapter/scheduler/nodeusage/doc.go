// Package nodeusage forecasts the CPU and memory use of each node.
//
// A Source reads samples: metrics.k8s.io (metrics-server) or a Prometheus server. A pipeline with
// one instance forecasts each series when it has new samples; predictor.go has its parameters. The
// result is a snapshot.NodeLoads.
//
// Samples are rejected and counted if they are not a number, negative, more than any node has, more
// than an interval ahead, or older than the window. Samples before a gap longer than StaleAfter, or
// before the creation of the Node, are dropped. A node that is not read any more keeps its
// forecast, with its age, until twice StaleAfter has passed or its Node is gone. If a clock is set
// back, samples that are now in the future are dropped.
//
// BenchmarkRound measures memory and CPU of a round of forecasts.
//
// Prometheus needs one query for the cores and one for the bytes that each node uses. For kubelets,
// if Prometheus scrapes their cAdvisor with the label node and keeps the root cgroup (the chart
// kube-prometheus-stack drops it):
//
//	sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[1m]))
//	sum by (node) (last_over_time(container_memory_working_set_bytes{id="/"}[1m]))
//
// For node_exporter, with the label instance, whose values are addresses of Nodes with a port:
//
//	sum by (instance) (rate(node_cpu_seconds_total{mode!~"idle|iowait|steal"}[1m]))
//	last_over_time(node_memory_MemTotal_bytes[1m]) - last_over_time(node_memory_MemAvailable_bytes[1m])
//
// A range must contain at least two scrapes, and delays changes by half its length. Without a
// range, series that are not scraped any more would look fresh (see LookBack).
package nodeusage
