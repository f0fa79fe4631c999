package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

const (
	podA, podB, podC = "web-7d4b9f6c8-aaaaa", "web-7d4b9f6c8-bbbbb", "web-5c689d88bb-ccccc"
	historySpan      = 8 * 24 * time.Hour
)

// names of pods have no vowels.
func named(pod string) string {
	return strings.NewReplacer("aaaaa", "x2kzl", "bbbbb", "x2kzm", "ccccc", "x2kzn").Replace(pod)
}

// stored is what a server has of a pod: the mean of the minute that ends so long ago; false if it has none.
type stored struct {
	labels map[string]string
	mean   func(ago time.Duration) (float64, bool)
}

// of is what a server has of a pod of the namespace shop.
func of(pod string, mean func(ago time.Duration) (float64, bool)) stored {
	return stored{map[string]string{"pod": named(pod), "namespace": "shop"}, mean}
}

func (s stored) with(label, value string) stored {
	labels := map[string]string{label: value}
	for k, v := range s.labels {
		if k != label {
			labels[k] = v
		}
	}
	return stored{labels, s.mean}
}

// always is a pod that was always there.
func always(v float64) func(time.Duration) (float64, bool) {
	return func(time.Duration) (float64, bool) { return v, true }
}

// between is a pod that was there from one time to another.
func between(from, to time.Duration, v float64) func(time.Duration) (float64, bool) {
	return func(ago time.Duration) (float64, bool) { return v, ago <= from && ago > to }
}

// keeping returns a server that answers range queries by what it has, and others with the pods that are there now.
func keeping(all ...stored) *fakeServer {
	began := time.Now()
	return newServer(func(_ int, q asked) (int, io.Reader, error) {
		if !q.form.Has("start") {
			return http.StatusOK, strings.NewReader(matrix(live(all)...)), nil
		}
		start, end, step := unixOf(q, "start"), unixOf(q, "end"), unixOf(q, "step")
		var out []fakeSeries
		for _, s := range all {
			x := fakeSeries{labels: s.labels}
			for at := start; at <= end; at += step {
				if v, ok := s.mean(began.Sub(time.Unix(at, 0))); ok {
					x.samples = append(x.samples, pipeline.Sample{T: at * 1000, V: v})
				}
			}
			if len(x.samples) > 0 {
				out = append(out, x)
			}
		}
		return http.StatusOK, strings.NewReader(matrix(out...)), nil
	})
}

func live(all []stored) (out []fakeSeries) {
	for _, s := range all {
		if v, ok := s.mean(0); ok {
			x := pod("", v, v, v)
			x.labels = s.labels
			out = append(out, x)
		}
	}
	return out
}

func unixOf(q asked, field string) int64 {
	v, err := strconv.ParseFloat(q.form.Get(field), 64)
	if err != nil {
		panic(err)
	}
	return int64(v)
}

// ranges are the range queries of a server.
func (f *fakeServer) ranges() []asked {
	return slices.DeleteFunc(f.queries(), func(q asked) bool { return !q.form.Has("start") })
}

func deployment() Config {
	c := gauge()
	c.Interval, c.Window = 5*time.Second, time.Minute
	c.Target, c.TargetName = schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web"
	return c
}

func adaptiveParams() pipeline.Params {
	p := pipeline.AdaptiveParams()
	p.Threshold, p.Max = 0.7, 20
	return p
}

// historyOf reads the history of a Deployment with some ready pods, after the first live query.
func historyOf(t *testing.T, server *fakeServer, c Config, p pipeline.Params, pods ...string) (source.History, error) {
	t.Helper()
	s, _ := set(t, server, c, pods...)
	return s.History(t.Context(), key("pm"), &p, historySpan)
}

// set has a source read live what a server has.
func set(t *testing.T, server *fakeServer, c Config, pods ...string) (*Source, *sourcetest.Fleet) {
	t.Helper()
	s := running(t, Options{}, server)
	var names []string
	for _, pod := range pods {
		names = append(names, named(pod))
	}
	fleet := fleetOf(names...)
	require.NoError(t, s.Set(key("pm"), c, fleet, newRecorder()))
	sourcetest.Pass(10 * time.Second)
	return s, fleet
}

