package prometheus

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

// ones returns n values.
func ones(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// Two pods carried the load with a third that had gone before we began. If their history were taken whole, the load
// would seem to have risen by half when the third went.
func TestPodsDeletedBeforeStartCauseNoRise(t *testing.T) {
	tests := map[string]struct {
		others func() []fakeSeries
		want   int // samples of each pod of the fleet, of 11
	}{
		"no one left":                  {func() []fakeSeries { return nil }, 11},
		"a stranger still there: wait": {func() []fakeSeries { return []fakeSeries{pod("x", ones(11)...)} }, 0},
		"one left": {func() []fakeSeries {
			return []fakeSeries{pod("x").with(time.Second, 4*time.Second, ones(5)...)}
		}, 4},
		"one left with a last reading": {func() []fakeSeries {
			return []fakeSeries{pod("x").with(time.Second, 4*time.Second, 1)}
		}, 4},
		"the last of several counts": {func() []fakeSeries {
			return []fakeSeries{pod("x").with(time.Second, 3*time.Second, ones(5)...),
				pod("y").with(time.Second, 7*time.Second, ones(3)...)}
		}, 3},
		"missed twice: wait": {func() []fakeSeries {
			return []fakeSeries{pod("x").with(time.Second, 2*time.Second, ones(5)...)}
		}, 0},
		"of its own long spacing: wait": {func() []fakeSeries {
			return []fakeSeries{pod("x").with(3*time.Second, 5*time.Second, ones(2)...)}
		}, 0},
		"of another namespace": {func() []fakeSeries {
			return []fakeSeries{pod("x").with(time.Second, 4*time.Second, ones(5)...).label("namespace", "bank")}
		}, 11},
		"of the same name as a pod that started since": {func() []fakeSeries {
			return []fakeSeries{pod("young").label("instance", "1"),
				pod("young").with(time.Second, 5*time.Second, ones(5)...)}
		}, 5},
		"of the fleet, and silent since": {func() []fakeSeries {
			return []fakeSeries{pod("c").with(time.Second, 4*time.Second, ones(5)...)}
		}, 11},
		"dated ahead: wait": {func() []fakeSeries {
			return []fakeSeries{pod("x").with(time.Second, -time.Hour, ones(5)...),
				pod("y").with(time.Second, -time.Minute, ones(5)...)}
		}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				young := instance("young")
				young.Start = time.Now().Add(-3 * time.Second)
				fleet := sourcetest.NewFleet(instance("a"), instance("b"), instance("c"), young)
				body := matrix(append(test.others(), pod("a", ones(11)...), pod("b", ones(11)...))...)
				sink := once(t, saying(http.StatusOK, body), fleet)
				assert.Len(t, sink.of("a"), test.want)
				assert.Len(t, sink.of("b"), test.want)
				assert.Empty(t, sink.of("x"))
			})
		})
	}
}

// A stranger that goes on is someone else's, and costs two spacings; one that does not had just left, and what was
// before is left out.
func TestBackfillWithPodsOfOtherApplications(t *testing.T) {
	for name, goesOn := range map[string]bool{"goes on": true, "had just left": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				own, stranger := growing(began, constant, "a"), growing(began, constant, "x")
				last := stranger()
				server := answering(func() []fakeSeries {
					if goesOn {
						return append(own(), stranger()...)
					}
					return append(own(), last...)
				})
				s, sink := running(t, Options{}, server), newRecorder()
				require.NoError(t, s.Set(key("pm"), gauge(), fleetOf("a"), sink))
				sourcetest.Pass(2 * time.Second)
				assert.Empty(t, sink.of("a"), "no one can tell yet")
				assert.Empty(t, sink.LastSourceError())
				sourcetest.Pass(4 * time.Second)
				require.NotEmpty(t, sink.of("a"))
				first := sink.of("a")[0].T
				if goesOn {
					assert.Less(t, first, began.UnixMilli(), "the window is taken whole")
				} else {
					assert.Greater(t, first, began.UnixMilli())
				}
				inOrder(t, sink.of("a"), len(sink.of("a")), time.Second)
			})
		})
	}
}

// A pod that is there and not Ready any more is still scraped, and what it carried is no one's.
func TestHistoryBeginsWhenTheLastPodBecameUnready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := sourcetest.NewFleet(instance("a"), instance("b"))
		fleet.Unready = time.Now().Add(-5 * time.Second)
		sink := once(t, saying(http.StatusOK, matrix(pod("a", ones(11)...), pod("b", ones(11)...))), fleet)
		assert.Len(t, sink.of("a"), 5)
	})
}

