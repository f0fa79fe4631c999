package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/adapter/serving/servingtest"
	"github.com/foresail/foresail/pipeline"
)

func at(now time.Time) func() time.Time { return func() time.Time { return now } }

// rising is a snapshot of a load that needs two replicas more.
func rising(name string) snapshot.Snapshot {
	return servingtest.Changed(servingtest.Healthy(name, "checkout"), func(s *snapshot.Snapshot) {
		s.Forecast.Level, s.Forecast.Total, s.Forecast.PlannedLoad = 2.4, 3.6, 3.8
		s.Forecast.LoadNow, s.Forecast.LoadPredicted, s.Forecast.Target = 0.6, 0.9, 4
		s.Forecast.Horizon = 30 * time.Second
		s.Forecast.Decision = pipeline.Decision{Direction: pipeline.Rising, Desired: 6, Action: pipeline.ScaleUp,
			Reason: pipeline.AboveThreshold}
		s.Forecast.Holds = 4.2
		s.Forecast.Need = pipeline.Need{Load: 3.8, Margin: 0.2, PerInstance: 0.7, Min: 5.33, Max: 5.8}
		s.Decision = s.Forecast.Decision
		s.Combined = snapshot.Combined{Desired: 6, DrivenBy: name, Metrics: 1}
		s.Ready, s.Source, s.SampleInterval, s.StartupTime, s.StartupsMeasured = 4, "pods", time.Second, 20*time.Second, 3
		s.Learned, s.Lateness = 2*time.Hour, 0.01
		s.Accuracy.LastDay = pipeline.Score{Judged: time.Hour, Error: 1, Naive: 2, LateKnown: time.Hour, Late: 0.02}
	})
}

// unread is a snapshot without a forecast.
func unread(name string) snapshot.Snapshot {
	return servingtest.Changed(servingtest.Healthy(name, "cart"), func(s *snapshot.Snapshot) {
		s.Err = &snapshot.Unavailable{Reason: snapshot.WaitingForSamples, Message: "no sample has been read yet"}
	})
}

