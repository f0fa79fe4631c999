package remotewrite

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/value"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
	"github.com/foresail/foresail/pipeline"
)

// Limits of the times of samples (ms).
const (
	maxAge   = int64(5 * time.Minute / time.Millisecond)  // behind the newest sample of the instance
	maxAhead = int64(10 * time.Second / time.Millisecond) // of the clock
)

// A series that is read gives way to another once it has been silent for this long, or this many of its spacings.
const (
	silence         = int64(30 * time.Second / time.Millisecond)
	silenceSpacings = 5
)

// track is the state of one instance: which series of its pod is read, and how far.
type track struct {
	receiver source.Receiver
	identity string // of the series that is read; "" before the first sample
	first    int64  // time of its first sample since
	newest   int64  // time of its newest sample
	ended    bool   // its sender has announced its end, so that another series may take over at once
	spacing  int64  // between its two newest samples
	rivals   []rival
	rate     source.Rate
	last     int64   // time of the newest counter reading; 0 before the first
	widest   float64 // of the gaps between readings of late (ms)

	failure   error  // for as long as it lasts
	failedAs  result // which kind of
	failedAt  int64  // when its text was made
	announced bool   // whether it was reported since the last Append
}

// rival is another series of the pod than the one that is read.
type rival struct {
	identity      string
	first, newest int64 // times of its samples
}

const (
	// maxRivals is how many are kept: while there are several, none is read anyway.
	maxRivals = 4
	// overlap is how long a series that has been read for as long goes on to be read while another one has
	// samples as well: an exporter that is replaced may be scraped until after the new one is (ms).
	overlap = int64(2 * time.Minute / time.Millisecond)
)

