package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
	"github.com/foresail/foresail/test/env/terminal"
)

const longDecision = "8 replicas instead of 7: planned load 5.43 (forecast 5.11 in 38s + margin 0.32) / threshold 0.7 = 7.76 replicas"

func profileOfDefault(t *testing.T) loadgen.Profile {
	t.Helper()
	p, err := loadgen.ParseProfile(defaultProfile)
	require.NoError(t, err)
	return p
}

// sceneAt is what is shown so many seconds after the beginning of a load that outgrows its pods.
func sceneAt(t *testing.T, seconds int) scene {
	t.Helper()
	s := scene{kubeconfig: "/tmp/foresail-1/kubeconfig", profile: profileOfDefault(t),
		at: time.Duration(seconds) * time.Second}
	for _, a := range applications() {
		p := panel{app: a}
		for i := 1; i <= seconds; i++ {
			p.moments = append(p.moments, momentAt(a, s.profile, time.Duration(i)*time.Second))
		}
		p.forecast = forecast{known: true, load: 0.81, horizon: 38 * time.Second,
			decision: &v1alpha1.LastDecision{Message: longDecision}, age: 12 * time.Second}
		if a.Reactive {
			p.forecast.horizon = 0
		}
		s.panels = append(s.panels, p)
	}
	return s
}

// momentAt has a pod more each 20 s, ready 20 s later.
func momentAt(a stack.App, p loadgen.Profile, at time.Duration) stack.Moment {
	m := stack.Moment{At: at, Rate: p.Rate(at)}
	m.Replicas = 2 + int(at/(20*time.Second))
	m.Ready = max(2, 2+int((at-20*time.Second)/(20*time.Second)))
	m.Load = m.Rate * a.ServiceTime.Seconds() / float64(m.Ready)
	m.Served = m.Load * float64(m.Ready) * 1.4
	m.Stats = loadgen.Stats{
		Counts: loadgen.Counts{Sent: 12345, OK: 12000, Failed: 123, TimedOut: 45, Dropped: 67},
		Rate:   m.Rate, Recent: loadgen.Latency{Count: 900, P50: 84 * time.Millisecond, P90: 10 * time.Second},
	}
	return m
}

func TestViewFitsTheTerminal(t *testing.T) {
	for _, seconds := range []int{0, 1, 61, 125, 200} {
		for _, size := range [][2]int{{80, 24}, {80, 25}, {120, 50}, {200, 70}, {81, 20}, {60, 12}, {10, 3}, {1, 1}} {
			t.Run(fmt.Sprintf("%dx%d after %d s", size[0], size[1], seconds), func(t *testing.T) {
				lines := view(sceneAt(t, seconds), size[0], size[1])
				assert.LessOrEqual(t, len(lines), size[1])
				for _, l := range lines {
					assert.LessOrEqual(t, l.Width(), size[0], l.Render(false))
					assert.NotContains(t, l.Render(false), "\x1b")
					assert.NotContains(t, l.Render(false), "\n")
				}
			})
		}
	}
}

func TestViewFillsAnOrdinaryTerminal(t *testing.T) {
	lines := view(sceneAt(t, 125), 80, 24)
	assert.Len(t, lines, 24)
	all := rendered(lines)
	for _, want := range []string{
		"climbing to 600 requests/s", "2:05 of 2:50", "575 requests/s",
		"PREDICTED", "REACTIVE", "load in 38 s", "load as read",
		"desired 12", "asked 8", "ready 7", "●●●●●●●○····", "0.82 of 0.70", "above the threshold", "p50 84 ms",
		"p90 10.0 s", "failed 168", "dropped 67",
		"12 s ago: 8 replicas instead of 7", "export KUBECONFIG=/tmp/foresail-1/kubeconfig", "Ctrl-C",
	} {
		assert.Contains(t, all, want)
	}
	assert.NotContains(t, all, "…", "nothing has to be cut at 80 columns")
}

func TestViewGrowsWithTheTerminal(t *testing.T) {
	assert.Greater(t, len(view(sceneAt(t, 125), 120, 50)), 40)
}

func TestViewKeepsWhatMattersOnASmallTerminal(t *testing.T) {
	all := rendered(view(sceneAt(t, 125), 80, 16))
	assert.Contains(t, all, "REACTIVE")
	assert.NotContains(t, all, "so far")
	assert.Equal(t, 2, strings.Count(all, "desired"))
}

func TestViewSaysWhyThereIsNoForecast(t *testing.T) {
	s := sceneAt(t, 30)
	p := &s.panels[0]
	p.forecast = forecast{}
	p.moments[29].Err = errors.New("no pod of demo/predicted has been read yet")
	all := rendered(view(s, 80, 24))
	assert.Contains(t, all, "none: no pod of demo/predicted has been read yet")
	assert.Contains(t, all, "desired ?")
}

func TestColoursAreAllThatRenderingAdds(t *testing.T) {
	for _, l := range view(sceneAt(t, 125), 80, 24) {
		coloured := l.Render(true)
		for _, s := range []terminal.Style{strong, faint, good, bad, accent} {
			coloured = strings.ReplaceAll(coloured, "\x1b["+string(s)+"m", "")
		}
		assert.Equal(t, l.Render(false), strings.ReplaceAll(coloured, "\x1b[0m", ""))
	}
}

func TestPlainLines(t *testing.T) {
	s := sceneAt(t, 125)
	for _, p := range s.panels {
		text := p.plain(s.at)
		assert.NotContains(t, text, "\x1b")
		assert.NotContains(t, text, "\n")
		assert.Contains(t, text, "replicas 12 desired 8 asked 7 ready")
	}
	assert.Contains(t, panel{app: s.panels[0].app}.plain(0), "no forecast: the adapter has not reported anything yet")
}

func TestLinesArePrintedEveryFiveSeconds(t *testing.T) {
	var out strings.Builder
	show := newLines(&out)
	show(scene{profile: profileOfDefault(t), panels: []panel{{app: applications()[0]}}})
	assert.Empty(t, out.String(), "nothing has been seen yet")
	for seconds := range 21 {
		show(sceneAt(t, seconds))
	}
	assert.Equal(t, 2*len([]int{1, 5, 10, 15, 20}), strings.Count(out.String(), "\n"))
}

func TestPhases(t *testing.T) {
	p := withWayDown(profileOfDefault(t))
	for at, want := range map[time.Duration]string{
		0:                 "steady at 10 requests/s",
		20 * time.Second:  "climbing to 600 requests/s",
		150 * time.Second: "steady at 600 requests/s",
		180 * time.Second: "falling to 10 requests/s",
		p.Duration():      "waiting for the last answers",
	} {
		assert.Equal(t, want, phase(p, at), "at %s", at)
	}
}

func TestDesiredIsWhatTheServedValueStandsFor(t *testing.T) {
	a := applications()[0]
	for served, want := range map[float64]int{0: 4, 2.8: 4, 2.801: 5, 7: 10, 7.001: 11, 99: 20} {
		n, ok := desired(a, stack.Moment{At: 1, Served: served})
		assert.True(t, ok)
		assert.Equal(t, want, n, "served %g", served)
	}
	_, ok := desired(a, stack.Moment{At: 1, Err: errors.New("stale")})
	assert.False(t, ok, "what is not served is unknown")
}

func TestNeeded(t *testing.T) {
	a := applications()[0]
	for rate, want := range map[float64]int{0: 4, 280: 4, 281: 5, 600: 9} {
		assert.Equal(t, want, needed(a, rate), "at %g requests/s", rate)
	}
}

func rendered(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Render(false) + "\n")
	}
	return b.String()
}