// at is the mean of the minute that ended so long before the end of the history.
func at(h source.History, ago time.Duration) float64 {
	return h.Minutes[len(h.Minutes)-1-int(ago/time.Minute)].Mean
}

// inBubble runs a test at a whole minute of virtual time.
func inBubble(t *testing.T, do func(*testing.T)) {
	t.Helper()
	synctest.Test(t, do)
}

// TestHistory: all pods that were the target's add up, in bounded queries from the newest on, with time between them.
func TestHistory(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		began := time.Now()
		server := keeping(
			of(podA, always(0.5)),
			of(podB, between(historySpan, 48*time.Hour, 0.25)),
			of(podC, between(48*time.Hour, -time.Hour, 0.125)), // it replaced b
		)
		h, err := historyOf(t, server, deployment(), adaptiveParams(), podA, podC)
		require.NoError(t, err)
		require.Len(t, h.Minutes, 8*24*60)
		end := time.UnixMilli(h.Begin).Add(historySpan)
		assert.Zero(t, h.Begin%60_000)
		assert.InDelta(t, 5*time.Minute, began.Sub(end), float64(time.Minute))
		assert.InDelta(t, historySpan, h.Known(), float64(10*time.Minute))
		for ago := time.Duration(0); ago < 8*24*time.Hour-15*time.Minute; ago += time.Minute {
			switch before := began.Sub(end) + ago; {
			case before < 48*time.Hour-time.Minute:
				require.InDelta(t, 0.625, at(h, ago), 1e-12, "%s", before)
			case before > 48*time.Hour+time.Minute:
				require.InDelta(t, 0.75, at(h, ago), 1e-12, "%s", before)
			default:
				require.InDelta(t, 0.6, at(h, ago), 0.16, "b, or c, or b before c counts: %s", before)
			}
		}
		asked := server.ranges()
		require.Len(t, asked, 8)
		require.Equal(t, h.Queries, len(asked))
		assert.InDelta(t, 2*8*24*60, h.Points, 10)
		for i, q := range asked {
			assert.Equal(
				t, `avg_over_time(load{namespace="shop",pod=~"web-[456789bcdf]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}"}[60s])`,
				q.query)
			assert.LessOrEqual(t, (unixOf(q, "end")-unixOf(q, "start"))/60, int64(24*60))
			assert.Equal(t, "60", q.form.Get("step"))
			assert.Equal(t, "10001", q.form.Get("limit"))
			if i > 0 {
				assert.Equal(t, unixOf(asked[i-1], "start")-60, unixOf(q, "end"), "each minute once")
				assert.GreaterOrEqual(t, q.at-asked[i-1].at, historyPause)
			}
		}
	})
}

// TestHistoryOfLargeFleets: the more pods, the shorter the queries.
func TestHistoryOfLargeFleets(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var all []stored
		var names []string
		for i := range 90 {
			name := fmt.Sprintf("web-7d4b9f6c8-%s",
				strings.NewReplacer("0", "b", "1", "c", "3", "d").Replace(fmt.Sprintf("%05d", i)))
			names = append(names, name)
			all = append(all, of(name, always(0.5)))
		}
		server := keeping(all...)
		h, err := historyOf(t, server, deployment(), adaptiveParams(), names...)
		require.NoError(t, err)
		require.InDelta(t, 45, at(h, time.Hour), 1e-9)
		for _, q := range server.ranges() {
			require.LessOrEqual(t, 90*(unixOf(q, "end")-unixOf(q, "start"))/60, int64(piecePoints))
		}
	})
}

