//go:build long

package browser

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/door/dashboard"
	"github.com/foresail/foresail/adapter/door/dashboard/eventview"
	"github.com/foresail/foresail/adapter/door/dashboard/metricview"
	"github.com/foresail/foresail/adapter/door/dashboard/page"
	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving/servingtest"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/lab/play/whatif"
	"github.com/foresail/foresail/pipeline"
)

// seeds is how many PredictedMetrics the page has.
const seeds = 5000

// played is the state of a PredictedMetric at a time: a load that goes up and down, replicas that
// follow its forecast by half a minute.
func played(i int, now time.Time) snapshot.Snapshot {
	const threshold, horizon = 0.7, 45 * time.Second
	load := func(at time.Time) float64 {
		minutes := at.Sub(servingtest.Now).Minutes() + float64(i%60)
		return 4 + float64(i%5) + 2.5*math.Sin(minutes/9) + 1.2*math.Max(0, math.Sin(minutes/23))*math.Sin(minutes/4)
	}
	needed := func(at time.Time) int {
		return int(math.Ceil(1.08 * math.Max(load(at), load(at.Add(horizon))) / threshold))
	}
	s := snapshot.Snapshot{
		Metric: types.NamespacedName{Namespace: fmt.Sprintf("team-%02d", i%40),
			Name: fmt.Sprintf("service-%04d", i)},
		TargetKind: "Deployment", TargetName: fmt.Sprintf("service-%04d",
			i), Threshold: threshold, StaleAfter: 30 * time.Second,
		At: now, NewestSample: now, Source: "pods", SampleInterval: time.Second, StartupTime: 24 * time.Second,
		StartupsMeasured: 12,
		Learned:          26 * time.Hour, Lateness: 0.01,
		Accuracy: snapshot.Accuracy{LastDay: pipeline.Score{Judged: 24 * time.Hour, Error: 0.4, Naive: 1,
			LateKnown: 24 * time.Hour, Late: 0.0001 * float64(i%150)}},
		Ready: needed(now.Add(-45 * time.Second)),
	}
	if i == 0 {
		s.Metric = types.NamespacedName{Namespace: "shop", Name: "checkout"}
		s.TargetName = "checkout"
	}
	if i%50 == 49 {
		s.Err = &snapshot.Unavailable{Reason: snapshot.SourceFailing,
			Message: "2 of 8 pods have not been read yet <b>&amp;"}
		if i%100 == 99 {
			s.Err = &snapshot.Unavailable{Reason: "ScaleUnreadable",
				Message: "read the scale of Deployment " + s.TargetName + `: deployments.apps "` + s.TargetName + `" not found`}
		}
		return s
	}
	if i%50 == 11 { // it has just begun
		s.Learned, s.Accuracy.LastDay.LateKnown, s.Accuracy.LastDay.Late = time.Minute, time.Minute, 0.46
	}
	target := needed(now.Add(-15 * time.Second))
	f := &s.Forecast
	f.Level, f.Total = load(now), load(now.Add(horizon))*(1+0.03*math.Sin(float64(now.Unix())/40))
	f.PlannedLoad, f.Horizon, f.Target = 1.08*math.Max(f.Level, f.Total), horizon, target
	f.LoadNow, f.LoadPredicted = f.Level/float64(max(1, s.Ready)), f.Total/float64(target)
	d := pipeline.Decision{Desired: needed(now), Action: pipeline.Hold, Reason: pipeline.NoNeed}
	switch {
	case d.Desired > target:
		d.Action, d.Reason = pipeline.ScaleUp, pipeline.AboveThreshold
	case d.Desired < target:
		d.Action, d.Reason = pipeline.ScaleDown, pipeline.Headroom
	}
	if i%50 == 7 {
		d = pipeline.Decision{Desired: target, Action: pipeline.Hold, Reason: pipeline.AtMaximum}
	}
	f.Decision, f.Holds = d, threshold*float64(d.Desired)
	f.Need = pipeline.Need{Load: f.PlannedLoad, Margin: f.PlannedLoad - math.Max(f.Level, f.Total), PerInstance: threshold,
		Min: f.PlannedLoad / threshold, Max: f.PlannedLoad / threshold}
	s.Decision, s.Combined = d, snapshot.Combined{Desired: d.Desired, DrivenBy: s.Metric.Name, Metrics: 1}
	return s
}

