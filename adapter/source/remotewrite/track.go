package remotewrite

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/value"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// What the times of samples are held to (ms).
const (
	maxAge   = int64(5 * time.Minute / time.Millisecond)  // behind the newest sample of the instance
	maxAhead = int64(10 * time.Second / time.Millisecond) // of the clock
)

// A series that is read gives way to another once it has been silent for this long, or this many of its spacings.
const (
	silence         = int64(30 * time.Second / time.Millisecond)
	silenceSpacings = 5
)

// track is what is known of one instance: which series of its pod is read, and how far.
type track struct {
	identity string // of the series that is read; "" before the first sample
	newest   int64  // time of its newest sample
	spacing  int64  // between its two newest samples
	rival    int64  // time of the newest sample of another series of the pod; 0 without one
	rate     source.Rate
	last     int64   // time of the newest counter reading; 0 before the first
	shown    float64 // by it
	widest   float64 // of the gaps between readings of late (ms)

	failure   error  // for as long as it lasts
	failedAs  result // which kind of
	failedAt  int64  // when it was last put into words
	announced bool   // whether the sink has been told since it was last appended to
}

// take judges a sample and returns what the sink gets of it, if anything.
func (k *track) take(x sample, identity []byte, as source.Type, now int64) (s pipeline.Sample, give bool, r result) {
	if max(k.newest, k.last) > now+maxAhead {
		*k = track{} // the clock was ahead, and has been set back
	}
	switch {
	case value.IsStaleNaN(x.v):
		return s, false, stale
	case math.IsNaN(x.v) || math.IsInf(x.v, 0):
		k.fail(notFinite, min(x.t, now), func() error { return fmt.Errorf("a sample of the pod is %v", x.v) })
		return s, false, notFinite
	case x.t > now+maxAhead:
		k.fail(fromFuture, now, func() error {
			return fmt.Errorf("a sample is dated %s, which is still to come: check the clocks", time.UnixMilli(x.t).UTC().Format(time.RFC3339))
		})
		return s, false, fromFuture
	}
	if !k.own(x.t, identity) {
		return s, false, duplicateSeries
	}
	if x.t < k.newest-maxAge {
		return s, false, tooOld
	}
	contested := k.rival > 0 && x.t-k.rival <= k.patience()
	k.advance(x.t)
	if contested {
		return s, false, duplicateSeries // which of two comes first is chance: neither is given while both come
	}
	if as == source.Gauge {
		return pipeline.Sample{T: x.t, V: x.v}, true, taken
	}
	return k.count(x)
}

func (k *track) advance(t int64) {
	if t <= k.newest {
		return
	}
	if k.newest > 0 {
		k.spacing = t - k.newest
	}
	k.newest = t
}

// patience is how long a series may be silent and is still there (ms).
func (k *track) patience() int64 { return max(silence, silenceSpacings*k.spacing) }

// own tells whether a sample is of the series that is read, which it becomes if there is none any more.
func (k *track) own(t int64, identity []byte) bool {
	if k.identity == string(identity) && k.newest > 0 {
		return true
	}
	if k.newest > 0 && t-k.newest <= k.patience() {
		k.rival = max(k.rival, t)
		k.fail(duplicateSeries, t, func() error {
			read, other := parseIdentity(k.identity), parseIdentity(string(identity))
			return fmt.Errorf("the pod has several series, none of which is read: %s, and another with %s: select one with matchLabels", shorten(read.String()), shorten(difference(read, other)))
		})
		return false
	}
	*k = track{identity: string(identity), newest: t}
	return true
}

// count takes a counter's reading.
func (k *track) count(x sample) (s pipeline.Sample, give bool, r result) {
	if k.last > 0 && x.t <= k.last {
		return s, false, late
	}
	if k.overtaken(x) {
		return s, false, late
	}
	if k.last > 0 && k.last < x.start && x.start < x.t {
		k.rate.Next(pipeline.Sample{T: x.start}) // it was reset then, even if it shows no less than before
	}
	if k.last > 0 {
		k.widest = max(float64(x.t-k.last), k.widest*3/4)
	}
	k.last, k.shown = x.t, x.v
	s, give = k.rate.Next(pipeline.Sample{T: x.t, V: x.v})
	if give && math.IsInf(s.V, 0) {
		return s, false, notFinite
	}
	return s, give, taken
}

// quick is how soon after another a reading that shows less is taken to have been overtaken, while nothing is known of
// how far readings are apart (ms).
const quick = 500

// overtaken tells whether a reading only looks like a reset: two servers that scrape the same pod a moment apart push
// the same series, and the one that began first may have been answered last.
func (k *track) overtaken(x sample) bool {
	return k.last > 0 && x.v < k.shown && x.start <= k.last && float64(x.t-k.last) < max(quick, k.widest/2)
}

// fail keeps a failure. One that lasts is put into words every now and then only.
func (k *track) fail(as result, t int64, why func() error) {
	if k.failure == nil || k.failedAs != as || t-k.failedAt > silence/3 || t < k.failedAt {
		k.failure, k.failedAs, k.failedAt = why(), as, t
	}
	k.announced = false
}

// failing returns the failure that the sink is to be told of, if one lasts.
func (k *track) failing(appended bool) error {
	if k.failure == nil {
		return nil
	}
	if k.newest-k.failedAt > silence {
		k.failure = nil
		return nil
	}
	if k.announced && !appended {
		return nil
	}
	k.announced = true
	return k.failure
}
