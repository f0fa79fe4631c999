package remotewrite

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

// subscribed returns a receiver with one subscription of a fleet of web-0.
func subscribed(c Config) (*receiver, *sourcetest.Recorder) {
	r, sink := newReceiver(), sourcetest.NewRecorder()
	r.Set(key("m"), c, newFleet("shop", "web-0"), sink)
	return r, sink
}

const (
	seriesA = "load{job=a,namespace=shop,pod=web-0}"
	seriesB = "load{job=b,namespace=shop,pod=web-0}"
)

func TestOneSeriesIsReadOfEachPod(t *testing.T) {
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			r, sink := subscribed(gauge())
			r.at(1000)
			for s := range 3 {
				w := r.push(e, push(seriesB, at(float64(s)+0.5, -1)), push(seriesA, at(float64(s), 1)))
				assert.Equal(t, http.StatusBadRequest, w.Code)
				assert.Contains(t, w.Body.String(), `another with job="b" rather than "a"`)
				assert.Contains(t, sink.Failing("uid-web-0"),
					`none of which is read: {job="a", namespace="shop", pod="web-0"}, and another with job="b" rather than "a": select one with matchLabels`)
			}
			assert.Equal(t, []float64{1}, sink.Values("uid-web-0"), "none is read once both have come")

			// The sender pushes its series in requests of their own.
			assert.Equal(t, http.StatusBadRequest, r.push(e, push(seriesA, at(3, 1))).Code)
			assert.NotEmpty(t, sink.Failing("uid-web-0"), "it lasts while the other keeps coming")
			assert.Equal(t, http.StatusBadRequest, r.push(e, push(seriesB, at(33, -1))).Code)
			assert.Equal(t, http.StatusNoContent, r.push(e, push(seriesB, at(33.001, 2))).Code,
				"the first has been silent for long")
			assert.Equal(t, []float64{1, 2}, sink.Values("uid-web-0"))
			assert.Empty(t, sink.Failing("uid-web-0"))
			assert.Equal(t, http.StatusBadRequest, r.push(e, push(seriesA, at(34, -1))).Code)
			assert.Equal(t, 8, r.count(t, "duplicate_series"))
			assert.Equal(t, http.StatusNoContent, r.push(e, push(seriesB, at(64.001, 3))).Code,
				"the other has been silent for long")
			assert.Equal(t, []float64{1, 2, 3}, sink.Values("uid-web-0"))
		})
	}
}

// Of two senders that push the same counter, the one that began first may have been answered last.
func TestACounterOfTwoSendersIsNotReset(t *testing.T) {
	r, sink := subscribed(counter())
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

// TestTheMetadataOfTheSenderDecides has series of remote write 2.0 whose type is not that of the spec, and of 1.0,
// which have none.
func TestTheMetadataOfTheSenderDecides(t *testing.T) {
	declared := func(k decode.Kind) []decode.Sample {
		all := []decode.Sample{at(0, 1000), at(1, 1010)}
		for i := range all {
			all[i].Kind = k
		}
		return all
	}
	for _, test := range []struct {
		c        Config
		declared decode.Kind
		want     []float64 // of version 2
		v1       []float64
	}{
		{gauge(), decode.Gauge, []float64{1000, 1010}, []float64{1000, 1010}},
		{gauge(), decode.Unknown, []float64{1000, 1010}, []float64{1000, 1010}},
		{gauge(), decode.Counter, nil, []float64{1000, 1010}},
		{counter(), decode.Counter, []float64{10}, []float64{10}},
		{counter(), decode.Unknown, []float64{10}, []float64{10}},
		{counter(), decode.Gauge, nil, []float64{10}},
	} {
		for i, want := range [][]float64{test.v1, test.want} {
			r, sink := subscribed(test.c)
			w := r.push(encodings[i], push(seriesA, declared(test.declared)...))
			assert.Equal(t, http.StatusNoContent, w.Code, "the sender is right")
			assert.Equal(t, want, sink.Values("uid-web-0"))
			if want == nil {
				assert.Contains(t, sink.Failing("uid-web-0"), "by its sender: source.remoteWrite.type must be")
				assert.Equal(t, 2, r.count(t, "wrong_type"))
			}
		}
	}
}

// TestRateOfTwoSendersHasALeastInterval has two servers scrape a pod 11 ms apart, one of which is answered three
// seconds later.
func TestRateOfTwoSendersHasALeastInterval(t *testing.T) {
	for _, offset := range []float64{0.011, 0.2, 1} {
		r, sink := subscribed(counter())
		r.at(1000)
		for s := 0.0; s < 200; s += 10 {
			r.push(encodings[0], push(seriesA, at(s, 10*s), at(s+offset, 10*(s+offset+3))))
		}
		values := sink.Values("uid-web-0")
		assert.Greater(t, len(values), 15)
		for _, v := range values[1:] {
			assert.InDelta(t, 10, v, 5, "offset %v", offset)
		}
	}
}

// A pod whose clock was ahead is read again as soon as the clock is right.
func TestClockSetBack(t *testing.T) {
	r, sink := subscribed(gauge())
	r.at(7200)
	r.push(encodings[0], push(seriesA, at(7200, 1)))
	r.at(10)
	assert.Equal(t, http.StatusNoContent, r.push(encodings[0], push(seriesA, at(10, 2))).Code)
	assert.Equal(t, []float64{1, 2}, sink.Values("uid-web-0"))
}

func TestSparseSeriesMayBeSilentForLonger(t *testing.T) {
	r, sink := subscribed(gauge())
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
			r, sink := subscribed(gauge())
			r.at(1000)
			assert.Equal(t, http.StatusNoContent, r.push(e, push(seriesA, at(400, 1))).Code)
			assert.Equal(t, http.StatusNoContent, r.push(e, push(seriesA, at(400, 1), at(100, 2), at(399, 3))).Code)
			w := r.push(e, push(seriesA, at(99.999, 4), at(401, 5)))
			assert.Equal(t, http.StatusBadRequest, w.Code)
			assert.Contains(t, w.Body.String(),
				"too_old: 1 samples, such as: load of pod web-0: 5m0.001s behind the newest sample")
			assert.Equal(t, []float64{1, 2, 3, 1, 5}, sink.Values("uid-web-0"), "in order of time within a request")
			assert.Equal(t, 1, r.count(t, "too_old"))
		})
	}
}

