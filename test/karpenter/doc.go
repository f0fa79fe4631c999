// Package karpenter runs Karpenter with its kwok provider, built from its module, on a control plane without containers. Its tests have
// it act on CapacityBuffers, and compare what pods wait and nodes cost on a ramp with a buffer of Foresail's, with one of a fixed size
// and with none.
package karpenter
