// Command benchlive plays a load in real time to one application after another, each scaled in
// another way on a real control plane of this machine, and reports how well each served its users
// and with how many pods. It is what `make bench-live` runs; docs/lab-live.md describes what is
// real in it and what is not.
package main