// seeded returns a dashboard with an hour of some PredictedMetrics and the present of the others.
// Its clock stands still after that.
func seeded(t *testing.T) *dashboard.Dashboard {
	t.Helper()
	var now time.Time
	m := servingtest.NewMemory()
	d := dashboard.New(m, func() time.Time { return now })
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		for i := range dashboard.Kept {
			now = servingtest.Now.Add(time.Duration(i) * dashboard.Step)
			for j := range 60 {
				m.Publish(played(j, now))
			}
			time.Sleep(dashboard.Step)
			synctest.Wait()
		}
		cancel()
		require.NoError(t, <-ended)
	})
	for i := 60; i < seeds; i++ {
		m.Publish(played(i, now))
	}
	m.PublishTrace(played(0, now).Metric, traced(t, now))
	return d
}

// traced is how a forecast of three pods comes about that are read every two seconds, of which one
// has not been read lately.
func traced(t *testing.T, now time.Time) *snapshot.Trace {
	t.Helper()
	params := pipeline.AdaptiveParams()
	params.Threshold, params.Max = 0.7, 20
	p, err := pipeline.New(params)
	require.NoError(t, err)
	in := pipeline.Input{Now: now.UnixMilli(), TargetRose: pipeline.Never}
	out := &snapshot.Trace{At: now, AllPods: 14}
	for i := range 3 {
		x := pipeline.Instance{ID: fmt.Sprintf("checkout-7d9c5-%d <b>", i), Start: now.Add(-time.Hour).UnixMilli()}
		for ago := 5 * time.Minute; ago >= time.Duration(20*(i/2))*time.Second; ago -= 2 * time.Second {
			at := now.Add(-ago)
			x.Samples = append(x.Samples, pipeline.Sample{T: at.UnixMilli(),
				V: 0.5 + 0.05*float64(i) + 0.08*math.Sin(at.Sub(servingtest.Now).Minutes())})
		}
		in.Instances = append(in.Instances, x)
		out.Pods = append(out.Pods, snapshot.TracedPod{Name: x.ID, Samples: x.Samples})
	}
	out.Forecast, out.Stages, err = p.Trace(&pipeline.Memory{}, in, snapshot.MaxTracedPods)
	require.NoError(t, err)
	return out
}

// serve serves the page, and returns its URL. While there is a failure, no replica answers.
func serve(t *testing.T, failure func() error) string {
	t.Helper()
	data := seeded(t).Handler()
	pools, waiting := cluster(t), unbound()
	metrics := &metricview.View{Objects: pools.Objects}
	events := &eventview.View{Cluster: pools.Cluster, Now: pools.Now}
	played := whatif.NewView(func(ctx context.Context, metric types.NamespacedName) ([]byte, error) {
		w := httptest.NewRecorder()
		data.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, dashboard.MetricsPath+"/"+metric.String(),
			nil))
		return w.Body.Bytes(), nil
	}, func(context.Context, types.NamespacedName) (v1alpha1.PredictedMetricSpec, error) {
		return params.ParseSpec([]byte("{threshold: 700m, minReplicas: 1, maxReplicas: 20, saturation: 1}"))
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	shown, err := page.New(listener.Addr(), dashboard.Path,
		func(ctx context.Context, path string) (page.Answer, error) {
			if err := failure(); err != nil {
				return page.Answer{}, err
			}
			w := httptest.NewRecorder()
			data.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
			return page.Answer{Code: w.Code, Type: w.Header().Get("Content-Type"), Body: w.Body.Bytes()}, nil
		}, page.Local{
			Cluster: page.Cluster{Name: "prod-eu-west-1", Server: "https://10.0.0.1:6443"},
			Metric:  func(ctx context.Context, metric types.NamespacedName) any { return metrics.Look(ctx, metric) },
			Pools:   func(ctx context.Context) any { return pools.List(ctx) },
			Pool:    func(ctx context.Context, name string) any { return pools.Detail(ctx, name) },
			WhatIf: func(ctx context.Context, metric types.NamespacedName, values url.Values) any {
				return played.Answer(ctx, metric, values)
			},
			Events: func(ctx context.Context, kind string, object types.NamespacedName) any {
				return events.List(ctx, kind, object)
			},
			Pods: func(ctx context.Context) any { return waiting.List(ctx) },
			Pod:  func(ctx context.Context, pod types.NamespacedName) any { return explainPod(ctx, pod) },
		})
	require.NoError(t, err)
	server := &http.Server{Handler: shown}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return shown.URL()
}