func get(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func decoded(t *testing.T, h http.Handler, path string) map[string]any {
	t.Helper()
	code, body := get(t, h, path)
	require.Equal(t, http.StatusOK, code, body)
	var answer map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	return answer
}

func TestShapeOfTheFleet(t *testing.T) {
	d := New(servingtest.NewMemory(rising("checkout"), unread("cart")), at(servingtest.Now))
	answer := decoded(t, d.Handler(), MetricsPath)
	assert.Equal(t, map[string]any{
		"time": "2026-03-01T12:00:00Z", "matching": 2.0, "offset": 0.0, "limit": 50.0,
		"summary": map[string]any{"metrics": 2.0, "unavailable": 1.0, "scalingUp": 1.0, "scalingDown": 0.0,
			"atMaximum": 0.0, "late": 1.0},
		"items": []any{
			map[string]any{
				"namespace": "shop", "name": "cart", "targetKind": "Deployment", "targetName": "cart",
				"available": false,
				"reason":    "WaitingForSamples",
				"cause":     "no sample has been read yet", "lateKnownSeconds": 0.0, "lateJudged": false,
				"loadPerPod": nil, "predictedPerPod": nil, "threshold": 0.7, "ready": 10.0, "replicas": nil,
				"desired":        nil,
				"learnedSeconds": 0.0, "lateRatio": nil, "atMaximumRatio": nil, "lateness": 0.0,
			},
			map[string]any{
				"namespace": "shop", "name": "checkout", "targetKind": "Deployment", "targetName": "checkout",
				"available": true, "reason": "AboveThreshold",
				"lateKnownSeconds": 3600.0, "lateJudged": true,
				"loadPerPod": 0.6, "predictedPerPod": 0.9, "threshold": 0.7, "ready": 4.0, "replicas": 4.0,
				"desired":        6.0,
				"learnedSeconds": 7200.0, "lateRatio": 0.02, "atMaximumRatio": 0.0, "lateness": 0.01,
			},
		},
	}, answer)
}

func TestShapeOfADetail(t *testing.T) {
	m := servingtest.NewMemory(rising("checkout"))
	d := New(m, at(servingtest.Now))
	d.record()
	m.Publish(servingtest.Changed(unread("checkout"), func(s *snapshot.Snapshot) { s.TargetName = "checkout" }))
	d.now = at(servingtest.Now.Add(5 * time.Second))
	d.record()
	m.Publish(servingtest.Changed(rising("checkout"), func(s *snapshot.Snapshot) {
		s.At, s.NewestSample, s.ReplicasLost = servingtest.Now.Add(10*time.Second), servingtest.Now.Add(8*time.Second),
			servingtest.Now.Add(-time.Minute)
	}))
	d.now = at(servingtest.Now.Add(10 * time.Second))
	d.record()
	m.Publish(rising("checkout"))

	answer := decoded(t, d.Handler(), MetricsPath+"/shop/checkout")
	const sentence = "6 replicas instead of 4: planned load 3.8 (forecast 3.6 in 30s + margin 0.2) / threshold 0.7 = 5.43 replicas"
	assert.Equal(t, map[string]any{
		"at": []any{1772366400.0, 1772366405.0, 1772366410.0}, "level": []any{2.4, nil, 2.4},
		"total":    []any{3.6, nil, 3.6},
		"planned":  []any{3.8, nil, 3.8},
		"capacity": []any{2.8, nil, 2.8}, "loadPerPod": []any{0.6, nil, 0.6}, "predictedPerPod": []any{0.9, nil, 0.9},
		"threshold": []any{0.7, 0.7, 0.7},
		"ready":     []any{4.0, 10.0, 4.0}, "replicas": []any{4.0, nil, 4.0}, "desired": []any{6.0, nil, nil},
		"horizonSeconds": []any{30.0, 0.0, 30.0},
		"reason":         []any{"AboveThreshold", "WaitingForSamples", "ScaleUnreadable"},
		"message":        []any{sentence, "no decision: WaitingForSamples", "no decision: ScaleUnreadable"},
	}, answer["history"])
	delete(answer, "history")
	metric, _ := answer["metric"].(map[string]any)
	assert.Equal(t, "checkout", metric["name"])
	delete(answer, "metric")
	assert.Equal(t, map[string]any{
		"time": "2026-03-01T12:00:10Z", "message": sentence, "targetDesired": 6.0,
		"drivenBy": "checkout", "metricsOfTarget": 1.0,
		"level": 2.4, "total": 3.6, "planned": 3.8, "horizonSeconds": 30.0, "startupSeconds": 20.0,
		"startupsMeasured": 3.0, "source": "pods",
		"sampleIntervalSeconds": 1.0, "sampleAgeSeconds": 12.0, "unreadablePods": 0.0,
		"forecastErrorRatio": 0.5, "stepSeconds": 5.0,
	}, answer)

	answer = decoded(t, d.Handler(), MetricsPath+"/shop/checkout?since=1772366405")
	history, _ := answer["history"].(map[string]any)
	assert.Equal(t, []any{1772366410.0}, history["at"])
}

// What was recorded is explained as it was at the time.
func TestPointsKeepTheSentence(t *testing.T) {
	for name, change := range map[string]func(*snapshot.Snapshot){
		"of pods": func(*snapshot.Snapshot) {},
		"of the present, of which Holt counts the pods": func(s *snapshot.Snapshot) {
			s.Forecast.Need = pipeline.Need{Load: 2.4, Basis: pipeline.FromPresent, PerInstance: 0.7, Min: 3.4,
				Max: 4.3}
			s.Decision = pipeline.Decision{Desired: 5, Reason: pipeline.NoNeed}
		},
		"idle": func(s *snapshot.Snapshot) {
			s.Activation, s.Decision = 5, pipeline.Decision{Action: pipeline.ScaleDown, Reason: pipeline.Idle}
		},
		"cooling down": func(s *snapshot.Snapshot) {
			s.Decision = pipeline.Decision{Desired: 4, Action: pipeline.Hold, Reason: pipeline.CoolingDown}
		},
		"large loads": func(s *snapshot.Snapshot) {
			s.Threshold, s.Forecast.PlannedLoad = 2147483648, 7123456789
			s.Forecast.Need = pipeline.Need{Load: 7123456789, Margin: 1e9, PerInstance: 2147483648, Min: 3.3, Max: 3.4}
		},
	} {
		s := servingtest.Changed(rising("checkout"), change)
		p := pointOf(&s, servingtest.Now)
		assert.Equal(t, s.Explain(), p.explain(), name)
	}
}

func TestEveryReasonIsRecorded(t *testing.T) {
	require.Less(t, len(reasons), math.MaxUint8)
	for _, reason := range serving.Reasons() {
		assert.Equal(t, reason, reasons[indexOf(reason)])
	}
	assert.Equal(t, "Unknown", reasons[indexOf("a word of a later version")])
}

func TestErrorsSayWhatIsAccepted(t *testing.T) {
	h := New(servingtest.NewMemory(rising("checkout")), at(servingtest.Now)).Handler()
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"?state=broken": {http.StatusBadRequest,
			`state: "broken": must be one of down, late, maximum, unavailable, up`},
		"?sort=size": {http.StatusBadRequest,
			`sort: "size": must be one of desired, late, learned, load, name, predicted, ready, reason, replicas, target, threshold`},
		"?order=up": {http.StatusBadRequest, `order: "up": must be asc or desc`},
		"?limit=0": {http.StatusBadRequest,
			`limit: "0": must be a whole number from 1 to 200`},
		"?limit=201":                          {http.StatusBadRequest, `limit: "201"`},
		"?offset=-1":                          {http.StatusBadRequest, `offset: "-1"`},
		"?search=" + strings.Repeat("x", 254): {http.StatusBadRequest, "search: 254 bytes: must be at most 253"},
		"/shop/checkout?since=today": {http.StatusBadRequest,
			`since: "today": must be a time in whole seconds since 1970`},
		"/shop/cart": {http.StatusNotFound, "There is no PredictedMetric shop/cart."},
	} {
		code, body := get(t, h, MetricsPath+path)
		assert.Equal(t, want.code, code, path)
		assert.Contains(t, body, want.text, path)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, MetricsPath, nil))
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

