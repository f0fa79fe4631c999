// Package simulated plays a cloud whose instances are kwok nodes.
package simulated
