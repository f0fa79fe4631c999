// Package foresail runs the command foresail as a process, for tests, benchmarks and demos: it
// builds the command, applies its manifests, starts it at ports of its own, and reads its metrics,
// its use of CPU and memory, and its profiles.
package foresail
