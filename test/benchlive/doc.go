// Command benchlive plays a load in real time to one application after another, each scaled in another way on a real
// control plane of this machine, and tells which of them served its users how well and with how many pods. It is what
// `make bench-live` runs; docs/lab-live.md says what is real in it and what is not.
package main
