// Package poolbench measures pools of workers: how long pods wait for a node with and without a
// forecast, what a tick costs, and how long it takes from a pod that no node takes to the launch of
// an instance.
//
// The comparisons in virtual time run the real loop with its plan, signals, packing and journal on
// a cluster that is played; hours pass in seconds, and the same seed tells the same. Those on the
// wire run the real process on a real control plane. Figures are printed, never asserted but for
// what a forecast is there for.
package poolbench