// keep checks a picture that is not empty, and writes it to the documentation with few colors, so
// that it is small, if FORESAIL_UPDATE_DOCS is set.
func keep(t *testing.T, b *Browser, name string) {
	t.Helper()
	content, err := b.Picture()
	require.NoError(t, err)
	full, err := png.Decode(bytes.NewReader(content))
	require.NoError(t, err)
	found := colors(full)
	assert.Greater(t, len(found), 8, "%s is empty", name)
	if os.Getenv("FORESAIL_UPDATE_DOCS") == "" {
		return
	}
	few := image.NewPaletted(full.Bounds(), found[:min(len(found), 256)])
	draw.Draw(few, few.Bounds(), full, image.Point{}, draw.Src)
	var written bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&written, few))
	require.NoError(t, os.WriteFile(filepath.Join("..", "..", "docs", "images", name), written.Bytes(), 0o644))
}

// colors returns the colors of a picture, the most frequent ones first.
func colors(picture image.Image) color.Palette {
	found := map[color.Color]int{}
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y++ {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x++ {
			found[picture.At(x, y)]++
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b color.Color) int { return cmp.Compare(found[b], found[a]) })
}

// listed are the rows of Events.
const listed = `document.querySelectorAll('[aria-label="Events, the newest first"] tbody tr')`

// Without a replica there are worker pools alone, which the command opens first, until a replica comes.
func TestWorkerPoolsAloneInChromium(t *testing.T) {
	var comes atomic.Bool
	address := serve(t, func() error {
		if comes.Load() {
			return nil
		}
		return errors.New("no pod runs Foresail <b>")
	})
	b, err := Start(t.Context())
	require.NoError(t, err)
	defer func() { assert.NoError(t, b.Close()) }()
	require.NoError(t, b.Open(address+"#workerpools"))
	require.NoError(t, b.Until(
		`document.querySelectorAll('tbody tr').length === 30 && document.getElementById('status').textContent === 'Live'`))
	base, _, _ := strings.Cut(address, "?")
	var here string
	require.NoError(t, b.Evaluate(`location.href`, &here))
	assert.Equal(t, base+"#workerpools", here, "the token is gone from the address")
	require.NoError(t, b.Open(base+"#/"))
	require.NoError(t, b.Until(`document.getElementById('status').textContent.includes('no pod runs Foresail <b>')`))
	comes.Store(true)
	require.NoError(t, b.Until(
		`document.querySelectorAll('tbody tr').length === 50 && document.getElementById('status').textContent === 'Live'`))
}

// openMetric opens the view of a PredictedMetric anew.
func openMetric(t *testing.T, b *Browser, base string) {
	t.Helper()
	require.NoError(t, b.Open(base+"#/"))
	require.NoError(t, b.Until(`document.querySelectorAll('tbody tr').length === 50`))
	require.NoError(t, b.Open(base+"#/shop/checkout"))
	require.NoError(t, b.Until(`document.querySelectorAll('svg.chart path.load, svg.chart path.ready').length === 3`))
}

// fits checks that what is shown has names for screen readers, and does not scroll sideways.
func fits(t *testing.T, b *Browser) {
	t.Helper()
	nameless, err := b.Nameless()
	require.NoError(t, err)
	assert.Empty(t, nameless)
	var wider int
	require.NoError(t, b.Evaluate(`document.documentElement.scrollWidth - innerWidth`, &wider))
	assert.LessOrEqual(t, wider, 0)
}