func TestCounters(t *testing.T) {
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			r, sink := subscribed(counter())
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
			assert.Equal(t, http.StatusNoContent, r.push(e, push(seriesA, at(1.5, 120), at(3, 160))).Code,
				"late, which is no one's fault")
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
	r, sink := subscribed(counter())
	r.at(1000)
	since := func(x decode.Sample, seconds float64) decode.Sample {
		x.Start = start + int64(seconds*1000)
		return x
	}
	r.push(encodings[1], push(seriesA, since(at(0, 100), -50), since(at(1, 110), -50), since(at(3, 120), 2)))
	assert.Equal(t, []pipeline.Sample{{T: start + 1000, V: 10}, {T: start + 3000, V: 120}}, sink.Samples("uid-web-0"))
	r.push(encodings[1], push(seriesA, since(at(4, 125), 2)))
	assert.Equal(t, []float64{10, 120, 5}, sink.Values("uid-web-0"))
}

// At each rollout of an exporter its series is replaced by one with other labels. The sender marks the end
// of the old one, from which on the new one is read, however far apart scrapes are.
func TestSeriesAreHandedOverAtTheirEnd(t *testing.T) {
	ended := math.Float64frombits(value.StaleNaN)
	whole := gauge()
	whole.Whole, whole.PodLabel = true, ""
	for name, c := range map[string]Config{"of a pod": gauge(), "of the target": whole} {
		of := "uid-web-0"
		if c.Whole {
			of = source.WholeTarget
		}
		for _, e := range encodings {
			t.Run(name+" "+e.name, func(t *testing.T) {
				r, sink := subscribed(c)
				r.at(1000)
				push1 := func(series string, second, v float64) int {
					return r.push(e, push(series, at(second, v))).Code
				}
				push1(seriesA, 0, 1)
				push1(seriesA, 15, 2)
				require.Equal(t, http.StatusNoContent, push1(seriesA, 30, ended))
				require.Equal(t, http.StatusNoContent, push1(seriesB, 33, 3))
				require.Equal(t, http.StatusNoContent, push1(seriesB, 48, 4))
				assert.Equal(t, []float64{1, 2, 3, 4}, sink.Values(of), "the new one is read at once")

				require.Equal(t, http.StatusBadRequest, push1(seriesA, 60, 50), "the order of two is arbitrary")
				require.Equal(t, http.StatusBadRequest, push1(seriesB, 63, 5))
				push1(seriesB, 70, ended)
				require.Equal(t, http.StatusNoContent, push1(seriesA, 75, 6))
				assert.Equal(t, []float64{1, 2, 3, 4, 6}, sink.Values(of), "read from the end of the other on")

				require.Equal(t, http.StatusBadRequest, push1(seriesB, 80, 50))
				require.Equal(t, http.StatusBadRequest, push1(seriesA, 90, 50))
				push1(seriesB, 85, ended)
				require.Equal(t, http.StatusNoContent, push1(seriesA, 105, 7))
				assert.Equal(t, []float64{1, 2, 3, 4, 6, 7}, sink.Values(of), "the other came for a while")
				assert.Empty(t, sink.Failing(of))

				push1(seriesA, 100, ended)
				require.Equal(t, http.StatusBadRequest, push1(seriesB, 106, 50), "a marker from before is late")
			})
		}
	}
}

