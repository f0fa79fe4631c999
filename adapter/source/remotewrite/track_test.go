package remotewrite

import (
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

// subscribed returns a receiver with one subscription of a fleet of web-0.
func subscribed(t *testing.T, c Config) (*receiver, *sourcetest.Recorder) {
	r, sink := newReceiver(), sourcetest.NewRecorder()
	require.NoError(t, r.Set(key("m"), c, newFleet("shop", "web-0"), sink))
	return r, sink
}

const (
	seriesA = "load{job=a,namespace=shop,pod=web-0}"
	seriesB = "load{job=b,namespace=shop,pod=web-0}"
)

func TestOneSeriesIsReadOfEachPod(t *testing.T) {
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			r, sink := subscribed(t, gauge())
			r.at(1000)
			for s := range 3 {
				w := r.push(e, push(seriesB, at(float64(s)+0.5, -1)), push(seriesA, at(float64(s), 1)))
				assert.Equal(t, http.StatusBadRequest, w.Code)
				assert.Contains(t, w.Body.String(), `another with job="b" rather than "a"`)
				assert.Contains(t, sink.Failing("uid-web-0"), `none of which is read: {job="a", namespace="shop", pod="web-0"}, and another with job="b" rather than "a": select one with matchLabels`)
			}
			assert.Equal(t, []float64{1}, sink.Values("uid-web-0"), "none is read once both have come")

			// The sender pushes its series in requests of their own.
			assert.Equal(t, http.StatusBadRequest, r.push(e, push(seriesA, at(3, 1))).Code)
			assert.NotEmpty(t, sink.Failing("uid-web-0"), "it lasts while the other keeps coming")
			assert.Equal(t, http.StatusBadRequest, r.push(e, push(seriesB, at(33, -1))).Code)
			assert.Equal(t, http.StatusNoContent, r.push(e, push(seriesB, at(33.001, 2))).Code, "the first has been silent for long")
			assert.Equal(t, []float64{1, 2}, sink.Values("uid-web-0"))
			assert.Empty(t, sink.Failing("uid-web-0"))
			assert.Equal(t, http.StatusBadRequest, r.push(e, push(seriesA, at(34, -1))).Code)
			assert.Equal(t, 8, r.count(t, "duplicate_series"))
			assert.Equal(t, http.StatusNoContent, r.push(e, push(seriesB, at(64.001, 3))).Code, "the other has been silent for long")
			assert.Equal(t, []float64{1, 2, 3}, sink.Values("uid-web-0"))
		})
	}
}

// Of two senders that push the same counter, the one that began first may have been answered last.
func TestACounterOfTwoSendersIsNotReset(t *testing.T) {
	r, sink := subscribed(t, counter())
	r.at(1000)
	for s := range 5 {
		r.push(encodings[0], push(seriesA, at(float64(s), 100*float64(s)+1000), at(float64(s)+0.1, 100*float64(s)+990)))
	}
	for _, v := range sink.Values("uid-web-0") {
		assert.InDelta(t, 100, v, 1)
	}
	assert.Equal(t, 5, r.count(t, "late"))
	r.push(encodings[0], push(seriesA, at(5, 30)))
	assert.Equal(t, 30.0, sink.Values("uid-web-0")[4], "a reset a second later is one")
}

// A pod whose clock was ahead is read again as soon as the clock is right.
func TestClockSetBack(t *testing.T) {
	r, sink := subscribed(t, gauge())
	r.at(7200)
	r.push(encodings[0], push(seriesA, at(7200, 1)))
	r.at(10)
	assert.Equal(t, http.StatusNoContent, r.push(encodings[0], push(seriesA, at(10, 2))).Code)
	assert.Equal(t, []float64{1, 2}, sink.Values("uid-web-0"))
}

func TestSparseSeriesMayBeSilentForLonger(t *testing.T) {
	r, sink := subscribed(t, gauge())
	r.at(1000)
	r.push(encodings[0], push(seriesA, at(0, 1), at(15, 1)))
	r.push(encodings[0], push(seriesB, at(90, -1)))
	assert.Equal(t, []float64{1, 1}, sink.Values("uid-web-0"))
	r.push(encodings[0], push(seriesB, at(90.001, 2)))
	assert.Equal(t, []float64{1, 1, 2}, sink.Values("uid-web-0"))
}

