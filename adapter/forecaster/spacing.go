package forecaster

import (
	"math"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// settling is the time constant of the mean lateness: one late batch says little of a source.
const settling = time.Minute

// spacing knows how dense and how late samples are, as they show it themselves. What a source is set to does not tell:
// a Prometheus server that is asked each second has nothing newer than its last scrape.
type spacing struct {
	apart float64 // mean time between two samples of an instance within the window (ms), 0 = not known
	late  float64 // mean age of the newest sample when a forecast is made (ms)
	at    int64   // when late was last brought up to date (ms), 0 = never
}

// measure takes the samples that a forecast is made of at a time, the newest of which is given.
func (s *spacing) measure(all []pipeline.Instance, now, newest int64) {
	span, gaps := int64(0), 0
	for i := range all {
		if n := len(all[i].Samples); n > 1 {
			span += all[i].Samples[n-1].T - all[i].Samples[0].T
			gaps += n - 1
		}
	}
	if gaps > 0 {
		s.apart = float64(span) / float64(gaps)
	}
	if newest == 0 {
		return
	}
	age := max(0, float64(now-newest))
	if s.at == 0 {
		s.late = age
	} else {
		s.late += (age - s.late) * -math.Expm1(-float64(now-s.at)/float64(settling.Milliseconds()))
	}
	s.at = now
}

func (s *spacing) interval() time.Duration { return time.Duration(s.apart * float64(time.Millisecond)) }
func (s *spacing) lateness() time.Duration { return time.Duration(s.late * float64(time.Millisecond)) }
