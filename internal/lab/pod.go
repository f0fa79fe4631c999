package lab

import "math"

// Never is the time of an event that has not happened.
const Never int64 = math.MaxInt64

// Pod is one pod of the workload, from the order to create it until it is gone.
type Pod struct {
	ID      string // unique in a run; of two runs with one seed the n-th pods have one ID, speed and start-up time
	Created int64  // when it was asked for
	Ready   int64  // when its Ready condition turned true, or will; Never for one that was removed before
	Ended   int64  // when it was removed, or Never

	Busy     Meter // time its event loop was busy, in seconds: a mean of it is event loop utilisation
	Requests Meter // requests that reached it: a mean of it is requests per second
}

// IsReady reports whether the pod is ready at a time.
func (p *Pod) IsReady(t int64) bool { return p.Ready <= t && t < p.Ended }

// Exists reports whether the pod has been created, and not removed, at a time.
func (p *Pod) Exists(t int64) bool { return p.Created <= t && t < p.Ended }

// Meter adds something up by the second of its happening, as a counter that is read each second would.
// The zero value is ready. What is added is in order of seconds.
type Meter struct {
	first int64     // the second of bins[0]
	bins  []float64 // what happened in each second
	sums  []float64 // all that had happened at the end of each second but those of bins that may still change
	base  float64   // all that was forgotten
}

const second = 1000

// Add adds an amount at a time.
func (m *Meter) Add(t int64, amount float64) { *m.bin(t / second) += amount }

// AddSpan adds the seconds from one time to another, each part where it belongs.
func (m *Meter) AddSpan(from, to int64) {
	for from < to {
		end := min(to, (from/second+1)*second)
		m.Add(from, float64(end-from)/second)
		from = end
	}
}

func (m *Meter) bin(s int64) *float64 {
	if len(m.bins) == 0 && m.base == 0 {
		m.first = s
	}
	i := int(s - m.first)
	for len(m.bins) <= i {
		m.bins = append(m.bins, 0)
	}
	m.sums = m.sums[:min(len(m.sums), i)]
	return &m.bins[i]
}

// Mean returns how much a second was added from one time to another. Within a second it is taken to
// be spread evenly.
func (m *Meter) Mean(from, to int64) float64 {
	if to <= from {
		return 0
	}
	return (m.total(to) - m.total(from)) / (float64(to-from) / second)
}

// total returns all that had been added at a time.
func (m *Meter) total(t int64) float64 {
	i := int(t/second - m.first)
	if len(m.bins) == 0 || i < 0 {
		return m.base
	}
	for len(m.sums) < min(i, len(m.bins)) {
		before := m.base
		if n := len(m.sums); n > 0 {
			before = m.sums[n-1]
		}
		m.sums = append(m.sums, before+m.bins[len(m.sums)])
	}
	if i >= len(m.bins) {
		return m.sums[len(m.sums)-1]
	}
	before := m.base
	if i > 0 {
		before = m.sums[i-1]
	}
	return before + m.bins[i]*float64(t%second)/second
}

// Forget lets go of what was added before a time, so that long runs need no more memory than short
// ones. Means from that time on stay the same.
func (m *Meter) Forget(before int64) {
	n := min(int(before/second-m.first), len(m.bins))
	if n <= 0 {
		return
	}
	m.base = m.total((m.first + int64(n)) * second)
	m.first += int64(n)
	m.bins = append(m.bins[:0], m.bins[n:]...)
	m.sums = append(m.sums[:0], m.sums[min(n, len(m.sums)):]...)
}