// many returns n snapshots in ten namespaces; every tenth has no forecast.
func many(n int) []snapshot.Snapshot {
	list := make([]snapshot.Snapshot, n)
	for i := range list {
		list[i] = rising(fmt.Sprintf("m-%04d", i))
		if i%10 == 9 {
			list[i] = unread(list[i].Metric.Name)
		}
		list[i].Metric.Namespace, list[i].TargetName = fmt.Sprintf("team-%d", i%7), fmt.Sprintf("target-%04d", i)
		list[i].Forecast.LoadNow = float64((i*7919)%n) / float64(n)
	}
	return list
}

// fleetOf reads a page.
func fleetOf(t *testing.T, h http.Handler, query string) (f struct {
	Summary  Summary
	Matching int
	Items    []struct {
		Namespace, Name, Reason string
		LoadPerPod              *float64
	}
}) {
	t.Helper()
	code, body := get(t, h, MetricsPath+query)
	require.Equal(t, http.StatusOK, code, body)
	require.NoError(t, json.Unmarshal([]byte(body), &f))
	return f
}

// Pages of any size have every PredictedMetric once, in order.
func TestPagesHaveAllInOrder(t *testing.T) {
	const n = 500
	h := New(servingtest.NewMemory(many(n)...), at(servingtest.Now)).Handler()
	for _, query := range []string{"sort=name", "sort=name&order=desc", "sort=load",
		"sort=load&order=desc", "sort=reason"} {
		seen := map[string]bool{}
		var loads []float64
		var names []string
		without := 0
		for offset := 0; offset < n; offset += 60 {
			page := fleetOf(t, h, fmt.Sprintf("?%s&limit=60&offset=%d", query, offset))
			require.Equal(t, n, page.Matching)
			require.LessOrEqual(t, len(page.Items), 60)
			for _, item := range page.Items {
				seen[item.Namespace+"/"+item.Name] = true
				names = append(names, item.Namespace+"/"+item.Name)
				if item.LoadPerPod == nil {
					without++
				} else if strings.Contains(query, "load") {
					assert.Zero(t, without, "%s: one without a load is before one with", query)
					loads = append(loads, *item.LoadPerPod)
				}
			}
		}
		assert.Len(t, seen, n, query)
		assert.Equal(t, n/10, without, query)
		if strings.Contains(query, "desc") {
			slices.Reverse(loads)
			slices.Reverse(names)
		}
		assert.True(t, slices.IsSorted(loads), query)
		if strings.Contains(query, "name") {
			assert.True(t, slices.IsSorted(names), query)
		}
	}
	assert.Empty(t, fleetOf(t, h, "?offset=1000").Items)
}

