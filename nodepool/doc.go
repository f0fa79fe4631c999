// Package nodepool runs pools of workers: each tick observes the cluster and the cloud, decides (package plan) and applies
// the decision as durable workflows that can be killed at any line.
package nodepool
