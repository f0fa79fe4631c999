package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPagesAreAsTheirFiguresAre(t *testing.T) {
	assert.NoError(t, run("../..", true, ""))
}

// Every table stands in a page, and every set of figures in a table.
func TestNothingIsLeftOver(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, match := range block.FindAllStringSubmatch(string(text), -1) {
			shown[match[1]] = true
		}
	}
	for name := range tables {
		assert.True(t, shown[name], "no page has the table %s", name)
	}
	for name := range sets {
		assert.FileExists(t, filepath.Join("../../docs/figures", name, "source.json"))
	}
}

func TestRenderReplacesWhatIsBetweenTheMarkers(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
	}
	write("ablations/source.json", `{"command": "foresail simulate", "commit": "abc", "machine": "2 cores"}`)
	write("ablations/ablations.csv", "ablation,profile,variant,success,success_minus_reference,success_minus_reference_half,p99_ms,pod_seconds\n"+
		"delay,ramp,15s,0.9997,,,1040.4,2212\ndelay,ramp,0s,0.9966,-0.0031,0.002,3723,2070\n")
	page, err := render("before\n<!-- figures: ablations -->\nold\n<!-- end -->\nafter", dir)
	require.NoError(t, err)
	assert.Equal(t, "before\n<!-- figures: ablations -->\n"+
		"| setting | ramp: success, % | ramp: p99, ms | ramp: pod-seconds | spike: success, % | spike: pod-seconds "+
		"| sine: above threshold, min | sine: pod-seconds | bursts: above threshold, min | bursts: pod-seconds |\n"+
		"|---|---|---|---|---|---|---|---|---|---|\n"+
		"| delay: 15s | 99.97 | 1,040 | 2,212 |  |  |  |  |  |  |\n| delay: 0s | 99.66 * | 3,723 | 2,070 |  |  |  |  |  |  |\n\n"+
		"Measured at abc on 2 cores by `foresail simulate`.\n<!-- end -->\nafter", page)

	_, err = render("<!-- figures: nothing -->\n<!-- end -->", dir)
	assert.EqualError(t, err, `figures: "nothing": there is no such table`)
	_, err = render("<!-- figures: live -->\n<!-- end -->", dir)
	assert.ErrorContains(t, err, "figures: live: open ")
}

func TestNumbers(t *testing.T) {
	assert.Equal(t, "1,234,567", grouped(1234567, 0))
	assert.Equal(t, "−1,234.50", grouped(-1234.5, 2))
	assert.Equal(t, "0.00", grouped(-0.001, 2))
	assert.Equal(t, "-", figure{column: "x"}.number(map[string]string{"x": ""}, ""))
}
