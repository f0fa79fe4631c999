package queue

import "math"

// Requests are counts and latencies of requests. Dropped ones were not sent, because all clients
// were waiting.
type Requests struct {
	Sent      int
	Succeeded int
	TimedOut  int // the client gave up
	Rejected  int // failed early, by an overloaded pod, or because there is none
	Dropped   int

	Latency Latency // of all that were sent; one that timed out has waited as long as clients do
	Answers Latency // of those that succeeded
}

// Success returns the share of the requests sent that succeeded, or 1 where none was sent.
func (r Requests) Success() float64 {
	if r.Sent == 0 {
		return 1
	}
	return float64(r.Succeeded) / float64(r.Sent)
}

// Latency is the distribution of latencies.
type Latency struct {
	sum   float64
	n     int
	count []int // by millisecond, rounded
}

func (l *Latency) add(ms float64) {
	i := int(math.Round(ms))
	for len(l.count) <= i {
		l.count = append(l.count, 0)
	}
	l.count[i]++
	l.n++
	l.sum += ms
}

// Mean returns the mean in ms, or 0 of nothing.
func (l *Latency) Mean() float64 {
	if l.n == 0 {
		return 0
	}
	return l.sum / float64(l.n)
}

// Quantile returns the latency in ms that a share of the requests had at most, exact to a
// millisecond, or 0 of nothing.
func (l *Latency) Quantile(share float64) float64 {
	rank := max(1, int(math.Ceil(share*float64(l.n))))
	for ms, n := range l.count {
		if rank -= n; rank <= 0 {
			return float64(ms)
		}
	}
	return 0
}

// Share returns the share of the requests that took a whole number of ms at most, or 0 of nothing.
func (l *Latency) Share(ms int) float64 {
	if l.n == 0 {
		return 0
	}
	n := 0
	for _, count := range l.count[:min(len(l.count), max(0, ms+1))] {
		n += count
	}
	return float64(n) / float64(l.n)
}

type outcome uint8

const (
	pending outcome = iota
	succeeded
	timedOut
	rejected
	dropped
)

// log keeps what became of each request, in order of arrival.
type log struct {
	outcomes  []outcome
	latencies []float32 // ms
	before    []int     // requests that arrived before each second
}

// begin notes an arrival at a time and returns its number.
func (l *log) begin(t float64) int {
	for len(l.before) <= int(t/1000) {
		l.before = append(l.before, len(l.outcomes))
	}
	l.outcomes = append(l.outcomes, pending)
	l.latencies = append(l.latencies, 0)
	return len(l.outcomes) - 1
}

func (l *log) end(number int, o outcome, latency float64) {
	l.outcomes[number], l.latencies[number] = o, float32(latency)
}

// arrived returns how many requests arrived before a second.
func (l *log) arrived(second int64) int {
	if second >= int64(len(l.before)) {
		return len(l.outcomes)
	}
	return l.before[second]
}

// between sums up the requests that arrived from one second on and before another.
func (l *log) between(from, to int64) Requests {
	var r Requests
	for i := l.arrived(from); i < l.arrived(to); i++ {
		switch l.outcomes[i] {
		case succeeded:
			r.Succeeded++
			r.Answers.add(float64(l.latencies[i]))
		case timedOut:
			r.TimedOut++
		case rejected:
			r.Rejected++
		case dropped:
			r.Dropped++
			continue
		case pending:
		}
		r.Sent++
		r.Latency.add(float64(l.latencies[i]))
	}
	return r
}
