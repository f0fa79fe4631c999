// Package lab plays scalers against loads in virtual time, to tell which of them serves its users better and at what cost.
//
// A [World] is the pods of one workload under a load: internal/lab/queue simulates every request, internal/lab/fluid only
// how much work each pod has, which is enough for weeks of traffic. A [Scaler] looks at the world through a [View], which
// shows no more than a cluster would, and says how many pods there should be. [Run] plays one against the other and keeps
// a [Record], of which internal/lab/score makes figures.
//
// Times are milliseconds from the start of a run. A run is a function of its settings and its seed: packages of the lab
// read no clock and draw from no generator but those made by [Random].
package lab
