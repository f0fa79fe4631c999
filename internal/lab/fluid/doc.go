// Package fluid is a world of which only the amount of work is simulated, and no single request: enough to play weeks of
// traffic in seconds.
//
// Pods are identical. The requests of a second are a Poisson draw, dealt to the pods of the proxy at random by their
// shares; a pod with more of them than it has capacity for is busy all second and has the rest to do after it, ten seconds of work at most. Seconds
// are whole: pods become ready on one, and a second is dealt when it begins, to the pods that are there. A look in the
// middle of a second sees the part of it that has passed.
package fluid
