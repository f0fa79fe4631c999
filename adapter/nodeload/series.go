package nodeload

import (
	"math"
	"time"

	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// series is what is known of one resource of one node.
type series struct {
	samples []pipeline.Sample // in order of time, which is unique; those of the window and one before
	window  time.Duration     // of the newest sample
	changed bool              // since use was worked out
	use     snapshot.Use
}

// limits are what a sample may be.
type limits struct {
	now    int64 // ms
	ahead  int64 // it may be dated after now by this much, as clocks differ (ms)
	window int64 // that is kept (ms)
	gap    int64 // the longest between samples that is bridged (ms)
	forget int64 // the age of the newest at which all are forgotten (ms)
	most   int   // samples that are kept
}

// refusal is why a sample is not taken, "" if it is.
type refusal string

const (
	badValue refusal = "value" // not a number, negative, or more than any node has
	future   refusal = "future"
	tooOld   refusal = "old"
)

func refusals() []refusal { return []refusal{badValue, future, tooOld} }

// most is more than any node has of a resource.
func (r Resource) most() float64 {
	if r == CPU {
		return 1e6 // cores
	}
	return 1e18 // bytes
}

// judge tells why a sample is not to be taken.
func (l *limits) judge(s pipeline.Sample, r Resource) refusal {
	switch {
	case !(s.V >= 0 && s.V <= r.most()): // a NaN is neither
		return badValue
	case s.T > l.now+l.ahead:
		return future
	case s.T <= l.now-l.window:
		return tooOld
	default:
		return ""
	}
}

// add takes a sample that has been judged. One that is known already changes nothing; of two that differ the later counts.
func (s *series) add(x pipeline.Sample, l *limits) {
	at := len(s.samples)
	for at > 0 && s.samples[at-1].T > x.T { // mostly it is the newest
		at--
	}
	switch {
	case at > 0 && s.samples[at-1] == x:
		return
	case at > 0 && s.samples[at-1].T == x.T:
		s.samples[at-1] = x
	default:
		if at = s.makeRoom(at, l.most); at < 0 {
			return
		}
		s.samples = append(s.samples, x)
		copy(s.samples[at+1:], s.samples[at:])
		s.samples[at] = x
	}
	s.changed = true
}

// makeRoom lets go of the oldest sample if there are as many as there may be, and returns where one goes that was to go to
// at; -1 if that is older than all others.
func (s *series) makeRoom(at, most int) int {
	if s.samples == nil {
		s.samples = make([]pipeline.Sample, 0, most)
	}
	if len(s.samples) < most {
		return at
	}
	if at > 0 {
		s.samples = s.samples[:copy(s.samples, s.samples[1:])]
	}
	return at - 1
}

// tidy forgets what the limits exclude by now: what is before the window, what is in the future since the clock was set
// back, and everything if the newest sample is too old.
func (s *series) tidy(l *limits) {
	n := len(s.samples)
	for n > 0 && s.samples[n-1].T > l.now+l.ahead {
		n--
		s.changed = true
	}
	if n == 0 || l.now-s.samples[n-1].T > l.forget {
		*s = series{samples: s.samples[:0]}
		return
	}
	drop := 0
	for drop+1 < n && s.samples[drop+1].T <= l.now-l.window {
		drop++
	}
	s.samples = s.samples[:copy(s.samples, s.samples[drop:n])]
}

// unbroken returns the samples after the last gap that is not to be bridged: what was before says nothing of how the use has
// come to be what it is.
func (s *series) unbroken(gap int64) []pipeline.Sample {
	for i := len(s.samples) - 1; i > 0; i-- {
		if s.samples[i].T-s.samples[i-1].T > gap {
			return s.samples[i:]
		}
	}
	return s.samples
}

// newest returns the newest sample.
func (s *series) newest() pipeline.Sample {
	if len(s.samples) == 0 {
		return pipeline.Sample{T: math.MinInt64}
	}
	return s.samples[len(s.samples)-1]
}
