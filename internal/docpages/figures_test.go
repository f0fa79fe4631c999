package docpages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func writeFigures(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
	}
	return dir
}

func TestTableOfFiguresHasACaption(t *testing.T) {
	dir := writeFigures(t, map[string]string{
		"ablations/source.json": `{"command": "foresail simulate", "commit": "abc", "machine": "2 cores"}`,
		"ablations/ablations.csv": "ablation,profile,variant,success,success_minus_reference,success_minus_reference_half,p99_ms,pod_seconds\n" +
			"delay,ramp,15s,0.9997,,,1040.4,2212\ndelay,ramp,0s,0.9966,-0.0031,0.002,3723,2070\n",
	})
	table, err := ablations(dir)
	require.NoError(t, err)
	assert.Equal(t, "| setting | ramp: success, % | ramp: p99, ms | ramp: pod-seconds | spike: success, % | spike: pod-seconds "+
		"| sine: above threshold, min | sine: pod-seconds | bursts: above threshold, min | bursts: pod-seconds |\n"+
		"|---|---|---|---|---|---|---|---|---|---|\n"+
		"| delay: 15s | 99.97 | 1,040 | 2,212 | | | | | | |\n| delay: 0s | 99.66 * | 3,723 | 2,070 | | | | | | |\n\n"+
		"Measured at abc on 2 cores by `foresail simulate`.\n", table)

	_, err = FigureTables(dir)
	assert.ErrorContains(t, err, "no such file")
}

func TestRecurringIsTheDefaultTarget(t *testing.T) {
	files := map[string]string{}
	for _, set := range []string{"twitter-week", "nasa", "nab"} {
		files[set+"/source.json"] = `{"command": "foresail backtest", "commit": "abc", "machine": "2 cores"}`
		files[set+"/frontier.csv"] = "scaler,target,above_threshold_minutes,pod_hours,keda_minutes_at_same_pods\n" +
			"keda,0.700,73.82,88.18,\nkeda/yesterday,0.600,5.7,145.92,1\nkeda/yesterday,0.700,27,129.64,7.6\nkeda/last-week,0.700,73.82,88.18,\n"
	}
	table, err := recurring(writeFigures(t, files))
	require.NoError(t, err)
	assert.Contains(t, table, "\n| NASA | 73.8 / 88.2 | 27.0 / 129.6 (7.6) | 73.8 / 88.2 (-) | - / - (-) |\n")
}

func TestFewRequestsComparesAtEqualPods(t *testing.T) {
	files := map[string]string{}
	for _, requests := range []string{"nasa", "0.2", "0.5", "1", "2", "5", "20"} {
		files["few-"+requests+"/source.json"] = `{"command": "foresail backtest", "commit": "abc", "machine": "2 cores"}`
		files["few-"+requests+"/frontier.csv"] = "scaler,target,above_threshold_minutes,pod_hours\n" +
			"keda,0.600,10,140\nkeda,0.700,20,120\nkeda,0.800,40,100\n" +
			"foresail-total,0.600,8,120\nforesail-total,0.700,12.34,110\n" +
			"instant,0.600,500,109\nclairvoyant,0.600,0,120\nclairvoyant,0.700,0,110\n"
	}
	table, err := fewRequests(writeFigures(t, files))
	require.NoError(t, err)
	assert.Contains(t, table, "\n| 0.5 | 30.0 | - | 12.3 | - | - | 0.0 |\n",
		"a dash where no target has as few pods, or as many")
	assert.Contains(t, table, "\n| 0.15 (NASA) | 30.0 |")
}

func TestForesightIsComparedWithTheSameBehavior(t *testing.T) {
	files := map[string]string{}
	for _, set := range []string{"azure", "twitter", "twitter-week", "nasa", "nab"} {
		files[set+"/source.json"] = `{"command": "foresail backtest", "commit": "abc", "machine": "2 cores"}`
		files[set+"/frontier.csv"] = "scaler,target,above_threshold_minutes,pod_hours\n" +
			"keda,0.700,1,120\nkeda/same-behavior,0.500,0,140\nkeda/same-behavior,0.600,0,130\nkeda/same-behavior,0.700,20,110\nkeda/same-behavior,0.800,40,100\n" +
			"foresail-total,0.500,8,135\nforesail-total,0.600,5,120\nforesail-total,0.700,12,105\nforesail-total,0.800,12,90\nclairvoyant,0.700,33,105\n"
	}
	table, err := foresight(writeFigures(t, files))
	require.NoError(t, err)
	assert.Contains(t, table, "\n| NAB | - (-) | - (-) | 0.50 (-) | 0.40 (1.10) | - (-) | - (-) |\n",
		"a dash without a target that has as many pods, or where the rival is at zero")
	assert.Equal(t, 5, strings.Count(table, "0.40 (1.10)"))
}

func TestAheadComparesWithTheBest(t *testing.T) {
	files := map[string]string{}
	for _, trace := range aheadTraces {
		for _, start := range aheadStarts {
			set := aheadSet(trace.set, start)
			files[set+"/source.json"] = `{"command": "foresail backtest", "commit": "abc", "machine": "2 cores"}`
			files[set+"/forecast.csv"] = "forecast,foresail_by_it_of_rate,late_share,late_share_after_6h\nmean,0.9,,\nline,0.7,,\nyesterday,,,\nforesail-total,,0.0092,0.0081\n"
		}
	}
	table, err := ahead(writeFigures(t, files))
	require.NoError(t, err)
	assert.Contains(t, table, "\n| NAB | 0.90 (0.92; 0.81) | 0.90 (0.92; 0.81) | 0.90 (0.92; 0.81) |\n")
}

func TestSizeReadsTheOutputOfBenchmarks(t *testing.T) {
	dir := writeFigures(t, map[string]string{
		"size/source.json": `{"command": "go test", "commit": "abc", "machine": "2 cores"}`,
		"size/bench.txt":   "goos: linux\nBenchmarkPods/pods=500-2 \t 1\t 0 ns/op\t 109.4 MiB-resident\t 0.1234 cores\nPASS\n",
	})
	table, err := size(dir)
	require.NoError(t, err)
	assert.Contains(t, table, "| 500 pods, source `pods`, 1 s | 0.12 | 109 |\n")
	assert.Contains(t, table, "| - | - |\n", "what was not measured")
}

func TestMeasureNamesTheFigures(t *testing.T) {
	dir := t.TempDir()
	assert.ErrorContains(t, Measure(dir, "others", "papers"),
		"papers: there are no such figures: want one of ablations, ahead-azure-25s, ")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing was measured before")
}

func TestNumbers(t *testing.T) {
	assert.Equal(t, "1,234,567", grouped(1234567, 0))
	assert.Equal(t, "−1,234.50", grouped(-1234.5, 2))
	assert.Equal(t, "0.00", grouped(-0.001, 2))
	assert.Equal(t, "-", figure{column: "x"}.number(map[string]string{"x": ""}, ""))
}
