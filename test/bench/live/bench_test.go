package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"

	labscaler "github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/test/env/stack"
)

func TestRejectsUnusableFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--profiles=steady":  `--profiles: profile: "steady": must be one of ramp, spike, hourly`,
		"--scalers=vpa,keda": `--scalers: scaler: "vpa": must be one of hpa-cpu, keda, current, foresail-total`,
		"--scale=0.5":        "--scale: 0.5: must be from 1 to 100",
		"--scale=NaN":        "--scale: NaN: must be from 1 to 100",
		"more":               "unknown command",
	} {
		c := command(io.Discard, io.Discard)
		c.SetArgs([]string{args})
		require.ErrorContains(t, c.ExecuteContext(t.Context()), want)
	}
	_, err := pick("scaler", defaultScalers(), scalers(), func(s scaler) string { return s.name })
	require.NoError(t, err)
}

func TestManifests(t *testing.T) {
	for _, sc := range scalers() {
		s := stage{settings: settings{scale: 4}, scaler: sc}
		if sc.prometheus {
			s.prometheus = "http://127.0.0.1:9090"
		}
		for _, file := range []string{"app.yaml", sc.manifest} {
			manifest, err := s.manifest(file)
			require.NoError(t, err, sc.name)
			for document := range strings.SplitSeq(string(manifest), "\n---\n") {
				var object map[string]any
				require.NoError(t, yaml.UnmarshalStrict([]byte(document), &object), "%s of %s:\n%s", file, sc.name,
					document)
				assert.NotEmpty(t, object["kind"])
				assert.NotContains(t, document, "<no value>")
			}
			if file == "app.yaml" {
				assert.Contains(t, string(manifest), "32ms", "four times the work")
			}
		}
	}
}

func TestSettingsAreThoseOfTheSimulator(t *testing.T) {
	sc, err := pick("scaler", []string{"foresail-total"}, scalers(), func(s scaler) string { return s.name })
	require.NoError(t, err)
	s := stage{settings: settings{scale: 4}, scaler: sc[0]}
	manifest, err := s.manifest(forecastManifest)
	require.NoError(t, err)
	_, document, _ := bytes.Cut(manifest, []byte("\n---\n"))
	var hpa autoscalingv2.HorizontalPodAutoscaler
	require.NoError(t, yaml.UnmarshalStrict(document, &hpa))
	assert.Equal(t, asYAML(t, labscaler.RecommendedBehavior()), asYAML(t, hpa.Spec.Behavior))

	want := labscaler.RecommendedParams()
	want.Threshold, want.Min, want.Max = threshold, minPods, maxPods
	got, err := s.settings.forecast()
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func asYAML(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	require.NoError(t, err)
	return string(text)
}

func TestPodSeconds(t *testing.T) {
	at := func(s float64, replicas int) moment {
		return moment{at: time.Duration(s * float64(time.Second)), State: stack.State{Replicas: replicas}}
	}
	moments := []moment{at(1, 4), at(2, 4), at(4, 8), at(5.5, 8)}
	assert.InDelta(t, 4+4+16, podSeconds(clip(moments, 5*time.Second)), 1e-9, "the last comes too late")
	assert.Zero(t, podSeconds(nil))
}

func TestLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.Zero(t, lateness(ctx), "a bubble's clock waits for everybody")
	})
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	assert.EqualValues(t, 100, quantile(hundred, 0.99))
	assert.EqualValues(t, 51, quantile(hundred, 0.5))
	assert.Zero(t, quantile(nil, 0.5))
}

func TestTable(t *testing.T) {
	live := row{profile: "ramp", scaler: "keda", runs: 1, success: 0.95, mean: 1000, p50: 150, p90: 3500, p99: 10000,
		sent: 100, failed: 5, podSeconds: 2000, late: 1.5}
	other := live
	other.scaler = "hpa-cpu"
	simulated := live
	simulated.simulated, simulated.runs, simulated.success, simulated.p90, simulated.podSeconds, simulated.late = true, 20, 0.97, 3000, 2100, 0
	lines := strings.Split(table([]row{live, other, simulated}), "\n")
	require.Len(t, lines, 6)
	assert.Regexp(t, `^ramp +keda +live +95.00% +1000 +150 +3500 +10000 +5 +0 +2000$`, lines[1])
	assert.Regexp(t, `^ramp +keda +simulated +97.00% `, lines[2])
	assert.Regexp(t, `^ +difference +-2.00 +\+0 +\+0 +\+500 +\+0 +\+0 +\+0 +-100$`, lines[3])
	assert.Contains(t, lines[4], "hpa-cpu", "one that was not simulated stands alone")
	assert.Empty(t, table(nil))

	file := filepath.Join(t.TempDir(), "summary.csv")
	require.NoError(t, writeSummary(file, []row{live, simulated}))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, `profile,scaler,where,runs,success,mean_ms,p50_ms,p90_ms,p99_ms,sent,failed,dropped,pod_seconds,late_ms
ramp,keda,live,1,0.95000,1000.0,150.0,3500.0,10000.0,100.0,5.0,0.0,2000.0,1.5
ramp,keda,simulated,20,0.97000,1000.0,150.0,3000.0,10000.0,100.0,5.0,0.0,2100.0,0.0
`, string(content))
}

func TestSimulationIsOfTheSameLoad(t *testing.T) {
	c := settings{scale: 4, lead: 10 * time.Second, startup: 3 * time.Second}
	ps := profiles()
	for i := range ps {
		ps[i] = ps[i].divided(c.scale).shortened(5)
	}
	scs, err := pick("scaler", []string{"current", "foresail-total"}, scalers(),
		func(s scaler) string { return s.name })
	require.NoError(t, err)
	rows, err := simulate(t.Context(), c, ps, scs, 1)
	require.NoError(t, err)
	require.Len(t, rows, 2*len(ps))
	assert.Equal(t, "current", rows[0].scaler)
	for i, r := range rows {
		p := ps[i/2]
		assert.Equal(t, p.name, r.profile)
		assert.InDelta(t, p.load.Requests(p.load.Duration()), r.sent+r.dropped, 2, "%s: the lead-in does not count",
			p.name)
		assert.GreaterOrEqual(t, r.podSeconds, minPods*p.load.Duration().Seconds())
	}
}

// TestWhatRecursIsKnown: a load that came each hour is one that pods are ready for.
func TestWhatRecursIsKnown(t *testing.T) {
	c := settings{scale: 1, lead: lead, startup: 19 * time.Second}
	ps, err := profilesNamed([]string{"hourly"})
	require.NoError(t, err)
	scs, err := pick("scaler", []string{"foresail-total"}, scalers(), func(s scaler) string { return s.name })
	require.NoError(t, err)
	known, err := simulate(t.Context(), c, ps, scs, 1)
	require.NoError(t, err)
	ps[0].recurs = 0
	unknown, err := simulate(t.Context(), c, ps, scs, 1)
	require.NoError(t, err)
	assert.Zero(t, known[0].dropped)
	assert.Positive(t, unknown[0].dropped)
}