func TestSamplesOutOfOrder(t *testing.T) {
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			r, sink := subscribed(t, gauge())
			r.at(1000)
			assert.Equal(t, http.StatusNoContent, r.push(e, push(seriesA, at(400, 1))).Code)
			assert.Equal(t, http.StatusNoContent, r.push(e, push(seriesA, at(400, 1), at(100, 2), at(399, 3))).Code)
			w := r.push(e, push(seriesA, at(99.999, 4), at(401, 5)))
			assert.Equal(t, http.StatusBadRequest, w.Code)
			assert.Contains(t, w.Body.String(), "too_old: 1 samples, such as: load of pod web-0: 5m0.001s behind the newest sample")
			assert.Equal(t, []float64{1, 2, 3, 1, 5}, sink.Values("uid-web-0"), "in order of time within a request")
			assert.Equal(t, 1, r.count(t, "too_old"))
		})
	}
}

func TestCounters(t *testing.T) {
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			r, sink := subscribed(t, counter())
			r.at(1000)
			rates := func(want ...float64) {
				t.Helper()
				var got []float64
				for _, s := range sink.Samples("uid-web-0") {
					got = append(got, s.V)
				}
				assert.Equal(t, want, got)
			}
			assert.Equal(t, http.StatusNoContent, r.push(e, push(seriesA, at(0, 100))).Code)
			rates()
			r.push(e, push(seriesA, at(3, 160)), push(seriesA, at(1, 110), at(2, 130)))
			rates(10, 20, 30)
			assert.Equal(t, http.StatusNoContent, r.push(e, push(seriesA, at(1.5, 120), at(3, 160))).Code, "late, which is nobody's fault")
			rates(10, 20, 30)
			assert.Equal(t, 2, r.count(t, "late"))
			r.push(e, push(seriesA, at(5, 20)))
			rates(10, 20, 30, 10)
			r.push(e, push(seriesB, at(40, 1000)))
			rates(10, 20, 30, 10)
			r.push(e, push(seriesB, at(41, 1001)))
			rates(10, 20, 30, 10, 1) // of the other series alone
		})
	}
}

func TestStartTimeShowsAReset(t *testing.T) {
	r, sink := subscribed(t, counter())
	r.at(1000)
	since := func(x sample, seconds float64) sample {
		x.start = start + int64(seconds*1000)
		return x
	}
	r.push(encodings[1], push(seriesA, since(at(0, 100), -50), since(at(1, 110), -50), since(at(3, 120), 2)))
	assert.Equal(t, []pipeline.Sample{{T: start + 1000, V: 10}, {T: start + 3000, V: 120}}, sink.Samples("uid-web-0"))
	r.push(encodings[1], push(seriesA, since(at(4, 125), 2)))
	assert.Equal(t, []float64{10, 120, 5}, sink.Values("uid-web-0"))
}

func TestNonFiniteSamples(t *testing.T) {
	stale := math.Float64frombits(value.StaleNaN)
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			r, sink := subscribed(t, gauge())
			w := r.push(e, push(seriesA, at(0, 1)), push(seriesB, at(0, stale)))
			assert.Equal(t, http.StatusNoContent, w.Code, "that another series has ended is no news")
			assert.Empty(t, sink.Failing("uid-web-0"))
			assert.Equal(t, 1, r.count(t, "stale_marker"))

			for i, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				w = r.push(e, push(seriesA, at(float64(i)+1, v)))
				assert.Equal(t, http.StatusNoContent, w.Code, "the pod is wrong, not the sender")
				assert.Contains(t, sink.Failing("uid-web-0"), "a sample is NaN")
			}
			assert.Equal(t, []float64{1}, sink.Values("uid-web-0"))
			assert.Equal(t, 3, r.count(t, "not_finite"))
		})
	}
}

