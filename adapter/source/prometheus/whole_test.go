package prometheus

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

// wholeOf is a query for the load of a target without pods.
func wholeOf(as source.Type) Config {
	c := gauge()
	c.Whole, c.Type = true, as
	return c
}

func TestSeriesOfTheWholeTargetAreAddedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), func(pod string, second int) float64 {
			return map[string]float64{"gateway-a": 100, "gateway-b": float64(second + 20)}[pod]
		}, "gateway-a", "gateway-b"))
		s := running(t, Options{}, server)
		sink := newRecorder()
		require.NoError(t, s.Set(key("pm"), wholeOf(source.Gauge), fleetOf(), sink))
		sourcetest.Pass(5 * time.Second)
		got := sink.Samples(source.WholeTarget)
		require.NotEmpty(t, got)
		assert.GreaterOrEqual(t, len(got), 14, "the window of the first answer, and one a second since")
		for i, x := range got {
			if i > 0 {
				assert.Equal(t, got[i-1].T+1000, x.T)
				assert.InDelta(t, got[i-1].V+1, x.V, 1e-9)
			}
		}
		assert.InDelta(t, 120, got[len(got)-1].V, 10)
		assert.Empty(t, sink.LastSourceError())
	})
}

func TestCountersOfTheWholeTargetAreRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reset := func(second int) float64 {
			if second > 2 {
				return 30 * float64(second-2)
			}
			return 1000 + 30*float64(second)
		}
		server := answering(growing(time.Now(), func(pod string, second int) float64 {
			return map[string]float64{"a": 20 * float64(second+100), "b": reset(second)}[pod]
		}, "a", "b"))
		s := running(t, Options{}, server)
		sink := newRecorder()
		require.NoError(t, s.Set(key("pm"), wholeOf(source.Counter), fleetOf(), sink))
		sourcetest.Pass(8 * time.Second)
		values := sink.Values(source.WholeTarget)
		require.Greater(t, len(values), 10)
		for _, v := range values {
			assert.InDelta(t, 50, v, 1e-9, "also where one of them was reset")
		}
	})
}

// timeline is readings of one series: seconds and values.
type timeline struct {
	name     string
	readings [][2]float64
}

// sums gives a whole the readings up to each of some seconds, as answers that reach so many seconds back have them.
func sums(as source.Type, spacing, reach int64, answers []int64, lines ...timeline) map[int64]float64 {
	w := &whole{as: as}
	got := map[int64]float64{}
	for _, end := range answers {
		var all []*series
		for _, line := range lines {
			s := &series{labels: model.Metric{"gateway": model.LabelValue(line.name)}, spacing: spacing * 1000}
			for _, x := range line.readings {
				if t := int64(x[0]); t <= end && t > end-reach {
					s.samples = append(s.samples, pipeline.Sample{T: 1_000_000 + t*1000, V: x[1]})
				}
			}
			if len(s.samples) > 0 {
				all = append(all, s)
			}
		}
		for _, x := range w.take(all, spacing*1000, time.Unix(end, 0)) {
			got[(x.T-1_000_000)/1000] = x.V
		}
	}
	return got
}

// every returns readings some seconds apart up to a time, of a gauge that stays, or a counter that
// grows by this a second.
func every(name string, from, to, apart int, value float64, as source.Type) timeline {
	line := timeline{name: name}
	for t := from; t <= to; t += apart {
		v := value
		if as == source.Counter {
			v = 1e6 + value*float64(t)
		}
		line.readings = append(line.readings, [2]float64{float64(t), v})
	}
	return line
}

// seconds returns those at which answers come.
func seconds(end, apart int64) (all []int64) {
	for t := int64(30); t <= end; t += apart {
		all = append(all, t)
	}
	return all
}