// An exporter that is replaced may still be scraped for a while after the new one is.
func TestSeriesMayOverlapAtAHandOver(t *testing.T) {
	r, sink := subscribed(gauge())
	r.at(1000)
	second, n := 0.0, 0
	step := func(series string, code int) {
		assert.Equal(t, code, r.push(encodings[0], push(series, at(second, float64(n)))).Code, "at %g", second)
	}
	for ; second < 150; second, n = second+15, n+1 {
		step(seriesA, http.StatusNoContent)
	}
	for ; second < 240; second, n = second+15, n+1 {
		w := r.push(encodings[0], push(seriesB, at(second, float64(n))))
		assert.Equal(t, http.StatusBadRequest, w.Code)
		assert.Contains(t, w.Body.String(),
			`load of pod web-0: another series of it is read while that goes on: {job="a", `+
				`namespace="shop", pod="web-0"}; this one is with job="b" rather than "a"`)
		assert.Empty(t, sink.Failing("uid-web-0"), "one is read")
		step(seriesA, http.StatusNoContent)
	}
	assert.Len(t, sink.Values("uid-web-0"), n, "the one that has been read for long")
	assert.Empty(t, sink.Failing("uid-web-0"))
	for ; second < 330; second, n = second+15, n+1 {
		w := r.push(encodings[0], push(seriesA, at(second, -1)))
		assert.NotContains(t, w.Body.String(), "nil")
		assert.Equal(t, second > 271, strings.Contains(w.Body.String(), `none of which is read: {job="a"`), w.Body)
		assert.Equal(t, second > 271, sink.Failing("uid-web-0") != "", "at %g", second)
		step(seriesB, http.StatusBadRequest)
	}
	assert.Contains(t, sink.Failing("uid-web-0"),
		`none of which is read: {job="a", namespace="shop", pod="web-0"}, and another with job="b"`)
	assert.Len(t, sink.Values("uid-web-0"), n-3, "after two minutes neither is")
	r.push(encodings[0], push(seriesA, at(second, math.Float64frombits(value.StaleNaN))))
	step(seriesB, http.StatusNoContent)
	assert.Equal(t, float64(n), sink.Values("uid-web-0")[n-3])
}

// A scrape that failed marks the end of a series that goes on. Its counter was not reset.
func TestSeriesGoOnAfterAFailedScrape(t *testing.T) {
	r, sink := subscribed(counter())
	r.at(1000)
	for s, v := range []float64{100, 250, math.Float64frombits(value.StaleNaN), 550, 700} {
		r.push(encodings[0], push(seriesA, at(15*float64(s), v)))
	}
	assert.Equal(t, []float64{10, 10, 10}, sink.Values("uid-web-0"))
}

func TestNonFiniteSamples(t *testing.T) {
	stale := math.Float64frombits(value.StaleNaN)
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			r, sink := subscribed(gauge())
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
			r, sink := subscribed(c)
			r.push(encodings[0], push(seriesA, at(-1, 1)))
			w := r.push(encodings[0], push(seriesA, at(3600, 2)))
			assert.Equal(t, http.StatusBadRequest, w.Code)
			assert.Contains(t, sink.Failing("uid-web-0"),
				"a sample is dated 2027-01-15T09:00:00Z, which is in the future: check the clocks")
			w = r.push(encodings[0], push(seriesA, at(0, 3)))
			assert.Equal(t, http.StatusNoContent, w.Code)
			assert.NotEmpty(t, sink.Samples("uid-web-0"))
		})
	}
}

func TestReportsEachFailureByItsCause(t *testing.T) {
	r, sink := subscribed(gauge())
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
	r.Set(key("m"), counter(), fleet, sink)
	u := r.subscriptions[key("m")]
	r.push(encodings[0], push(seriesA, at(0, 1), at(1, 2)), push("load{namespace=shop,pod=web-1}", at(0, 1)))
	assert.Len(t, u.tracks, 1)

	first, second := instance("shop", "web-0"), instance("shop", "web-0")
	first.End = time.UnixMilli(start + 2000)
	second.ID, second.Start = "uid-web-0/2", time.UnixMilli(start+3000)
	fleet.Set(first, second)
	r.push(encodings[0], push(seriesB, at(2, 12), at(3, 20), at(4, 30)), push(seriesA, at(2, 4)))
	assert.Equal(t, []float64{1}, sink.Values("uid-web-0"), "of two series none is read")
	assert.Equal(t, []float64{10}, sink.Values("uid-web-0/2"),
		"a new instance is counted, and its series chosen, again")
	assert.Len(t, u.tracks, 2)

	fleet.Set(second)
	assert.Len(t, u.tracks, 1)
	fleet.Set()
	assert.Empty(t, u.tracks)
	assert.Equal(t, http.StatusNoContent, r.push(encodings[0], push(seriesB, at(5, 31))).Code)
	assert.Equal(t, 2, r.count(t, "unknown_pod"))
	assert.Empty(t, u.metric.receivers)
	assert.Empty(t, r.index.cached)
}

// What a request holds is given to subscriptions some time after its pods have been found.
func TestSamplesOfAPodDeletedMeanwhile(t *testing.T) {
	r, sink := subscribed(gauge())
	u := r.subscriptions[key("m")]
	web := u.members["web-0"]
	give := func(seconds float64) result {
		got := receipt{now: start}
		u.take(web, []reading{{Sample: at(seconds, 1), member: web}}, &got)
		return result(slices.Index(got.tally.of[:], 1))
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
