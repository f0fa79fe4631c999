// Package nodeload forecasts what each node uses of CPU and memory.
//
// A Source tells samples: metrics.k8s.io (metrics-server) or a Prometheus server. Each series is forecast by itself, by a
// pipeline of one instance, whenever it has something new: params.go says how. What comes of it is a snapshot.NodeLoads.
//
// Nothing is guessed. Samples that cannot be (not a number, negative, more than any node has, dated more than an interval
// ahead, older than the window) are refused and counted; what is told again changes nothing; what was before a gap that is
// longer than StaleAfter, or before the Node was created, is forgotten. A node that is not read any more keeps what was known of
// it, with the age of that, until twice StaleAfter has passed or its Node is gone. A clock that is set back has what is dated ahead of
// it forgotten.
//
// For 5,000 nodes, with a window of 15 min at 15 s, 15 MB are kept, and each round of 10,000 forecasts takes some 50 ms of CPU
// (BenchmarkRound).
//
// Queries for Prometheus are an expression for the cores and one for the bytes that each node uses. Of kubelets, where Prometheus
// scrapes their cAdvisor with the label node and keeps the root cgroup (the chart kube-prometheus-stack drops it):
//
//	sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[1m]))
//	sum by (node) (last_over_time(container_memory_working_set_bytes{id="/"}[1m]))
//
// Of node_exporter, with the label instance, whose values are addresses of Nodes with a port:
//
//	sum by (instance) (rate(node_cpu_seconds_total{mode!~"idle|iowait|steal"}[1m]))
//	last_over_time(node_memory_MemTotal_bytes[1m]) - last_over_time(node_memory_MemAvailable_bytes[1m])
//
// A range must hold two scrapes at the least, and makes a change seen half of it later. Without one what is not scraped any more
// would pass for fresh (LookBack).
package nodeload