// TestDashboardInChromium looks at the page as people do: light and dark, on a screen and on a
// phone, by keyboard and by screen reader.
func TestDashboardInChromium(t *testing.T) {
	address := serve(t, func() error { return nil })
	base, _, _ := strings.Cut(address, "?")
	b, err := Start(t.Context())
	require.NoError(t, err)
	defer func() { assert.NoError(t, b.Close()) }()
	require.NoError(t, b.Open(address))
	require.NoError(t, b.Until(`document.querySelectorAll('tbody tr').length === 50`))
	at := func() (here string) {
		require.NoError(t, b.Evaluate(`location.href`, &here))
		return here
	}
	assert.Equal(t, base, at(), "the token is gone from the address")

	for _, look := range []struct {
		name          string
		width, height int
		scheme        string
		background    string
	}{
		{"light", 1000, 980, "light", "rgb(248, 250, 252)"},
		{"dark", 1100, 900, "dark", "rgb(11, 17, 32)"},
		{"phone", 390, 844, "light", "rgb(248, 250, 252)"},
		{"phone, dark", 390, 844, "dark", "rgb(11, 17, 32)"},
	} {
		t.Run(look.name, func(t *testing.T) {
			require.NoError(t, b.Look(look.width, look.height, look.scheme))
			for _, view := range []struct{ hash, ready, picture string }{
				{"#/?search=service-00", `document.querySelectorAll('tbody tr').length === 50 && document.querySelectorAll('svg.spark').length === 50`, "dashboard-list.png"},
				{"#/shop/checkout", `document.querySelectorAll('svg.chart path.load, svg.chart path.ready').length === 3 && ` +
					listed + `.length === 20`, "dashboard.png"},
				{"#workerpools", `document.querySelectorAll('tbody tr').length === 30`, ""},
				{"#workerpools/workers", `document.body.textContent.includes('Launched, requested 20s ago') && ` + listed +
					`.length === 2`, "dashboard-pool.png"},
				{"#pods", `document.querySelectorAll('tbody tr').length === 12`, ""},
				{"#pods/shop/checkout-7d9c5",
					`document.querySelectorAll('[aria-label="Nodes"] tbody tr').length === 64`, "dashboard-pod.png"},
				{"#pods/shop/none", `document.querySelector('.decision').textContent.includes('there is no such pod now')`, ""},
			} {
				require.NoError(t, b.Open(base+view.hash))
				require.NoError(t, b.Until(view.ready))
				var background string
				require.NoError(t, b.Evaluate(`getComputedStyle(document.body).backgroundColor`, &background))
				assert.Equal(t, look.background, background)
				var objects bool
				require.NoError(t, b.Evaluate(`document.body.textContent.includes('[object')`, &objects))
				assert.False(t, objects, "%s shows what is no text", view.hash)
				var wider int
				require.NoError(t, b.Evaluate(`document.documentElement.scrollWidth - innerWidth`, &wider))
				assert.LessOrEqual(t, wider, 0, "%s scrolls sideways", view.hash)
				if look.width < 400 {
					var whole bool
					require.NoError(t, b.Evaluate(
						`[...document.querySelectorAll('.scroll')].every((part) => part.scrollWidth <= part.clientWidth)`, &whole))
					assert.True(t, whole, "a table of %s is cut", view.hash)
				}
				nameless, err := b.Nameless()
				require.NoError(t, err)
				assert.Empty(t, nameless, view.hash)
				if look.name == "light" && view.picture != "" {
					keep(t, b, view.picture)
				}
				if look.name == "phone, dark" && view.picture == "dashboard.png" {
					keep(t, b, "dashboard-phone.png")
				}
			}
		})
	}

	t.Run("filters, sorts and turns pages", func(t *testing.T) {
		require.NoError(t, b.Look(1100, 900, "light"))
		require.NoError(t, b.Open(base+"#/"))
		require.NoError(t, b.Until(`document.querySelectorAll('tbody tr').length === 50`))
		require.NoError(t, b.Evaluate(
			`[...document.querySelectorAll('button')].find((b) => b.textContent === 'No forecast 100').click(), true`,
			new(bool)))
		require.NoError(t, b.Until(`document.body.textContent.includes('1–50 of 100')`))
		require.NoError(t, b.Evaluate(
			`[...document.querySelectorAll('button')].find((b) => b.textContent === 'Next').click(), true`, new(bool)))
		require.NoError(t, b.Until(`document.body.textContent.includes('51–100 of 100')`))
		assert.Equal(t, base+"#/?state=unavailable&offset=50", at())
		require.NoError(t, b.Open(base+"#/?sort=load&order=desc"))
		require.NoError(t, b.Until(`document.querySelector('[aria-sort=descending]')?.textContent === 'Load ▼'`))
		require.NoError(t, b.Evaluate(`document.getElementById('search').focus(), true`, new(bool)))
		require.NoError(t, b.Type("shop/check"))
		require.NoError(t, b.Until(`document.body.textContent.includes('1–1 of 1')`))
	})

	t.Run("trouble comes first", func(t *testing.T) {
		require.NoError(t, b.Open(base+"#/"))
		require.NoError(t, b.Until(
			`document.querySelectorAll('tbody tr').length === 50 && document.title === 'PredictedMetrics · prod-eu-west-1 · Foresail'`))
		require.NoError(t, b.Until(
			`document.querySelector('tbody tr .bad').textContent === 'SourceFailing' && document.querySelector('tbody tr .cause').textContent === '2 of 8 pods have not been read yet <b>&amp;'`))
		require.NoError(t, b.Open(base+"#/?search=service-0099"))
		require.NoError(t, b.Until(
			`document.querySelector('tbody tr .bad')?.textContent === 'ScaleUnreadable' && document.querySelector('tbody tr .cause').textContent.includes('"service-0099" not found')`))
		require.NoError(t, b.Open(base+"#/?search=shop/checkout"))
		require.NoError(t, b.Until(`document.querySelector('svg.spark .load')?.getAttribute('d').length > 300`))
		require.NoError(t, b.Open(base+"#/?search=service-0011"))
		require.NoError(t, b.Until(
			`document.querySelector('tbody td.soft')?.textContent === 'too little data' && document.querySelectorAll('tbody .bad').length === 0`))
	})

	t.Run("the maximum is no normal state", func(t *testing.T) {
		require.NoError(t, b.Open(base+"#/team-07/service-0007"))
		require.NoError(t, b.Until(`document.querySelector('.badge.warn')?.textContent === 'AtMaximum'`))
		dash := `getComputedStyle(document.querySelectorAll('.key .bound')[%d]).strokeDasharray`
		require.NoError(t, b.Until(fmt.Sprintf(dash+" !== "+dash, 0, 1)))
	})

	t.Run("charts show values where the pointer is", func(t *testing.T) {
		openMetric(t, b, base)
		require.NoError(t, b.Until(
			`document.querySelectorAll('svg.chart .bound').length === 2 && document.querySelectorAll('svg.chart .mark.up').length >= 3`))
		for _, kind := range []string{"mouse", "touch"} {
			require.NoError(t, b.Evaluate(`((svg) => { const at = svg.getBoundingClientRect();
				svg.dispatchEvent(new PointerEvent('pointermove', { pointerType: '`+kind+`', clientX: at.left + at.width / 2, clientY: at.top + 50 })); })(document.querySelector('svg.chart')), true`, new(bool)))
			require.NoError(t, b.Until(
				`/^\d\d:\d\d:\d\dThreshold × replicas: [\d.]+Planned for: [\d.]+Load: [\d.]+Forecast for this time: [\d.]+/.test(document.querySelector('.chart .box')?.textContent)`))
			require.NoError(t, b.Until(
				`document.querySelectorAll('.chart .hover').length === 3 && document.querySelectorAll('.chart .box').length === 1`))
			require.NoError(t, b.Evaluate(
				`document.querySelector('svg.chart').dispatchEvent(new PointerEvent('pointerleave', { pointerType: '`+
					kind+`' })), true`, new(bool)))
			if kind == "touch" { // what a finger has touched stays, until it touches something else
				require.NoError(t, b.Evaluate(
					`document.body.dispatchEvent(new PointerEvent('pointerdown', { bubbles: true })), true`, new(bool)))
			}
			require.NoError(t, b.Until(`document.querySelectorAll('.chart .hover').length === 0`))
		}
	})

	t.Run("a phone shows the decision, its metric and its bounds at once", func(t *testing.T) {
		require.NoError(t, b.Look(390, 844, "light"))
		openMetric(t, b, base)
		require.NoError(t, b.Until(
			`[...document.querySelectorAll('dd')].find((dd) => dd.textContent === 'at least 2, at most 20')?.getBoundingClientRect().bottom < innerHeight`))
		require.NoError(t, b.Until(`document.querySelector('.decision').getBoundingClientRect().bottom < innerHeight / 2`))
		require.NoError(t, b.Until(`document.body.textContent.includes('each pod, port 9100, path /metrics, read every 1s')`))
		require.NoError(t, b.Until(
			`document.querySelector('[aria-label="Events, the newest first"] tbody td').dataset.head === 'Reason, type'`))
		require.NoError(t, b.Look(1100, 900, "light"))
	})

	t.Run("by keyboard", func(t *testing.T) {
		require.NoError(t, b.Open(base+"#/?sort=name"))
		require.NoError(t, b.Until(`document.querySelector('tbody a')?.textContent === 'shop/checkout'`))
		focused := func() (name string) {
			require.NoError(t, b.Evaluate(`document.activeElement.textContent || document.activeElement.type || ''`,
				&name))
			return name
		}
		press := func(key, until string) {
			for range 40 {
				require.NoError(t, b.Press(key))
				if focused() == until {
					return
				}
			}
			require.Fail(t, "no focus", until)
		}
		press("Tab", "shop/checkout")
		require.NoError(t, b.Press("Enter"))
		require.NoError(t, b.Until(
			`document.querySelector('h1').textContent === 'shop/checkout' && document.querySelectorAll('svg.chart').length === 3`))
		require.NoError(t, b.Until(`document.querySelector('output').textContent.endsWith('now')`))
		press("Tab", "range")
		for range 12 {
			require.NoError(t, b.Press("ArrowLeft"))
		}
		require.NoError(t, b.Until(`document.querySelector('output').textContent.endsWith('60s ago')`))
		require.NoError(t, b.Until(`document.querySelectorAll('svg.chart .cursor').length === 3`))
		press("Tab", "Live")
		require.NoError(t, b.Press("Enter"))
		require.NoError(t, b.Until(`document.querySelector('output').textContent.endsWith('now')`))
		press("Tab", "The last hour as a table")
		require.NoError(t, b.Press("Enter"))
		require.NoError(t, b.Until(`document.querySelectorAll('details tbody tr').length >= 60`))
	})

	t.Run("worker pools", func(t *testing.T) {
		require.NoError(t, b.Open(base+"#/"))
		require.NoError(t, b.Until(`document.querySelectorAll('tbody tr').length === 50`))
		require.NoError(t, b.Evaluate(
			`[...document.querySelectorAll('nav a')].find((a) => a.textContent === 'Worker pools').click(), true`, new(bool)))
		require.NoError(t, b.Until(
			`document.querySelector('nav a[aria-current=page]').textContent === 'Worker pools' && document.querySelectorAll('tbody tr').length === 30`))
		require.NoError(t, b.Evaluate(
			`[...document.querySelectorAll('tbody a')].find((a) => a.textContent === 'workers').click(), true`, new(bool)))
		require.NoError(t, b.Until(`document.querySelectorAll('[aria-label="Nodes of the pool"] tbody tr').length === 300`))
		for _, want := range []string{
			"ScaleUp up-1, started 40s ago", "5 pods fit on no node <b>", "at most $", "Draining", "shop/web-9",
			"The scheduler finds no node for 12 pods",
			"is not removed: the pod shop/bare has no controller", "cpu will be 0.91",
		} {
			require.NoError(t, b.Until(fmt.Sprintf("document.body.textContent.includes(%q)", want)))
		}
		require.NoError(t, b.Open(base+"#workerpools/none"))
		require.NoError(t, b.Until(`document.querySelector('.decision').textContent.includes('there is no WorkerPool none')`))
	})

	t.Run("how a forecast came about", func(t *testing.T) {
		for _, look := range []struct {
			width, height int
			scheme        string
		}{{390, 844, "dark"}, {1000, 900, "light"}} {
			require.NoError(t, b.Look(look.width, look.height, look.scheme))
			openMetric(t, b, base)
			require.NoError(t, b.Evaluate(
				`[...document.querySelectorAll('summary')].find((s) => s.textContent === 'How this forecast came about').click(), true`, new(bool)))
			require.NoError(t, b.Until(
				`document.querySelectorAll('svg.chart path:is(.sample, .aligned, .imputed)').length === 3`))
			for _, line := range []string{"sample", "aligned", "imputed"} {
				require.NoError(t, b.Until(fmt.Sprintf(`document.querySelector('svg.chart path.%s').getAttribute('d').length > 100`,
					line)))
			}
			require.NoError(t, b.Until(`document.querySelectorAll('[aria-label="Pods of the forecast"] tbody tr').length === 3`))
			for _, want := range []string{"The chart shows 3 of 14 pods", "checkout-7d9c5-2 <b>", "20s",
				"replicas before cooldowns"} {
				require.NoError(t, b.Until(fmt.Sprintf(
					"document.querySelector('[aria-label=\"Pods of the forecast\"]').closest('details').textContent.includes(%q)",
					want)))
			}
			fits(t, b)
		}
		require.NoError(t, b.Evaluate(
			`document.querySelector('svg.chart path.sample').closest('details').scrollIntoView(), true`, new(bool)))
		keep(t, b, "dashboard-trace.png")
	})

	t.Run("pods", func(t *testing.T) {
		require.NoError(t, b.Look(1100, 900, "light"))
		require.NoError(t, b.Open(base+"#/"))
		require.NoError(t, b.Until(`document.querySelectorAll('tbody tr').length === 50`))
		focused := func() (name string) {
			require.NoError(t, b.Evaluate(`document.activeElement.id || document.activeElement.textContent`, &name))
			return name
		}
		tabTo := func(until string) {
			for range 20 {
				require.NoError(t, b.Press("Tab"))
				if focused() == until {
					return
				}
			}
			require.Fail(t, "no focus", until)
		}
		require.NoError(t, b.Evaluate(`document.querySelector('.home').focus(), true`, new(bool)))
		tabTo("Pods")
		require.NoError(t, b.Press("Enter"))
		require.NoError(t, b.Until(
			`document.querySelector('nav a[aria-current=page]').textContent === 'Pods' && document.querySelectorAll('tbody tr').length === 12`))
		require.NoError(t, b.Until(`document.querySelector('tbody a').textContent === 'shop/web-11'`)) // the oldest
		require.NoError(t, b.Until(`document.body.textContent.includes('300 Insufficient memory <b>.')`))

		tabTo("pod")
		require.NoError(t, b.Type("checkout-7d9c5"))
		require.NoError(t, b.Press("Enter"))
		require.NoError(t, b.Until(`document.getElementById('pod').validity.patternMismatch`))
		assert.Equal(t, base+"#pods", at())
		require.NoError(t, b.Evaluate(`document.getElementById('pod').select(), true`, new(bool)))
		require.NoError(t, b.Type(" shop/checkout-7d9c5 ")) // as it is copied
		require.NoError(t, b.Press("Enter"))
		require.NoError(t, b.Until(
			`document.querySelector('h1').textContent === 'Pod shop/checkout-7d9c5' && document.querySelectorAll('[aria-label="Nodes"] tbody tr').length === 64`))
		assert.Equal(t, base+"#pods/shop/checkout-7d9c5", at())
		for _, want := range []string{
			"It went to ip-10-0-0-2.eu-west-1.compute.internal 5m ago, which no other of 24 nodes was better than: score 9.",
			"0.30 cores, 256Mi; it requests 0.25 cores",
			"5m ago, by foresail-extender-x8f2p: 40 of 64 nodes are filtered.", "i/o timeout", "The pod went here",
			"0.80 + 0.25 + 0.25 of 4.00", "(1Gi) + 0 + 256Mi of 8Gi",
			"filtered for removing", "64 nodes",
		} {
			require.NoError(t, b.Until(fmt.Sprintf("document.body.textContent.includes(%q)", want)))
		}

		require.NoError(t, b.Open(base+"#pods"))
		require.NoError(t, b.Until(`document.querySelectorAll('tbody tr').length === 12`))
		tabTo("shop/web-11")
		require.NoError(t, b.Press("Enter"))
		require.NoError(t, b.Until(`document.body.textContent.includes('it waits for the pool workers to grow.')`))
		require.NoError(t, b.Until(
			`document.body.textContent.includes('1800 nodes; shown are 0 of 0 that passed, and 1000 of 1800 that were filtered')`))
		require.NoError(t, b.Until(`document.querySelectorAll('[aria-label="Nodes"] tbody tr').length === 1000`))
		require.NoError(t, b.Until(
			`document.querySelector('[aria-label="Nodes"] tbody td:nth-of-type(3)').textContent === 'filtered <b>&amp;'`))
		require.NoError(t, b.Open(base+"#pods/Shop/checkout"))
		require.NoError(t, b.Until(
			`document.querySelector('.decision').textContent.includes('namespace: "Shop": must be a DNS label, such as shop')`))
		require.NoError(t, b.Open(base+"#workerpools/workers"))
		require.NoError(t, b.Until(`document.querySelector('a[href="#pods/shop/web-9"]')?.textContent === 'shop/web-9'`))
	})

	t.Run("what if", func(t *testing.T) {
		for _, look := range []struct {
			width, height int
			scheme        string
		}{{390, 844, "dark"}, {1000, 1120, "light"}} {
			require.NoError(t, b.Look(look.width, look.height, look.scheme))
			openMetric(t, b, base)
			require.NoError(t, b.Evaluate(`[...document.querySelectorAll('summary')].at(-1).click(), true`, new(bool)))
			require.NoError(t, b.Until(
				`document.getElementById('whatif-threshold').value === '700m' && document.getElementById('whatif-startupTime').value === '24s'`))
			enter := func(field, value string) {
				require.NoError(t, b.Evaluate(fmt.Sprintf("document.getElementById('whatif-%s').select(), true", field),
					new(bool)))
				require.NoError(t, b.Type(value))
				require.NoError(t, b.Press("Enter"))
			}
			enter("maxReplicas", "0")
			require.NoError(t, b.Until(
				`document.body.textContent.includes('spec.maxReplicas: 0: must be at least minReplicas (1)')`))
			enter("maxReplicas", "20")
			require.NoError(t, b.Until(`document.querySelectorAll('[aria-label="Figures of the runs"] tbody tr').length === 4`))
			require.NoError(t, b.Until(
				`document.querySelectorAll('details svg.chart path:is(.limit, .load, .forecast, .planned)').length === 4`))
			require.NoError(t, b.Until(
				`document.body.textContent.includes('Played: 60 minutes') && document.body.textContent.includes('All pods are alike')`))
			fits(t, b)
		}
		require.NoError(t, b.Evaluate(`document.getElementById('whatif-threshold').closest('details').scrollIntoView(), true`,
			new(bool)))
		keep(t, b, "dashboard-whatif.png")
	})

	t.Run("events", func(t *testing.T) {
		require.NoError(t, b.Open(base+"#/"))
		require.NoError(t, b.Until(`document.querySelectorAll('tbody tr').length === 50`))
		require.NoError(t, b.Open(base+"#/shop/checkout"))
		require.NoError(t, b.Until(listed+
			`[0]?.textContent.includes('AboveThresholdNormalthe load of a pod will be 0.829 in 45s <b>&amp;1')`))
		require.NoError(t, b.Until(
			`document.querySelector('section[aria-label=Events]').textContent.includes('The newest 20 of 30.')`))
		// No more often than each 5 s, however often there is new data of the forecast.
		const asked = `performance.getEntriesByType('resource').filter((e) => e.name.includes('/local/v1/events/predictedmetrics/shop/checkout')).slice(-2)`
		require.NoError(t, b.Evaluate(`performance.clearResourceTimings(), true`, new(bool)))
		require.NoError(t, b.Until(asked+`.length === 2`))
		var apart float64
		require.NoError(t, b.Evaluate(`((two) => two[1].startTime - two[0].startTime)(`+asked+`)`, &apart))
		assert.GreaterOrEqual(t, apart, 5000.0)

		require.NoError(t, b.Open(base+"#workerpools/workers"))
		require.NoError(t, b.Until(listed+`[0]?.textContent.includes('LoadPredicted') && `+listed+
			`[1].querySelector('.bad').textContent === 'Warning'`))

		require.NoError(t, b.Open(base+"#/team-09/service-0009"))
		require.NoError(t, b.Until(
			`document.querySelector('section[aria-label=Events]').textContent.includes('which takes the right list of events in namespace team-09: events is forbidden: not yours')`))
		require.NoError(t, b.Until(`document.querySelectorAll('svg.chart path.load, svg.chart path.ready').length === 3 && `+
			listed+`.length === 0`))
		require.NoError(t, b.Open(base+"#/team-01/service-0001"))
		require.NoError(t, b.Until(
			`document.querySelector('section[aria-label=Events]').textContent.includes('The cluster has none')`))
	})

	t.Run("texts are no markup", func(t *testing.T) {
		require.NoError(t, b.Open(base+"#/team-09/service-0049"))
		require.NoError(t, b.Until(`document.querySelector('.decision')?.textContent.includes('read yet <b>&amp;')`))
	})

	assert.Empty(t, b.Problems(), "errors, warnings and violations of the policy")
	for _, asked := range b.Asked() {
		assert.True(t, strings.HasPrefix(asked, base) || asked == "about:blank", asked)
	}

	// What the test looks for is found.
	require.NoError(t, b.Open(base+"#/shop/none"))
	require.NoError(t, b.Until(
		`document.getElementById('status').textContent.includes('There is no PredictedMetric shop/none.')`))
	require.NoError(t, b.Evaluate(`document.body.setAttribute('style', 'color: red'), true`, new(bool)))
	problems := strings.Join(b.Problems(), "\n")
	assert.Contains(t, problems, "404")
	assert.Contains(t, problems, "Content Security Policy")
}
