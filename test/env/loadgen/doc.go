// Package loadgen sends HTTP requests at a rate that does not depend on the answers (an open loop),
// to endpoints on this machine only: an address that is not loopback is refused with an error
// wherever it comes from.
package loadgen