func TestSamplesFromTheFutureKeepNoState(t *testing.T) {
	for _, c := range []Config{gauge(), counter()} {
		t.Run(string(c.Type), func(t *testing.T) {
			r, sink := subscribed(t, c)
			r.push(encodings[0], push(seriesA, at(-1, 1)))
			w := r.push(encodings[0], push(seriesA, at(3600, 2)))
			assert.Equal(t, http.StatusBadRequest, w.Code)
			assert.Contains(t, sink.Failing("uid-web-0"), "a sample is dated 2027-01-15T09:00:00Z, which is in the future: check the clocks")
			w = r.push(encodings[0], push(seriesA, at(0, 3)))
			assert.Equal(t, http.StatusNoContent, w.Code)
			assert.NotEmpty(t, sink.Samples("uid-web-0"))
		})
	}
}

func TestReportsEachFailureByItsCause(t *testing.T) {
	r, sink := subscribed(t, gauge())
	w := r.push(encodings[0], push(seriesA, at(0, 1), at(60, 2)), push(seriesB, at(1, 3)))
	assert.Contains(t, w.Body.String(), `another with job="b"`)
	assert.Contains(t, w.Body.String(), "a sample is dated 2027-01-15T08:01:00Z")
	assert.Contains(t, sink.Failing("uid-web-0"), "a sample is dated")
	r.push(encodings[0], push(seriesA, at(1, math.NaN())))
	assert.Contains(t, sink.Failing("uid-web-0"), "a sample is NaN")
}

func TestStateIsKeptOnlyOfKnownInstances(t *testing.T) {
	r := newReceiver()
	r.at(1000)
	fleet, sink := newFleet("shop", "web-0"), sourcetest.NewRecorder()
	require.NoError(t, r.Set(key("m"), counter(), fleet, sink))
	u := r.subscriptions[key("m")]
	r.push(encodings[0], push(seriesA, at(0, 1), at(1, 2)), push("load{namespace=shop,pod=web-1}", at(0, 1)))
	assert.Len(t, u.tracks, 1)

	first, second := instance("shop", "web-0"), instance("shop", "web-0")
	first.End = time.UnixMilli(start + 2000)
	second.ID, second.Start = "uid-web-0/2", time.UnixMilli(start+3000)
	fleet.Set(first, second)
	r.push(encodings[0], push(seriesB, at(2, 12), at(3, 20), at(4, 30)), push(seriesA, at(2, 4)))
	assert.Equal(t, []float64{1}, sink.Values("uid-web-0"), "of two series none is read")
	assert.Equal(t, []float64{10}, sink.Values("uid-web-0/2"), "a new instance is counted, and its series chosen, anew")
	assert.Len(t, u.tracks, 2)

	fleet.Set(second)
	assert.Len(t, u.tracks, 1)
	fleet.Set()
	assert.Empty(t, u.tracks)
	assert.Equal(t, http.StatusNoContent, r.push(encodings[0], push(seriesB, at(5, 31))).Code)
	assert.Equal(t, 2, r.count(t, "unknown_pod"))
	assert.Empty(t, u.keyed.takers)
	assert.Empty(t, r.index.known)
}

// What a request holds is given to subscriptions some time after its pods have been found.
func TestSamplesOfAPodDeletedMeanwhile(t *testing.T) {
	r, sink := subscribed(t, gauge())
	u := r.subscriptions[key("m")]
	web := u.members["web-0"]
	give := func(seconds float64) result {
		b := newBatch(r.Source)
		b.now = start
		u.take([]reading{{sample: at(seconds, 1), member: web}}, b)
		return result(slices.Index(b.tally.of[:], 1))
	}
	fleet := u.fleet.(*sourcetest.Fleet)
	first := instance("shop", "web-0")
	second := first
	first.End, second.ID, second.Start = time.UnixMilli(start), "uid-web-0/2", time.UnixMilli(start)
	fleet.Set(first, second)
	assert.Equal(t, taken, give(-1))
	assert.Equal(t, taken, give(0))
	fleet.Set()
	assert.Equal(t, unknownPod, give(1))
	assert.Empty(t, u.tracks)
	fleet.Set(second)
	assert.Equal(t, taken, give(2), "it is looked up")
	assert.Len(t, sink.Samples("uid-web-0"), 1)
	assert.Len(t, sink.Samples("uid-web-0/2"), 2)
}