// What was left out of the first answer stays out of the next ones, and a counter begins behind it.
func TestExcludedHistoryStaysExcluded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		all := growing(began, func(_ string, second int) float64 { return 3 * float64(100+second) }, "a")
		left := pod("x").with(time.Second, 4*time.Second, ones(5)...)
		server := answering(func() []fakeSeries { return append(all(), left) })
		s := running(t, Options{}, server)
		sink := newRecorder()
		c := gauge()
		c.Type = source.Counter
		require.NoError(t, s.Set(key("pm"), c, fleetOf("a"), sink))
		sourcetest.Pass(2 * time.Second)
		require.NotEmpty(t, sink.of("a"))
		assert.Equal(t, began.Add(-2*time.Second).UnixMilli(), sink.of("a")[0].T,
			"the first rate is between the second reading and the first that is taken")
		sourcetest.Pass(5 * time.Second)
		inOrder(t, sink.of("a"), len(sink.of("a")), time.Second)
		for _, v := range sink.values("a") {
			assert.Equal(t, 3.0, v)
		}
	})
}

// The fleet knows the pods that leave while it is followed: their samples are taken, and nothing is left out.
func TestPodsDeletedLaterAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := instance("x")
		ended.End = time.Now().Add(-5 * time.Second)
		body := matrix(pod("a", ones(11)...), pod("x").with(time.Second, 5*time.Second, ones(6)...))
		sink := once(t, saying(http.StatusOK, body), sourcetest.NewFleet(instance("a"), ended))
		assert.Len(t, sink.of("a"), 11)
		assert.Len(t, sink.of("x"), 6)
	})
}

// Without pods there is no one to take samples for; as the first come, the window is requested.
func TestBackfillWaitsForPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), constant, "a"))
		s := running(t, Options{}, server)
		fleet, sink := sourcetest.NewFleet(), newRecorder()
		require.NoError(t, s.Set(key("pm"), gauge(), fleet, sink))
		sourcetest.Pass(5 * time.Second)
		assert.Empty(t, sink.of("a"))
		assert.Equal(t, 3, server.spans()[len(server.spans())-1])
		fleet.Set(instance("a"))
		sourcetest.Pass(time.Second)
		assert.Len(t, sink.of("a"), 12)
	})
}

// A server's clock that is ahead shows: it is the sink that refuses samples from the future. Once the clock has been
// set back, samples come again at once.
func TestServerClockAhead(t *testing.T) {
	for _, as := range []source.Type{source.Gauge, source.Counter} {
		t.Run(string(as), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ahead := func() time.Duration {
					if time.Since(began) < 5*time.Second {
						return time.Hour
					}
					return 0
				}
				server := newServer(func(int, asked) (int, io.Reader, error) {
					now := time.Now().Truncate(time.Second).Add(ahead())
					a := pod("a")
					for i := range 3 {
						at := now.Add(time.Duration(i-2) * time.Second)
						a.samples = append(a.samples,
							pipeline.Sample{T: at.UnixMilli(), V: float64(at.Sub(began) / time.Second)})
					}
					return http.StatusOK, strings.NewReader(matrix(a)), nil
				})
				s := running(t, Options{}, server)
				sink := newRecorder()
				c := gauge()
				c.Type = as
				require.NoError(t, s.Set(key("pm"), c, fleetOf("a"), sink))
				sourcetest.Pass(4 * time.Second)
				require.NotEmpty(t, sink.of("a"))
				for _, x := range sink.of("a") {
					assert.Greater(t, x.T, began.Add(59*time.Minute).UnixMilli())
				}
				before := len(sink.of("a"))
				sourcetest.Pass(5 * time.Second)
				after := sink.of("a")[before+1:]
				require.GreaterOrEqual(t, len(after), 4)
				for _, x := range after {
					assert.LessOrEqual(t, x.T, time.Now().UnixMilli())
					if as == source.Counter {
						assert.Equal(t, 1.0, x.V)
					}
				}
				assert.Empty(t, sink.LastSourceError())
			})
		})
	}
}

func TestStartOfHistoryIsDroppedWhenTheClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := matrix(pod("a").with(time.Second, -time.Hour, ones(11)...),
			pod("x").with(time.Second, 5*time.Second-time.Hour, ones(3)...))
		began := time.Now()
		right := answering(growing(began, constant, "a"))
		server := newServer(func(n int, q asked) (int, io.Reader, error) {
			if n == 0 {
				return http.StatusOK, strings.NewReader(ahead), nil
			}
			return right.answer(n, q)
		})
		s := running(t, Options{}, server)
		sink := newRecorder()
		require.NoError(t, s.Set(key("pm"), gauge(), fleetOf("a"), sink))
		sourcetest.Pass(5 * time.Second)
		assert.GreaterOrEqual(t, len(sink.of("a")), 5+4)
		assert.InDelta(t, time.Now().UnixMilli(), sink.of("a")[len(sink.of("a"))-1].T, 2000)
	})
}