// What an engineer on call has to look at comes first: broken, without pods, at the maximum, late.
func TestTroubleComesFirst(t *testing.T) {
	broken := func(name string, reason snapshot.Reason) snapshot.Snapshot {
		return servingtest.Changed(unread(name),
			func(s *snapshot.Snapshot) { s.Err = &snapshot.Unavailable{Reason: reason, Message: "because " + name} })
	}
	healthy := servingtest.Changed(rising("a-healthy"), func(s *snapshot.Snapshot) { s.Lateness = 0 })
	young := servingtest.Changed(rising("b-young"),
		func(s *snapshot.Snapshot) { s.Accuracy.LastDay.Late, s.Accuracy.LastDay.LateKnown = 0.46, time.Minute })
	full := servingtest.Changed(rising("z-full"), func(s *snapshot.Snapshot) {
		s.Decision = pipeline.Decision{Desired: 4, Action: pipeline.Hold, Reason: pipeline.AtMaximum}
	})
	undecided := servingtest.Changed(rising("y-undecided"),
		func(s *snapshot.Snapshot) { s.ReplicasLost = s.At.Add(-time.Minute) })
	d := New(servingtest.NewMemory(healthy, young, full, undecided, rising("k-late"),
		broken("x-broken", "ScaleUnreadable"), broken("c-none", snapshot.NoReadyPods)), at(servingtest.Now))
	var names, causes []string
	for _, item := range fleetOf(t, d.Handler(), "").Items {
		names = append(names, item.Name)
	}
	assert.Equal(t, []string{"x-broken", "y-undecided", "c-none", "z-full", "k-late", "a-healthy", "b-young"}, names)
	rows, summary := rowsOf(d.reader.All(), servingtest.Now)
	for _, r := range rows {
		if r.Cause != "" {
			causes = append(causes, r.Reason+": "+r.Cause)
		}
	}
	assert.Contains(t, causes, "ScaleUnreadable: because x-broken")
	assert.Contains(t, causes, "NoReadyPods: because c-none")
	assert.Equal(t, 3, summary.Late, "a minute is too little to judge by")
}

func TestShapesHaveTheHighestOfEachInterval(t *testing.T) {
	m := servingtest.NewMemory()
	d := New(m, nil)
	for i := range Kept {
		now := servingtest.Now.Add(time.Duration(i+1) * Step)
		d.now = at(now)
		m.Publish(servingtest.Changed(rising("checkout"), func(s *snapshot.Snapshot) {
			s.At, s.NewestSample = now, now
			s.Forecast.Level, s.Forecast.Total, s.Forecast.Target = float64(i), 1000+float64(i), 1+i/360
		}))
		d.record()
	}
	fleet := decoded(t, d.Handler(), MetricsPath+"?shape=4")
	items, _ := fleet["items"].([]any)
	row, _ := items[0].(map[string]any)
	assert.Equal(t, map[string]any{
		"from": 1772366400.0, "stepSeconds": 900.0, "load": []any{179.0, 359.0, 539.0, 719.0},
		"replicas": []any{1.0, 1.0, 2.0, 2.0},
		"forecast": []any{1170.0, 1350.0, 1530.0, 1710.0}, // 30 s later than they were made
		"capacity": []any{0.7, 0.7, 1.4, 1.4},
	}, row["shape"])
	code, body := get(t, d.Handler(), MetricsPath+"?shape=121")
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Contains(t, body, "shape: \"121\": must be a whole number from 0 to 120")
	items, _ = decoded(t, d.Handler(), MetricsPath)["items"].([]any)
	assert.NotContains(t, items[0], "shape")
}