// TestHistoryIsOfTheTargetAlone: what others did is left out, and nothing is read where no one can say whose it was.
func TestHistoryIsOfTheTargetAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		others := []stored{
			of(podA, always(0.5)),
			of("web-api-7d4b9f6c8-ccccc", always(100)),
			of("web-0", always(100)),
			of(podB, always(100)).with("namespace", "bank"),
			{map[string]string{"namespace": "shop"}, always(100)},
		}
		h, err := historyOf(t, keeping(others...), deployment(), adaptiveParams(), podA)
		require.NoError(t, err)
		assert.InDelta(t, 0.5, at(h, time.Hour), 1e-12)
	})
	for name, c := range map[string]struct {
		change func(*Config)
		pods   []string
		want   string
	}{
		"a kind whose pods have any name": {func(c *Config) { c.Target.Kind, c.Target.Group = "Game", "example.com" },
			[]string{podA}, "pods of the kind Game.example.com may have any name"},
		"a selector that takes in other pods": {func(*Config) {}, []string{podA, "worker-5c689d88bb-ccccc"},
			"the pod worker-5c689d88bb-x2kzn of the target is not named as one of the Deployment web"},
		"a pod of such a name that is another's": {func(*Config) {}, []string{podA},
			"the pod web-7d4b9f6c8-x2kzm is named as one of the target, but is none of its ready pods"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				config := deployment()
				c.change(&config)
				h, err := historyOf(t, keeping(of(podA, always(0.5)), of(podB, always(0.5))), config, adaptiveParams(),
					c.pods...)
				require.ErrorIs(t, err, source.ErrAmbiguous)
				require.ErrorContains(t, err, c.want)
				require.Zero(t, h.Known())
			})
		})
	}
}

// TestHistoryOfPodsThatCameAndWent: nothing that was not read is a load of zero, and what replaces
// a pod is not counted in addition to it.
func TestHistoryOfPodsThatCameAndWent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		without := func(v float64, gaps ...[2]int) func(time.Duration) (float64, bool) {
			return func(ago time.Duration) (float64, bool) {
				for _, gap := range gaps {
					if m := int(ago / time.Minute); gap[0] <= m && m < gap[1] {
						return 0, false
					}
				}
				return v, true
			}
		}
		h, err := historyOf(t, keeping(
			// silent; away; nothing was read
			of(podA, without(0.5, [2]int{100, 102}, [2]int{200, 230}, [2]int{400, 430})),
			of(podB, without(0.25, [2]int{400, 430}, [2]int{4000, 12_000})),
		), deployment(), adaptiveParams(), podA, podB)
		require.NoError(t, err)
		end := time.Since(time.UnixMilli(h.Begin).Add(historySpan))
		minuteAgo := func(m int) float64 { return at(h, (time.Duration(m)*time.Minute - end).Truncate(time.Minute)) }
		unknown := 0
		for m := 96; m < 106; m++ {
			if v := minuteAgo(m); math.IsNaN(v) {
				unknown++
			} else {
				require.InDelta(t, 0.75, v, 1e-12, "%d", m)
			}
		}
		assert.Equal(t, 2, unknown, "one pod was not read: its load is unknown")
		assert.InDelta(t, 0.25, minuteAgo(215), 1e-12, "a pod was away")
		assert.True(t, math.IsNaN(minuteAgo(415)), "nothing was read")
		assert.InDelta(t, 0.75, minuteAgo(300), 1e-12)
		assert.InDelta(t, 0.5, minuteAgo(5000), 1e-12, "it was younger")
		assert.InDelta(t, 0.75, minuteAgo(3000), 1e-12)
	})
}

// TestHistoryOfModels: the query and the load follow from the model and the type of the metric.
func TestHistoryOfModels(t *testing.T) {
	for name, c := range map[string]struct {
		as     source.Type
		model  pipeline.Model
		query  string
		stored float64
		want   float64
	}{
		"linear": {source.Gauge, pipeline.Model{Kind: pipeline.Linear}, "avg_over_time(%s[60s])", 0.5, 1},
		"overhead": {source.Gauge, pipeline.Model{Kind: pipeline.Overhead, Baseline: 0.1},
			"avg_over_time(%s[60s])", 0.5, 0.8},
		"below the baseline": {source.Gauge, pipeline.Model{Kind: pipeline.Overhead, Baseline: 0.1},
			"avg_over_time(%s[60s])", 0.05, 0},
		"quadratic": {source.Gauge, pipeline.Model{Kind: pipeline.Quadratic},
			"avg_over_time(%[1]s[60s]) ^ 2 + stdvar_over_time(%[1]s[60s])", 0.25, 0.5},
		"counter":            {source.Counter, pipeline.Model{Kind: pipeline.Linear}, "rate(%s[60s])", 0.5, 1},
		"counter, quadratic": {source.Counter, pipeline.Model{Kind: pipeline.Quadratic}, "rate(%s[60s]) ^ 2", 0.5, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				server := keeping(of(podA, always(c.stored)), of(podB, always(c.stored)))
				config, p := deployment(), adaptiveParams()
				config.Type, p.Model = c.as, c.model
				h, err := historyOf(t, server, config, p, podA, podB)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf(c.query,
					`load{namespace="shop",pod=~"web-[456789bcdf]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}"}`), server.ranges()[0].query)
				require.InDelta(t, c.want, at(h, time.Hour), 1e-12)
			})
		})
	}
}