// However the phases of scrapes lie to each other, to the queries and to what these reach back, no sum lacks a series.
func TestNoSumLacksASeries(t *testing.T) {
	for _, as := range []source.Type{source.Gauge, source.Counter} {
		for phase := range 15 {
			for late := range 13 {
				answers := make([]int64, 0, 60)
				for end := int64(30); end < 330; end += 5 {
					answers = append(answers, end-int64(late))
				}
				got := sums(as, 15, 35, answers, every("a", 0, 400, 15, 40, as), every("b", phase, 400, 15, 60, as),
					every("c", 14-phase/2, 400, 15, 5, as))
				require.Greater(t, len(got), 15, "%s, phase %d, %d s late", as, phase, late)
				for at, v := range got {
					require.InDelta(t, 105, v, 1e-6, "%s, phase %d, %d s late, at %d", as, phase, late, at)
				}
			}
		}
	}
}

func TestFailedScrapesAreNoFall(t *testing.T) {
	overloaded := every("b", 7, 100, 15, 95, source.Gauge)
	// two scrapes have failed
	overloaded.readings = append(overloaded.readings, every("b", 142, 300, 15, 95, source.Gauge).readings...)
	for at, v := range sums(source.Gauge, 15, 60, seconds(300, 5), every("a", 0, 300, 15, 5, source.Gauge),
		overloaded) {
		require.InDelta(t, 100, v, 0, "at %d", at)
	}
	gone := sums(source.Gauge, 15, 60, seconds(300, 5), every("a", 0, 300, 15, 5, source.Gauge),
		every("b", 7, 100, 15, 95, source.Gauge))
	require.InDelta(t, 100, gone[135], 0, "three of its spacings")
	require.InDelta(t, 5, gone[150], 0)
}

func TestReplacedSeriesDoNotCountTwice(t *testing.T) {
	got := sums(source.Gauge, 15, 60, seconds(300, 5), every("old", 0, 90, 15, 1000, source.Gauge),
		every("new", 120, 300, 15, 1000, source.Gauge))
	for at, v := range got {
		require.InDelta(t, 1000, v, 0, "at %d", at)
	}
	assert.Contains(t, got, int64(120))
}

func TestNewSeriesAreWaitedFor(t *testing.T) {
	got := sums(source.Counter, 15, 60, seconds(300, 5), every("a", 0, 300, 15, 40, source.Counter),
		every("b", 157, 300, 15, 60, source.Counter))
	for at, v := range got {
		want := 40.0
		if at >= 157 {
			want = 100
		}
		require.InDelta(t, want, v, 1e-6, "at %d", at)
	}
	assert.NotContains(t, got, int64(165), "it has been read once")
	assert.Contains(t, got, int64(172))
}

// Two servers that scrape the same counter a moment apart: what the one that began first says last is no reset.
func TestCountersReadTwiceAreNotReset(t *testing.T) {
	line := timeline{name: "a"}
	for s := range 20 {
		v := 1e6 + 50*float64(15*s)
		line.readings = append(line.readings, [2]float64{float64(15 * s), v}, [2]float64{float64(15*s) + 1, v - 1})
	}
	for at, v := range sums(source.Counter, 15, 60, seconds(280, 5), line) {
		require.InDelta(t, 50, v, 1, "at %d", at)
	}
}

func TestClockOfTheServerIsSetBack(t *testing.T) {
	w := &whole{as: source.Gauge}
	at := func(t int64) []*series {
		return []*series{{labels: model.Metric{"a": "b"}, spacing: 1000, samples: []pipeline.Sample{{T: t, V: 7}}}}
	}
	require.Len(t, w.take(at(5_000_000), 1000, time.Unix(0, 0)), 1)
	require.Equal(t, []pipeline.Sample{{T: 2_000_000, V: 7}}, w.take(at(2_000_000), 1000, time.Unix(1, 0)))
}

