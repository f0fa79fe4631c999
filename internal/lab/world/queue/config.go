// Package queue plays requests one by one: arrivals, a proxy, and pods that are event loops with a
// queue each. It is the world for runs of minutes, in which waiting and timeouts matter.
//
// The model is plausible, not identified: it was fitted to what one paper measured of two scalers
// under two loads, and other models would fit as well. See [Defaults] for what was chosen, and
// [Variants] for models that a finding should survive.
package queue

import (
	"github.com/foresail/foresail/internal/lab"
)

// Config is one run.
type Config struct {
	Load     lab.Load
	Seed     uint64
	Min, Max int // bounds in the view
	Warm     int // pods that are there from the start: ready, known to the proxy and past their slow start
	Model    Model
}

// Model is how clients, proxy and pods behave. Times are milliseconds.
type Model struct {
	Service              float64 // CPU time of a request, on average over the routes, on a pod of speed 1
	Routes               []Route // what requests are for; empty = all cost the same
	ChunksMin, ChunksMax int     // pieces that a request's CPU time comes in, 1 to 64
	WaitsMin, WaitsMax   int     // how many times between two pieces it waits for something else
	WaitMin, WaitMax     float64 // how long one of those takes
	Jump                 float64 // share of pieces that go to the front of the loop's queue, not to its end
	SpeedSigma           float64 // standard deviation of the logarithm of a pod's speed, which is 1 on average

	FailAbove  int     // requests in flight on a pod from which on it fails some
	FailShare  float64 // share of arrivals that fail then
	FailWithin float64 // time within which they do

	Timeout   float64 // after which clients give up
	StillRuns float64 // share of requests given up whose work is done anyway
	Users     int     // requests that clients have in flight at most; arrivals beyond are dropped, not sent
	Poisson   bool    // arrivals come at random; else evenly spaced by the rate, as a load generator sends them

	Startup, StartupSpread float64 // from the decision to Ready, and how much less or more it may be
	Notice                 float64 // from Ready to where the proxy could find the pod, at most
	Refresh                float64 // how often the proxy looks for pods
	SlowStart              float64 // time in which a pod's weight at the proxy rises to full
	SlowStartFrom          float64 // share of full weight that it is never below
}

// Route is one kind of request.
type Route struct {
	Share float64 // of the requests; shares need not sum to 1
	Cost  float64 // CPU time, relative to the other routes
}

// Defaults returns the model as fitted to what the paper measured of an HPA on CPU and of KEDA,
// each with a ramp and with a spike: success within 5 points, mean and 90th percentile of latency
// within 25%. What the paper's own scaler does in it is a prediction.
//
// What is known of the paper's pods: they wait 1 to 5 ms for a database, six of them collapse
// between 750 and 830 requests per second (so a request takes some 8 ms of CPU), they start in some
// 19 s, readiness is probed each 5 s, and the proxy resolves their name each 5 s and has a slow
// start of 30 s; clients give up after 10 s, and no more than 2,000 wait.
//
// What was chosen:
//   - Speeds are 1 on average, which six pods' collapse speaks for, and differ by 22%. Less made too few requests slow
//     or lost: that pods differ is what drives the worst tenth of the latencies.
//   - Each piece may jump the queue, the first one and those after a wait too, and pieces of a request are of one length.
//     That these be otherwise made next to no difference.
//   - An arrival that fails early takes no CPU time, counts as in flight until it fails, and its latency counts, as a load
//     generator counts that of an error page. A request that timed out counts as 10 s, and is no longer in flight even
//     where its work goes on. Nothing is tried again.
//   - A pod can be found from up to 5 s after it is Ready, evenly spread, and is known to the proxy when that next resolves
//     the name, which it does for all pods at once. Then its weight rises as Envoy's does: linear from nothing, but never
//     below 10%.
//   - Removed pods get no requests from that moment, and finish what they have.
func Defaults() Model {
	return Model{
		Service: 8.0,
		Routes:  []Route{{20, 1.18}, {25, 2.10}, {20, 2.01}, {15, 0.83}, {10, 0.71}, {5, 4.6}, {5, 1.08}},

		ChunksMin: 15, ChunksMax: 25,
		WaitsMin: 1, WaitsMax: 3,
		WaitMin: 1, WaitMax: 5,
		Jump:       0.65,
		SpeedSigma: 0.22,

		FailAbove:  390,
		FailShare:  0.35,
		FailWithin: 1_000,

		Timeout:   10_000,
		StillRuns: 0.6,
		Users:     2_000,

		Startup: 19_000, StartupSpread: 3_000,
		Notice:        5_000,
		Refresh:       5_000,
		SlowStart:     30_000,
		SlowStartFrom: 0.1,
	}
}

// Variant is another model that would be as plausible.
type Variant struct {
	Name  string
	Model Model
}

// Variants returns the model as fitted and those that a ranking of scalers should survive: requests
// that wait their turn, pods that fail none before they time out, pods of one speed, and requests
// that take less or more work.
func Variants() []Variant {
	with := func(name string, change func(*Model)) Variant {
		m := Defaults()
		change(&m)
		return Variant{name, m}
	}
	return []Variant{
		with("fitted", func(*Model) {}),
		with("fifo", func(m *Model) { m.Jump = 0 }),
		with("no-early-failures", func(m *Model) { m.FailShare = 0 }),
		with("identical-pods", func(m *Model) { m.SpeedSigma = 0 }),
		with("service-6.8ms", func(m *Model) { m.Service = 6.8 }),
		with("service-8.4ms", func(m *Model) { m.Service = 8.4 }),
	}
}
