// Package monitoring runs the monitoring of a real cluster beside a control plane of this machine:
// a Prometheus server or agent that finds and scrapes the pods of test/env/workload, and
// metrics-server with the kubelets' endpoints that it reads, served through the API server.
//
// The programs are built from their Go modules once ([Build]) and kept in the repository's .cache
// folder. They listen on loopback, keep their data in the cluster's folder, and can be killed,
// stopped, paused and run again.
package monitoring