func TestWholeTargetIsUnknownWhereSeriesMayBeMissing(t *testing.T) {
	for name, c := range map[string]struct {
		answer  func() []fakeSeries
		trouble string
	}{
		"nothing": {answer: func() []fakeSeries { return nil }, trouble: `returns nothing for the last 12s`},
		"other namespaces": {answer: func() []fakeSeries {
			return []fakeSeries{pod("a", 1).label("namespace",
				"bank")}
		},
			trouble: "only series of other namespaces (1)"},
		"no number": {answer: func() []fakeSeries {
			return []fakeSeries{pod("a", 1, 2), pod("b", 1).with(time.Second, 0, math.NaN())}
		}, trouble: "a value of a series is NaN"},
		"no load": {answer: func() []fakeSeries { return []fakeSeries{pod("a", 100, 100), pod("b", -1, -1)} },
			trouble: "a value of a series is -1: must be 0 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := running(t, Options{}, answering(c.answer))
				sink := newRecorder()
				require.NoError(t, s.Set(key("pm"), wholeOf(source.Gauge), fleetOf("a"), sink))
				sourcetest.Pass(2 * time.Second)
				require.Contains(t, sink.LastSourceError(), c.trouble)
				assert.Empty(t, sink.Values(source.WholeTarget))
			})
		})
	}
}

// timed returns series that are read every 15 s for a minute, each at a millisecond of its own, and one that is
// read twice within a millisecond.
func timed(from int64, n int, name string) []*series {
	all := make([]*series, 0, n+1)
	for i := range int64(n) {
		s := &series{labels: model.Metric{"pod": model.LabelValue(fmt.Sprint(name, i))}, spacing: 15_000}
		for k := range int64(4) {
			s.samples = append(s.samples, pipeline.Sample{T: from + 15_000*k + i, V: 1})
		}
		all = append(all, s)
	}
	twice := &series{labels: model.Metric{"pod": "twice"}, spacing: 1}
	twice.samples = []pipeline.Sample{{T: from, V: 1}, {T: from + 1, V: 1}}
	return append(all, twice)
}

// Series may have times of their own, and readings as close as they like.
func TestCloseReadingsMakeNoMoreSums(t *testing.T) {
	w := &whole{as: source.Gauge, label: "pod"}
	got := w.take(timed(1_000_000, 1000, "a"), 15_000, time.Unix(0, 0))
	require.NotEmpty(t, got)
	for i, x := range got[1:] {
		require.GreaterOrEqual(t, x.T-got[i].T, int64(750))
	}
}

// BenchmarkWhole takes an answer in which as many series as in the one before have begun, each at a time of its own.
func BenchmarkWhole(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		for name, state := range map[string]podtracker.PodState{
			"unknown": podtracker.PodUnknown, "leaving": podtracker.PodLeaving,
		} {
			b.Run(fmt.Sprintf("series=%d/old=%s", n, name), func(b *testing.B) {
				before, after := timed(1_000_000, n, "a"), timed(1_060_000, n, "b")
				b.ReportAllocs()
				for b.Loop() {
					pods := func(name string) podtracker.PodState {
						if name[0] == 'a' {
							return state
						}
						return podtracker.PodUnknown
					}
					w := &whole{as: source.Gauge, label: "pod"}
					w.take(before, 15_000, time.Unix(0, 0))
					w.pods = pods
					w.take(after, 15_000, time.Unix(60, 0))
				}
			})
		}
	}
}

// An exporter says -1 now and then. After a restart, an answer that reaches back to such a value is taken without
// it, and so are those after it; the value is reported.
func TestOneImpossibleValueWithholdsNoSums(t *testing.T) {
	for _, as := range []source.Type{source.Gauge, source.Counter} {
		for _, bad := range []float64{-1, math.NaN()} {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				server := answering(growing(began, func(pod string, second int) float64 {
					if pod == "b" && (second+4)%8 == 0 { // each window has one
						return bad
					}
					if as == source.Counter {
						return 1000 + 50*float64(second+20)
					}
					return 50
				}, "a", "b"))
				s := running(t, Options{}, server)
				sink := newRecorder()
				require.NoError(t, s.Set(key("pm"), wholeOf(as), fleetOf(), sink))
				sourcetest.Pass(30 * time.Second)
				values := sink.Values(source.WholeTarget)
				require.Greater(t, len(values), 30, "%s, %v", as, bad)
				for _, v := range values {
					require.InDelta(t, 100, v, 1e-9, "%s, %v", as, bad)
				}
				require.Contains(t, strings.Join(sink.SourceErrors(), "\n"), "a value of a series is "+number(bad))
			})
		}
	}
}