// TestHistoryOfPodsThatReadTheirMaximum: their load was at least so much.
func TestHistoryOfPodsThatReadTheirMaximum(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := adaptiveParams()
		p.Saturation = pipeline.Saturation{Enabled: true, Max: 1, Zone: 0.02}
		h, err := historyOf(t, keeping(of(podA, always(0.99)), of(podB, always(0.4))), deployment(), p, podA, podB)
		require.NoError(t, err)
		require.InDelta(t, 1.39, at(h, time.Hour), 1e-12)
		require.True(t, h.Minutes[len(h.Minutes)-61].Clipped)
	})
}

// TestHistoryOfTheWholeTarget: all series of the query are its load, whatever their labels.
func TestHistoryOfTheWholeTarget(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := deployment()
		c.Whole, c.Type, c.Target = true, source.Counter, schema.GroupKind{Group: "example.com", Kind: "Game"}
		gateway := func(name string) map[string]string {
			return map[string]string{"namespace": "shop",
				"gateway": name}
		}
		server := keeping(stored{gateway("a"), always(100)}, stored{gateway("b"), always(20)})
		p := adaptiveParams()
		p.Whole = true
		h, err := historyOf(t, server, c, p)
		require.NoError(t, err)
		require.InDelta(t, 120, at(h, time.Hour), 1e-12)
		require.Equal(t, `rate(load{namespace="shop"}[60s])`, server.ranges()[0].query)
	})
}