func TestTrackTakesEachReadingOnce(t *testing.T) {
	at := func(seconds ...int64) []pipeline.Sample {
		var out []pipeline.Sample
		for _, s := range seconds {
			out = append(out, pipeline.Sample{T: s * 1000, V: float64(10 * s)})
		}
		return out
	}
	tests := map[string]struct {
		answers [][]int64
		from    int64
		gauge   []int64 // times of samples, in order of arrival
		counter []int64
	}{
		"overlapping": {[][]int64{{1, 2, 3}, {2, 3, 4}, {3, 4, 5}}, 0,
			[]int64{1, 2, 3, 4, 5}, []int64{2, 3, 4, 5}},
		"the same":          {[][]int64{{1, 2}, {1, 2}}, 0, []int64{1, 2}, []int64{2}},
		"one that was late": {[][]int64{{1, 2, 4}, {2, 3, 4, 5}}, 0, []int64{1, 2, 4, 3, 5}, []int64{2, 4, 5}},
		"one that was too late": {[][]int64{{1, 3, 4, 5, 6, 7}, {2, 7, 8}}, 0,
			[]int64{1, 3, 4, 5, 6, 7, 8}, []int64{3, 4, 5, 6, 7, 8}},
		"a gap":                    {[][]int64{{1, 2}, {20, 21}}, 0, []int64{1, 2, 20, 21}, []int64{2, 20, 21}},
		"not before the beginning": {[][]int64{{1, 2, 3}, {2, 3, 4}}, 3000, []int64{3, 4}, []int64{4}},
		"the clock set back": {[][]int64{{100, 101, 102}, {50, 51}, {51, 52}}, 0,
			[]int64{100, 101, 102, 50, 51, 52}, []int64{101, 102, 51, 52}},
		"a little of an old range": {[][]int64{{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6, 7}}, 0,
			[]int64{1, 2, 3, 4, 5, 6, 7}, []int64{2, 3, 4, 5, 6, 7}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for as, want := range map[source.Type][]int64{source.Gauge: test.gauge, source.Counter: test.counter} {
				k := &track{}
				var got []int64
				for _, seconds := range test.answers {
					samples, taken := k.take(at(seconds...), nil, test.from, 3000, as)
					require.NoError(t, taken.err)
					for _, x := range samples {
						got = append(got, x.T/1000)
						if as == source.Counter {
							assert.Equal(t, 10.0, x.V)
						}
					}
				}
				assert.Equal(t, want, got, as)
			}
		})
	}
}

// Two servers behind one address scrape the same counter a moment apart. What one of them says is no reset of what the
// other said, whoever was answered first.
func TestServersBehindOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		server := newServer(func(n int, q asked) (int, io.Reader, error) {
			a := pod("a")
			for i := -5; ; i++ {
				at := began.Add(time.Duration(i) * time.Second)
				v := float64(1000 + 10*i)
				if n%2 == 1 { // scrapes 20 ms later, but is answered earlier
					at, v = at.Add(20*time.Millisecond), v-1
				}
				if at.After(time.Now()) {
					break
				}
				if time.Since(at) < q.span {
					a.samples = append(a.samples, pipeline.Sample{T: at.UnixMilli(), V: v})
				}
			}
			return http.StatusOK, strings.NewReader(matrix(a)), nil
		})
		s := running(t, Options{}, server)
		sink := newRecorder()
		c := gauge()
		c.Type = source.Counter
		require.NoError(t, s.Set(key("pm"), c, fleetOf("a"), sink))
		sourcetest.Pass(10 * time.Second)
		require.GreaterOrEqual(t, len(sink.of("a")), 12)
		for _, v := range sink.values("a") {
			assert.InDelta(t, 10, v, 1.5)
		}
	})
}

func TestTracksAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), constant, "a"))
		s := running(t, Options{}, server)
		fleet, sink := sourcetest.NewFleet(instance("a")), newRecorder()
		require.NoError(t, s.Set(key("pm"), gauge(), fleet, sink))
		sourcetest.Pass(2 * time.Second)
		tracks := func() int {
			u := s.subscriptions[key("pm")]
			u.mu.Lock()
			defer u.mu.Unlock()
			return len(u.tracks)
		}
		assert.Equal(t, 1, tracks())
		fleet.Set(podtracker.Instance{ID: "uid-b", Pod: key("b"), Start: time.Now()})
		sourcetest.Pass(20 * time.Second)
		assert.Equal(t, 1, tracks(), "its samples might come again")
		sourcetest.Pass(6 * time.Second)
		assert.Zero(t, tracks())
	})
}