// TestRoundingOfZeroIsNoTrouble has a recording rule subtract two equal sums of bytes.
func TestRoundingOfZeroIsNoTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zero := -1.1920928955078125e-07
		all := []fakeSeries{pod("a", 1e9, 1e9), pod("b", zero, zero)}
		s := running(t, Options{}, answering(func() []fakeSeries { return all }))
		sink := newRecorder()
		require.NoError(t, s.Set(key("pm"), wholeOf(source.Gauge), fleetOf("a"), sink))
		sourcetest.Pass(2 * time.Second)
		assert.Empty(t, sink.LastSourceError())
		assert.NotEmpty(t, sink.Values(source.WholeTarget))
	})
}

func TestWholeTargetTakesPlainSelectorsAlone(t *testing.T) {
	s := New(Options{})
	c := wholeOf(source.Gauge)
	c.Query = "sum(load)"
	err := s.Set(key("pm"), c, fleetOf(), newRecorder())
	require.ErrorContains(t, err, "whose series are added up")
}

// brokenSums returns the sums over a minute in which some exporters say -1 from 15 s on, and the last error.
func brokenSums(t *testing.T, as source.Type, loads map[string]float64,
	broken ...string) (values []float64, trouble string) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), func(pod string, second int) float64 {
			switch {
			case second >= 15 && slices.Contains(broken, pod):
				return -1
			case as == source.Counter:
				return 1000 + loads[pod]*float64(second+20)
			}
			return loads[pod]
		}, slices.Sorted(maps.Keys(loads))...))
		s := running(t, Options{}, server)
		sink := newRecorder()
		require.NoError(t, s.Set(key("pm"), wholeOf(as), fleetOf(), sink))
		sourcetest.Pass(75 * time.Second)
		values, trouble = sink.Values(source.WholeTarget), sink.LastSourceError()
	})
	return values, trouble
}

// One of fifty exporters is broken permanently: its load is estimated, and named. It is as much as the others have on
// average, or the multiple of that which it was.
func TestABrokenExporterWithholdsNoSums(t *testing.T) {
	fifty := map[string]float64{"large": 400}
	for i := range 49 {
		fifty[fmt.Sprint("gateway-", i)] = 20
	}
	for _, as := range []source.Type{source.Gauge, source.Counter} {
		for _, name := range []string{"gateway-7", "large"} {
			values, trouble := brokenSums(t, as, fifty, name)
			require.Greater(t, len(values), 70, "%s, %s", as, name)
			for i, v := range values {
				require.InDelta(t, 49*20+400, v, 1e-6, "%s, %s, sum %d", as, name, i)
			}
			require.Contains(t, trouble, "a value of a series is -1")
			require.Contains(t, trouble, name)
			require.Contains(t, trouble, "is estimated")
		}
	}
}

// Where the larger part of a load is unknown, so is the load.
func TestALoadOfBrokenExportersIsUnknown(t *testing.T) {
	for name, loads := range map[string]map[string]float64{
		"the only one":       {"a": 10},
		"the largest one":    {"a": 10, "b": 2, "c": 2},
		"one that had loads": {"a": 10, "b": 0, "c": 0},
	} {
		values, trouble := brokenSums(t, source.Gauge, loads, "a")
		require.LessOrEqual(t, len(values), 10+15+30+1, "%s: it counts on for 30 s", name)
		for _, v := range values {
			require.GreaterOrEqual(t, v, 10.0, name)
		}
		require.Contains(t, trouble, "the load is unknown", name)
	}
}