// TestGarbageInHistories: values that are no load leave their minutes unknown, and times that were
// not asked for are left out.
func TestGarbageInHistories(t *testing.T) {
	ok := of(podA, always(0.5))
	now := 90 * time.Minute
	spoilt := func(v float64) func(time.Duration) (float64, bool) {
		return func(ago time.Duration) (float64, bool) {
			if ago > now && ago < now+3*time.Minute {
				return v, true
			}
			return 0.25, true
		}
	}
	for name, c := range map[string]struct {
		all     []stored
		want    float64 // before and after
		problem string
	}{
		"NaN":              {[]stored{ok, of(podB, spoilt(math.NaN()))}, 0.75, ""},
		"infinite":         {[]stored{ok, of(podB, spoilt(math.Inf(1)))}, 0.75, ""},
		"too large to add": {[]stored{of(podA, spoilt(math.MaxFloat64)), of(podB, spoilt(math.MaxFloat64))}, 0.5, ""},
		"twice for a while": {[]stored{ok, of(podB, always(0.25)),
			of(podB, between(now+2*time.Minute, now, 3)).with("container", "x")}, 0.75,
			"the pod web-7d4b9f6c8-x2kzm has several series"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h, err := historyOf(t, keeping(c.all...), deployment(), adaptiveParams(), podA, podB)
				if c.problem == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, c.problem)
				}
				unknown := 0
				for ago := time.Duration(0); ago < historySpan-time.Hour; ago += time.Minute {
					if v := at(h, ago); math.IsNaN(v) {
						unknown++
					} else {
						require.InDelta(t, c.want, v, 1e-12)
					}
				}
				require.InDelta(t, 2, unknown, 1, "%d minutes", unknown)
			})
		})
	}
	for name, body := range map[string]string{
		"out of order, twice, and of other times": `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"namespace":"shop","pod":"` + named(podA) + `"},"values":[` +
			`[99999999999,"7"],[0,"7"],[-5,"7"],[946684200.5,"7"],[946684200,"0.5"],[946684200,"0.5"]]}]}}`,
		"histograms": `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"namespace":"shop","pod":"` +
			named(podA) + `"},"histograms":[[946684200,{"count":"1","sum":"1"}]]}]}}`,
		"a vector":  `{"status":"success","data":{"resultType":"vector","result":[]}}`,
		"no answer": `<html>login</html>`,
		"nothing":   `{"status":"success","data":{"resultType":"matrix","result":[]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h, _ := historyOf(t, saying(http.StatusOK, body), deployment(), adaptiveParams(), podA)
				require.Zero(t, h.Known())
			})
		})
	}
}

func TestRoundingOfZeroIsAMinuteWithoutLoad(t *testing.T) {
	p := pipeline.AdaptiveParams()
	p.Threshold, p.Max = 1e9, 20
	for _, kind := range []pipeline.ModelKind{pipeline.Linear, pipeline.Quadratic} {
		p.Model.Kind = kind
		load, _ := loadOf(&p, source.Gauge)(-1.1920928955078125e-07)
		assert.InDelta(t, 0, load, 0, kind)
		load, _ = loadOf(&p, source.Gauge)(-1)
		assert.True(t, math.IsNaN(load), kind)
	}
}

// TestServersThatFailHistories: a query that may have asked for too much is tried with less, no
// more often than that may help. TestMinutesThatCannotBeALoadAreUnknown has means of minutes that
// spoil what is added up.
func TestMinutesThatCannotBeALoadAreUnknown(t *testing.T) {
	p := pipeline.AdaptiveParams()
	p.Threshold, p.Max = 0.7, 20
	p.Saturation = pipeline.Saturation{Enabled: true, Max: 1, Zone: 0.02}
	for _, v := range []float64{-1, 2, math.NaN(), math.Inf(1)} {
		sums := newMinuteSums(2, loadOf(&p, source.Gauge))
		part := sums.piece(0, 2)
		for at := range 2 {
			part.add("a", at, 0.5)
			part.add("b", at, []float64{v, 0.5}[at])
		}
		part.end()
		sums.count(pending{0, 0.5})
		sums.count(pending{0, v})
		sums.count(pending{1, 0.5})
		minutes := sums.minutes(0)
		assert.True(t, math.IsNaN(minutes[0].Mean), v)
		assert.False(t, math.IsNaN(minutes[1].Mean), v)
	}
}

func TestServersThatFailHistories(t *testing.T) {
	tooMany := `{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"}`
	longer := func(q asked, minutes int64) bool {
		return q.form.Has("start") && (unixOf(q, "end")-unixOf(q, "start"))/60 >= minutes
	}
	for name, c := range map[string]struct {
		fails   func(q asked) (int, string, error)
		queries int // at most
		known   time.Duration
		problem string
	}{
		"of more than six hours": {func(q asked) (int, string, error) {
			if longer(q, 361) {
				return http.StatusUnprocessableEntity, tooMany, nil
			}
			return 0, "", nil
		}, 34, historySpan, ""},
		"all": {func(q asked) (int, string, error) {
			if longer(q, 0) {
				return http.StatusUnprocessableEntity, tooMany, nil
			}
			return 0, "", nil
		}, 4, 0, "too many samples"},
		"connections": {func(q asked) (int, string, error) {
			if longer(q, 0) {
				return 0, "", errors.New("connection refused")
			}
			return 0, "", nil
		}, 1, 0, "connection refused"},
		"of more than two days ago": {func(q asked) (int, string, error) {
			if q.form.Has("start") && time.Since(time.Unix(unixOf(q, "start"), 0)) > 48*time.Hour {
				return http.StatusUnprocessableEntity, tooMany, nil
			}
			return 0, "", nil
		}, 16, 47 * time.Hour, "too many samples"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				server := keeping(of(podA, always(0.5)))
				answer := server.answer
				server.answer = func(n int, q asked) (int, io.Reader, error) {
					if status, body, err := c.fails(q); status != 0 || err != nil {
						return status, strings.NewReader(body), err
					}
					return answer(n, q)
				}
				h, err := historyOf(t, server, deployment(), adaptiveParams(), podA)
				if c.problem == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, c.problem)
				}
				assert.LessOrEqual(t, len(server.ranges()), c.queries)
				assert.InDelta(t, c.known.Hours(), h.Known().Hours(), 1)
				if h.Known() > 0 {
					assert.InDelta(t, 0.5, at(h, time.Hour), 1e-12)
				}
			})
		})
	}
}

