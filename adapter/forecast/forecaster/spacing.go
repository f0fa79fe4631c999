package forecaster

import (
	"math"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// delayTime is the time constant of the mean delay: one late batch says little about a source.
const delayTime = time.Minute

// spacing measures how dense and how late samples are. The configured interval does not say: a
// Prometheus server that is queried each second has nothing newer than its last scrape.
type spacing struct {
	apart float64 // mean time between two samples of an instance within the window (ms), 0 = not known
	late  float64 // mean age of the newest sample when a forecast is made (ms)
	at    int64   // when late was last updated (ms), 0 = never
}

// measure takes the samples of a forecast made now, and the time of the newest of them.
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
		s.late += (age - s.late) * -math.Expm1(-float64(now-s.at)/float64(delayTime.Milliseconds()))
	}
	s.at = now
}

func (s *spacing) interval() time.Duration { return time.Duration(s.apart * float64(time.Millisecond)) }
func (s *spacing) delay() time.Duration    { return time.Duration(s.late * float64(time.Millisecond)) }
