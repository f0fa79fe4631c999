package loadgen

import (
	"math"
	"slices"
	"time"
)

// Latency describes how long requests took, from when they were due to the end of the answer. Those
// that failed or timed out count with the time until then; those dropped or canceled do not count.
// Without requests, Count is 0 and the rest means nothing. Percentiles are times that occurred: the
// least that so many percent did not exceed.
type Latency struct {
	Count                    int
	Mean, P50, P90, P99, Max time.Duration
}

// Stats is how a run stands.
type Stats struct {
	Counts
	Elapsed         time.Duration
	Rate            float64 // requests per second that the profile asks for now
	InFlight        int
	Endpoints       int     // there now
	Recent, Overall Latency // of requests that ended in the span Config.Recent, and of all
}

// Report is what a run came to.
type Report struct {
	Counts
	Latency  Latency
	Elapsed  time.Duration
	Failures map[string]int // how many requests failed for each reason
	Timeline []Second       // one for each second of the profile
}

// Second is what became of the requests that were due in one second of the profile.
type Second struct {
	Counts
	Rate    float64 // requests per second that the profile asked for, on average over the second
	Latency Latency
}

// Success returns the share of requests sent that were answered with 2xx, those canceled left out;
// NaN if there are none. Dropped arrivals were not sent: report them beside it.
func (c Counts) Success() float64 {
	return float64(c.OK) / float64(c.OK+c.Failed+c.TimedOut)
}

func (r *recorder) stats(recent time.Duration) Stats {
	v := r.view()
	from := len(v.ended)
	for from > 0 && v.ended[from-1].end > v.elapsed-recent {
		from--
	}
	return Stats{
		Counts: v.counts, Elapsed: v.elapsed, InFlight: v.inFlight,
		Recent: latencyOf(v.ended[from:]), Overall: latencyOf(v.ended),
	}
}

func (r *recorder) report(p Profile) Report {
	v := r.view()
	return Report{
		Counts: v.counts, Elapsed: v.elapsed, Failures: v.failures,
		Latency: latencyOf(v.ended), Timeline: timeline(p, v.ended),
	}
}

func timeline(p Profile, ended []record) []Second {
	bySecond := make([][]record, int(math.Ceil(p.Duration().Seconds())))
	for _, r := range ended {
		second := min(int(r.due/time.Second), len(bySecond)-1) // rounding may put the last one at the very end
		bySecond[second] = append(bySecond[second], r)
	}
	seconds := make([]Second, len(bySecond))
	for i, records := range bySecond {
		from := time.Duration(i) * time.Second
		seconds[i] = Second{
			Rate:    p.Requests(from+time.Second) - p.Requests(from),
			Latency: latencyOf(records),
		}
		for _, r := range records {
			seconds[i].add(r.outcome)
			if r.outcome != dropped {
				seconds[i].Sent++
			}
		}
	}
	return seconds
}

func latencyOf(records []record) Latency {
	took := make([]time.Duration, 0, len(records))
	var sum time.Duration
	for _, r := range records {
		if r.outcome == ok || r.outcome == failed || r.outcome == timedOut {
			took = append(took, r.end-r.due)
			sum += r.end - r.due
		}
	}
	if len(took) == 0 {
		return Latency{}
	}
	slices.Sort(took)
	percentile := func(share float64) time.Duration {
		return took[max(0, int(math.Ceil(share*float64(len(took))))-1)]
	}
	return Latency{
		Count: len(took), Mean: sum / time.Duration(len(took)),
		P50: percentile(0.5), P90: percentile(0.9), P99: percentile(0.99), Max: took[len(took)-1],
	}
}