// TestWarningsInHistories: an answer that may be incomplete is no load.
func TestWarningsInHistories(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		server := keeping(of(podA, always(0.5)))
		answer := server.answer
		var ranges atomic.Int32
		server.answer = func(n int, q asked) (int, io.Reader, error) {
			status, body, err := answer(n, q)
			if q.form.Has("start") && ranges.Add(1) == 2 {
				text, _ := io.ReadAll(body)
				body = strings.NewReader(strings.Replace(string(text), `{"status"`,
					`{"warnings":["a store is down"],"status"`, 1))
			}
			return status, body, err
		}
		h, err := historyOf(t, server, deployment(), adaptiveParams(), podA)
		require.ErrorContains(t, err, "a store is down")
		assert.True(t, math.IsNaN(at(h, 30*time.Hour)))
		assert.InDelta(t, 0.5, at(h, 12*time.Hour), 1e-12)
		assert.InDelta(t, 0.5, at(h, 60*time.Hour), 1e-12)
	})
}

// TestHistoriesGiveWay: live queries go first, one server is asked one thing at a time, and a
// reader that ends leaves its turn to others.
func TestHistoriesGiveWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		server := keeping(of(podA, always(0.5)))
		s, _ := set(t, server, deployment(), podA)
		p := adaptiveParams()
		v := only(s.groups).server
		live := v.slots.Lease("shop", nil)
		require.NoError(t, live.Take(t.Context(), v.slots.Total()))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		read := func(ctx context.Context) {
			_, err := s.History(ctx, key("pm"), &p, historySpan)
			done <- err
		}
		go read(ctx)
		sourcetest.Pass(time.Minute)
		require.Empty(t, server.ranges(), "all slots are taken by live queries")
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)

		live.End()
		server.mu.Lock()
		server.hang = time.Second
		server.mu.Unlock()
		ctx, cancel = context.WithCancel(t.Context())
		go read(ctx)
		go read(t.Context())
		sourcetest.Pass(3 * time.Second)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		require.NoError(t, <-done)
		asked := server.ranges()
		for i := range asked[1:] {
			require.GreaterOrEqual(t, asked[i+1].at-asked[i].at, time.Second, "one after the other")
		}
		_, err := s.History(t.Context(), key("other"), &p, historySpan)
		require.Error(t, err)
	})
}

// TestRareSamplesOfHistories: means are of so many minutes that they have samples, and in their middle.
func TestRareSamplesOfHistories(t *testing.T) {
	for name, c := range map[string]struct {
		spacing time.Duration
		as      source.Type
		over    string
	}{
		"30s":      {30 * time.Second, source.Gauge, "[60s]"},
		"1m":       {time.Minute, source.Gauge, "[120s]"},
		"rate":     {30 * time.Second, source.Counter, "[120s]"},
		"too rare": {3 * time.Minute, source.Gauge, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				server := keeping(of(podA, always(0.5)))
				answer := server.answer
				server.answer = func(n int, q asked) (int, io.Reader, error) {
					if !q.form.Has("start") {
						return http.StatusOK, strings.NewReader(matrix(pod(named(podA)).with(c.spacing, 0, 1, 1,
							1))), nil
					}
					return answer(n, q)
				}
				config := deployment()
				config.Type = c.as
				h, err := historyOf(t, server, config, adaptiveParams(), podA)
				if c.over == "" {
					require.ErrorContains(t, err, "too far for means of minutes")
					return
				}
				require.NoError(t, err)
				require.Contains(t, server.ranges()[0].query, c.over)
				require.Greater(t, h.Known(), historySpan-time.Hour)
				require.Zero(t, h.Begin%60_000)
			})
		})
	}
}