func TestFilters(t *testing.T) {
	list := many(100)
	list[0].Decision = pipeline.Decision{Desired: 2, Action: pipeline.ScaleDown, Reason: pipeline.Headroom}
	list[1].Decision = pipeline.Decision{Desired: 4, Action: pipeline.Hold, Reason: pipeline.AtMaximum}
	list[2].Accuracy.LastDay.Late = 0.001
	h := New(servingtest.NewMemory(list...), at(servingtest.Now)).Handler()
	for query, want := range map[string]int{
		"": 100, "?state=unavailable": 10, "?state=down": 1, "?state=maximum": 1, "?state=up": 88, "?state=late": 89,
		"?search=team-3": 14, "?search=TEAM-3/": 14, "?search=m-0042": 1,
		"?search=deployment/target-000": 10, "?search=nothing": 0,
		"?search=team-3&state=unavailable": 1,
	} {
		page := fleetOf(t, h, query)
		assert.Equal(t, want, page.Matching, query)
		assert.Equal(t, Summary{Metrics: 100, Unavailable: 10, ScalingUp: 88, ScalingDown: 1, AtMaximum: 1, Late: 89},
			page.Summary, query)
	}
}

// The age of what is served is judged at the read, as by the other doors.
func TestStaleForecastsAreNone(t *testing.T) {
	now := servingtest.Now
	d := New(servingtest.NewMemory(rising("checkout")), func() time.Time { return now })
	assert.Equal(t, "AboveThreshold", fleetOf(t, d.Handler(), "").Items[0].Reason)
	now = now.Add(time.Minute)
	assert.Equal(t, "Stale", fleetOf(t, d.Handler(), "").Items[0].Reason)
}

// counting counts how often all snapshots are read.
type counting struct {
	Reader
	reads int
}

func (c *counting) All() []snapshot.Snapshot {
	c.reads++
	return c.Reader.All()
}

func TestViewersShareARound(t *testing.T) {
	now := servingtest.Now
	reader := &counting{Reader: servingtest.NewMemory(many(20)...)}
	d := New(reader, func() time.Time { return now })
	for range 10 {
		fleetOf(t, d.Handler(), "?sort=load")
	}
	assert.Equal(t, 1, reader.reads)
	now = now.Add(fleetAge)
	fleetOf(t, d.Handler(), "")
	assert.Equal(t, 2, reader.reads)
	now = now.Add(-time.Hour)
	fleetOf(t, d.Handler(), "")
	assert.Equal(t, 3, reader.reads, "a clock that is set back")
}

// In virtual time the ring has the newest hour of each PredictedMetric, in order and at the pace of
// Step, and then forgets it.
func TestHistoryHasTheLastHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := servingtest.NewMemory()
		publish := func() {
			m.Publish(servingtest.Changed(rising("checkout"), func(s *snapshot.Snapshot) {
				s.At, s.NewestSample, s.Ready = time.Now(), time.Now(), time.Now().Minute()
			}))
		}
		publish()
		d := New(m, time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx) }()
		key := types.NamespacedName{Namespace: "shop", Name: "checkout"}
		for i := range Kept + 2*blockPoints + 5 {
			time.Sleep(Step)
			synctest.Wait()
			publish()
			points := d.history.since(key, 0)
			require.Len(t, points, min(i+1, Kept))
			require.EqualValues(t, time.Now().Unix(), points[len(points)-1].at)
			for j := 1; j < len(points); j++ {
				require.EqualValues(t, Step/time.Second, points[j].at-points[j-1].at)
			}
		}
		newest := uint32(time.Now().Unix())
		require.Len(t, d.history.since(key, newest-60), 12)
		require.Empty(t, d.history.since(key, newest))
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestHistoryBeginsAnewWhenTheClockIsSetBack(t *testing.T) {
	var r ring
	for _, at := range []uint32{100, 105, 110, 20, 25} {
		r.add(point{at: at})
	}
	points := r.since(0)
	require.Len(t, points, 2)
	assert.EqualValues(t, 20, points[0].at)
	assert.Len(t, r.since(20), 1)
}

