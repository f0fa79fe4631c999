// Package plan decides what a pool of workers does next: it is a pure function of one [Snapshot].
//
// It unites the rules of the seed documents on scaling (the worker autoscalers for K3s on Lambda and node-fleet; each
// rule names its own) under one loop: every signal, the pods that do not fit, the seasonal floor and the minimum turn into
// a desired number of nodes, the largest wins, and what may be done about it now is one [Step] with the reason for it.
// Doing nothing is a step that has a reason as well.
//
// The package reads no clock and draws no random number; it imports the standard library, the pipeline and the types of
// apimachinery alone.
package plan
