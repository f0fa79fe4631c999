// Package kubernetes keeps the journal of a pool in the status of its WorkerPool.
package kubernetes
