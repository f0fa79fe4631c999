// Package stack puts a whole Foresail on a control plane of this machine: the adapter as a process,
// registered with the API server from the project's own manifests, and applications behind
// HorizontalPodAutoscalers whose pods serve real HTTP. The demo and the end-to-end tests are made
// of it.
package stack