func TestForecastsWithoutADecisionSayWhy(t *testing.T) {
	s := servingtest.Changed(rising("checkout"), func(s *snapshot.Snapshot) { s.ReplicasLost = s.At.Add(-time.Minute) })
	d := detailOf(&s, nil, servingtest.Now)
	assert.Equal(t, "ScaleUnreadable", d.Metric.Reason)
	assert.Contains(t, d.Message, "the scale of Deployment checkout has been unreadable since")
	assert.EqualValues(t, 3.6, d.Total)
}

// The race detector sees what this test does not.
func TestPeopleLookWhileARoundIsRecorded(t *testing.T) {
	m := servingtest.NewMemory(many(50)...)
	d := New(m, at(servingtest.Now))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 20 {
				d.record()
				get(t, d.Handler(), MetricsPath+"?sort=load")
				get(t, d.Handler(), MetricsPath+"/team-1/m-0001")
			}
		})
	}
	group.Wait()
	assert.Len(t, d.history.since(types.NamespacedName{Namespace: "team-1", Name: "m-0001"}, 0), 80)
}

func TestHistoryForgetsWhatIsGone(t *testing.T) {
	h := newHistory()
	h.record(many(20), servingtest.Now)
	h.record(many(10), servingtest.Now)
	assert.Len(t, h.rings, 10)
	assert.Empty(t, h.since(types.NamespacedName{Namespace: "none", Name: "none"}, 0))
}

// An hour takes no more than docs/dashboard.md and the help of --dashboard say.
func TestMemoryOfTheHistoryIsBounded(t *testing.T) {
	var r ring
	for i := range 3 * Kept {
		r.add(point{at: uint32(i)})
	}
	bytes := uintptr(cap(r.blocks))*unsafe.Sizeof(&point{}) + uintptr(len(
		r.blocks))*unsafe.Sizeof([blockPoints]point{}) + unsafe.Sizeof(r)
	assert.LessOrEqual(t, bytes, uintptr(41<<10))
	assert.Len(t, r.since(0), Kept)
}

func TestTextsOfOthersAreClipped(t *testing.T) {
	assert.Equal(t, "short", clip("short"))
	long := clip(strings.Repeat("ü", 2000))
	assert.LessOrEqual(t, len(long), maxMessage)
	assert.True(t, strings.HasSuffix(long, "ü…"))
	s := servingtest.Changed(rising("checkout"),
		func(s *snapshot.Snapshot) { s.SourceErr = &serving.Error{Message: strings.Repeat("x", 5000)} })
	assert.Len(t, detailOf(&s, nil, servingtest.Now).SourceError, maxMessage)
}

// A PredictedMetric in dry run is shown with its forecast, and does not count as one that scales.
func TestDryRunIsShown(t *testing.T) {
	dry := servingtest.Changed(rising("checkout"),
		func(s *snapshot.Snapshot) { s.DryRun, s.Combined = true, snapshot.Combined{} })
	d := New(servingtest.NewMemory(dry), at(servingtest.Now))
	answer := decoded(t, d.Handler(), MetricsPath+"/shop/checkout")
	assert.Contains(t, answer["message"], "6 replicas instead of 4")
	assert.Nil(t, answer["targetDesired"])
	row, _ := answer["metric"].(map[string]any)
	assert.Equal(t, true, row["dryRun"])
	assert.Equal(t, "AboveThreshold", row["reason"])
	assert.Equal(t, 6.0, row["desired"])
	fleet := decoded(t, d.Handler(), MetricsPath)
	summary, _ := fleet["summary"].(map[string]any)
	assert.Equal(t, 0.0, summary["scalingUp"])
}