// take checks a sample and returns the sample for the sink, if any.
func (k *track) take(x decode.Sample, identity []byte, c *Config, now int64) (s pipeline.Sample, give bool, r result) {
	if max(k.newest, k.last) > now+maxAhead {
		*k = track{receiver: k.receiver} // the clock was ahead, and has been set back
	}
	switch {
	case value.IsStaleNaN(x.V):
		k.end(x.T, identity)
		return s, false, stale
	case math.IsNaN(x.V) || math.IsInf(x.V, 0):
		k.fail(notFinite, min(x.T, now), func() error { return fmt.Errorf("a sample is %v", x.V) })
		return s, false, notFinite
	case x.T > now+maxAhead:
		k.fail(fromFuture, now, func() error {
			return fmt.Errorf("a sample is dated %s, which is in the future: check the clocks",
				time.UnixMilli(x.T).UTC().Format(time.RFC3339))
		})
		return s, false, fromFuture
	case conflict(x.Kind, c) != nil:
		k.fail(wrongType, x.T, func() error { return conflict(x.Kind, c) })
		return s, false, wrongType
	}
	if !k.own(x.T, identity) {
		return s, false, duplicateSeries
	}
	if x.T < k.newest-maxAge {
		return s, false, tooOld
	}
	contested := k.contested(x.T)
	k.advance(x.T)
	if contested { // their order is arbitrary: neither is taken while both arrive
		k.fail(duplicateSeries, x.T, func() error { return k.duplicate(x.T, identity) })
		return s, false, duplicateSeries
	}
	k.settle()
	if c.Type == source.Gauge {
		return pipeline.Sample{T: x.T, V: x.V}, true, taken
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

// maxSilence is how long a series may lack samples before another one may replace it (ms).
func (k *track) maxSilence() int64 { return max(silence, silenceSpacings*k.spacing) }

// conflict returns why a series of a kind cannot be read as c has it, nil if it can.
func conflict(k decode.Kind, c *Config) error {
	switch {
	case k == decode.Counter && c.Type == source.Gauge:
		return fmt.Errorf("%s is a counter by its sender: source.remoteWrite.type must be Counter, "+
			"as the value of a counter is not a load, its rate is", c.Metric)
	case k == decode.Gauge && c.Type == source.Counter:
		return fmt.Errorf("%s is a gauge by its sender: source.remoteWrite.type must be Gauge, as a gauge has no rate; "+
			"have the sender declare a counter (OTLP: a monotonic sum) if its value never falls", c.Metric)
	}
	return nil
}

// own reports whether a sample belongs to the series that is read. If there is none any more, it is this one from now
// on.
func (k *track) own(t int64, identity []byte) bool {
	if k.identity == string(identity) && k.newest > 0 {
		k.ended = k.ended && t < k.newest // its end was that of a scrape that failed
		return true
	}
	if k.newest > 0 && !k.ended && t-k.newest <= k.maxSilence() {
		k.challenge(t, identity)
		if k.contested(t) {
			k.fail(duplicateSeries, t, func() error { return k.duplicate(t, identity) })
		}
		return false
	}
	k.yield(identity)
	*k = track{receiver: k.receiver, identity: string(identity), first: t, newest: t, rivals: k.rivals}
	return true
}

// end takes the announcement that a series has no more samples for now: its target is gone, or could not
// be scraped. A marker that is older than a sample of the series is late.
func (k *track) end(t int64, identity []byte) {
	if k.identity == string(identity) {
		k.ended = k.ended || t >= k.newest
		return
	}
	k.rivals = slices.DeleteFunc(k.rivals, func(r rival) bool {
		return r.identity == string(identity) && r.newest <= t
	})
	if len(k.rivals) == 0 {
		k.settle()
	}
}

// settle ends the failure that no series is read.
func (k *track) settle() {
	if k.failedAs == duplicateSeries {
		k.failure = nil
	}
}

// duplicate describes why a sample of a series is not taken, as there is another one.
func (k *track) duplicate(t int64, identity []byte) error {
	other := string(identity)
	if other == k.identity && len(k.rivals) > 0 {
		other = k.rivals[0].identity
	}
	read := decode.ParseIdentity(k.identity)
	difference := shorten(decode.Difference(read, decode.ParseIdentity(other)))
	if k.contested(t) {
		return fmt.Errorf("it has several series, none of which is read: %s, and another with %s: "+
			"select one with matchLabels", shorten(read.String()), difference)
	}
	return fmt.Errorf("another series of it is read while that goes on: %s; this one is with %s",
		shorten(read.String()), difference)
}

// challenge keeps the time of a sample of another series than the one that is read.
func (k *track) challenge(t int64, identity []byte) {
	for i := range k.rivals {
		if r := &k.rivals[i]; r.identity == string(identity) {
			r.newest = max(r.newest, t)
			return
		}
	}
	if len(k.rivals) < maxRivals {
		k.rivals = append(k.rivals, rival{string(identity), t, t})
	}
}

// yield makes a rival the series that is read.
func (k *track) yield(identity []byte) {
	k.rivals = slices.DeleteFunc(k.rivals, func(r rival) bool { return r.identity == string(identity) })
}

// contested reports whether another series has samples as well, so that neither is read at a time: which
// of them came first is arbitrary, unless one has been read for long.
func (k *track) contested(t int64) bool {
	silence := k.maxSilence()
	k.rivals = slices.DeleteFunc(k.rivals, func(r rival) bool { return t-r.newest > silence })
	return slices.ContainsFunc(k.rivals, func(r rival) bool {
		return r.first-k.first < overlap || t-r.first > overlap
	})
}

// count handles the reading of a counter.
func (k *track) count(x decode.Sample) (s pipeline.Sample, give bool, r result) {
	if k.last > 0 && x.T <= k.last {
		return s, false, late
	}
	least := k.least()
	if k.last > 0 && x.Start <= k.last && x.T-k.last < least {
		return s, false, late
	}
	if k.last > 0 && k.last < x.Start && x.Start < x.T {
		k.rate.Reset(x.Start) // even if it shows no less than before
	}
	if k.last > 0 {
		k.widest = max(float64(x.T-k.last), k.widest*3/4)
	}
	k.last = x.T
	s, give = k.rate.Next(pipeline.Sample{T: x.T, V: x.V}, least)
	if give && math.IsInf(s.V, 0) {
		return s, false, notFinite
	}
	return s, give, taken
}

// quick is the least time between two readings while their spacing is unknown (ms).
const quick = 500

// least returns the least time between two readings that a rate is taken over (ms). If two servers scrape a pod a
// moment apart and push the same series, the one that began first may be answered last.
func (k *track) least() int64 {
	if k.widest == 0 {
		return quick
	}
	return int64(k.widest / 2)
}

// fail keeps a failure. The text of a lasting one is renewed only every now and then.
func (k *track) fail(as result, t int64, why func() error) {
	if k.failure == nil || k.failedAs != as || t-k.failedAt > silence/3 || t < k.failedAt {
		k.failure, k.failedAs, k.failedAt = why(), as, t
	}
	k.announced = false
}

// failing returns the failure to report to the sink, if one lasts.
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
