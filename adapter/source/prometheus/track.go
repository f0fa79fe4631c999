package prometheus

import (
	"fmt"
	"math"
	"time"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// track keeps which readings of one instance have been taken. Answers overlap, so that late readings are found; each is
// taken once.
type track struct {
	times []int64   // of the newest readings of the last answer, in order (ms)
	seen  time.Time // when the last answer was requested

	// Of counters:
	rate    source.Rate
	spacing int64 // between two readings (ms), 0 = unknown
}

// taken is the outcome of some readings.
type taken struct {
	finite bool  // one of them, new or not, is a number
	err    error // what is wrong with those that are new
}

// take appends the samples of new readings to a buffer. Readings are in order of time; those before from are never
// taken. Times are kept as far back as overlap (ms) from the newest.
func (k *track) take(readings, buffer []pipeline.Sample, from, overlap int64,
	as source.Type) ([]pipeline.Sample, taken) {
	newest := readings[len(readings)-1].T
	if len(k.times) > 0 && newest < k.times[0] {
		*k = track{seen: k.seen, spacing: k.spacing} // the server's clock has been set back: what looks old is new
	}
	var result taken
	bad, fresh := 0, 0
	var last float64
	known := k.times
	for _, x := range readings {
		finite := !math.IsNaN(x.V) && !math.IsInf(x.V, 0)
		result.finite = result.finite || finite
		var old bool
		if old, known = k.has(x.T, known); old || x.T < from {
			continue
		}
		fresh++
		if !finite {
			bad++
			last = x.V
			continue
		}
		if as == source.Counter {
			var ok bool
			if x, ok = k.rate.Next(x, k.spacing/2); !ok { // two servers may scrape a pod a moment apart
				continue
			}
		}
		buffer = append(buffer, x)
	}
	k.keep(readings, newest-overlap)
	if bad > 0 {
		result.err = fmt.Errorf("%d of %d new readings are no finite numbers, the last of them is %v", bad, fresh, last)
	}
	return buffer, result
}

// has returns whether a reading of a time has been taken, or is too late to be, and the rest of known. Callers ask in
// order of time.
func (k *track) has(t int64, known []int64) (bool, []int64) {
	for len(known) > 0 && known[0] < t {
		known = known[1:]
	}
	if len(k.times) > 0 && t < k.times[0] {
		return true, known
	}
	return len(known) > 0 && known[0] == t, known
}

// keep keeps the times of readings since a time, at least that of the newest.
func (k *track) keep(readings []pipeline.Sample, since int64) {
	k.times = k.times[:0]
	for _, x := range readings {
		if x.T >= since {
			k.times = append(k.times, x.T)
		}
	}
}
