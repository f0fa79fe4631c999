package lab

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
)

// notWritable returns a directory in which not even root can make a file.
func notWritable(t *testing.T) string {
	t.Helper()
	const dir = "/proc/self/fd"
	if _, err := os.Stat(dir); err != nil {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o500)) //nolint:gosec // a directory has to be entered
		return dir
	}
	return dir
}

// A trace of twenty seconds, which is played after a lead-in of a minute.
const shortTrace = "unix_seconds,requests_per_second\n1700000000,60\n1700000010,90\n1700000020,60\n"

func TestSimulateWritesTablesAndFiles(t *testing.T) {
	trace := clitest.File(t, "shop.csv", shortTrace)
	out := filepath.Join(t.TempDir(), "new", "out")
	args := []string{"simulate", "--trace", trace, "--scale", "2", "--seeds", "2", "--scalers", "keda,foresail-total",
		"--out", out}
	code, stdout, stderr := foresail(t, "", args...)
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, stdout,
		"shop (mean ± half the 95% interval over 2 seeds)\nSCALER          SUCCESS %     P99 ms ")
	assert.Contains(t, stdout, "\nkeda            100.00 ±0.00  ")
	assert.Contains(t, stdout, "\nforesail-total  100.00 ±0.00  ")
	assert.Contains(t, stdout,
		"\nConclusion: compared with keda, the share of requests that foresail-total serves is the same on shop for as many pod-seconds.\n")
	assert.Equal(t, "1 of 4 runs\n2 of 4 runs\n3 of 4 runs\n4 of 4 runs\n", stderr)

	var names []string
	first := map[string]string{}
	for _, e := range entries(t, out) {
		names = append(names, e)
		first[e] = read(t, filepath.Join(out, e))
	}
	assert.Equal(t, []string{
		"intervals.csv", "seeds.csv", "shop-answers.png", "shop-answers.svg", "shop-cost.png", "shop-cost.svg",
		"shop-latency.png", "shop-latency.svg", "shop-scaling.png", "shop-scaling.svg", "summary.csv",
	}, names)
	lines := strings.Split(first["summary.csv"], "\n")
	assert.Equal(t, "profile,scaler,seeds,success,mean_ms,p50_ms,p90_ms,p99_ms,errors,pod_seconds,under_s,over_s,actions,reversals", lines[0])
	assert.Regexp(t, `^shop,keda,2,1\.000000,\d+\.\d\d,.*,80\.00,0\.00,0\.00,0\.00,0\.00$`, lines[1])

	// Once more, over what is there.
	code, again, _ := foresail(t, "", args...)
	require.Equal(t, cli.ExitDone, code)
	assert.Equal(t, stdout, again)
	for name, content := range first {
		assert.True(t, content == read(t, filepath.Join(out, name)), "%s differs", name)
	}
}

func TestSimulateComparesThreeScalersByDefault(t *testing.T) {
	trace := clitest.File(t, "shop.csv", shortTrace)
	code, stdout, stderr := foresail(t, "", "simulate", "--trace", trace, "--seeds", "1")
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Regexp(t, `^shop \(1 seed\)\nSCALER .*\nkeda .*\nforesail-total .*\nclairvoyant .*\n\nConclusion: .*; with clairvoyant, which knows the future, it would be the same on shop\.\n$`, stdout)

	code, stdout, stderr = foresail(t, "", "simulate", "--trace", trace, "--seeds", "1", "--all")
	require.Equal(t, cli.ExitDone, code, stderr)
	for _, title := range []string{"shop: what users experienced (1 seed)\n", "shop: what it cost\n",
		"shop: difference from keda", "\nhpa-cpu ", "\nConclusion: "} {
		assert.Contains(t, stdout, title)
	}
	assert.NotContains(t, stdout, "calibration", "the paper has measured nothing of this")
}

// simulate and backtest have the flags that mean the same under the same names, with the same defaults.
func TestSimulateAndBacktestShareFlags(t *testing.T) {
	simulate, backtest := newSimulateCommand().Flags(), newBacktestCommand().Flags()
	for _, name := range []string{"trace", "scale", "scalers", "all", "seeds", "threshold", "max", "startup",
		"filename"} {
		require.NotNil(t, simulate.Lookup(name), name)
		require.NotNil(t, backtest.Lookup(name), name)
		assert.Equal(t, simulate.Lookup(name).DefValue, backtest.Lookup(name).DefValue, name)
	}
}

func entries(t *testing.T, folder string) []string {
	t.Helper()
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

func TestSimulateComparesModels(t *testing.T) {
	out := t.TempDir()
	code, stdout, stderr := foresail(t, "", "simulate", "--trace", clitest.File(t, "shop.csv", shortTrace), "--seeds",
		"1",
		"--scalers", "keda", "--variants", "--out", out)
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, stdout,
		"shop: success in % under other models of pods, and place\nSCALER             fitted      fifo ")
	assert.Contains(t, stderr, "6 of 6 runs\n")
	assert.Contains(t, read(t, filepath.Join(out, "variants.csv")),
		"profile,scaler,model,seeds,success,success_half,place\nshop,keda,fitted,1,1.000000,,1\n")
}

func TestSimulatePlaysAblations(t *testing.T) {
	out := t.TempDir()
	code, stdout, stderr := foresail(t, "", "simulate", "--trace", clitest.File(t, "shop.csv", shortTrace), "--seeds",
		"1",
		"--scalers", "keda", "--ablations", "--out", out)
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, stdout, `freshness, shop: age of the readings of pods (1 seed; difference from "each second")`)
	assert.Contains(t, stdout, `method, shop: method (1 seed; difference from "Adaptive")`)
	assert.NotContains(t, stdout, "sine", "only the load that was chosen")
	assert.Contains(t, read(t, filepath.Join(out, "ablations.csv")), "\nmethod,shop,keda,Adaptive,1,1.000000,,")
}

func TestSimulateTakesSettings(t *testing.T) {
	trace := clitest.File(t, "shop.csv", shortTrace)
	pods := func(args ...string) string {
		code, stdout, stderr := foresail(t, "",
			append([]string{"simulate", "--trace", trace, "--seeds", "1", "--scalers", "foresail-direct"}, args...)...)
		require.Equal(t, cli.ExitDone, code, stderr)
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		require.True(t, strings.HasSuffix(lines[1], "POD-SECONDS"), stdout)
		row := strings.Fields(lines[2])
		return row[len(row)-1]
	}
	assert.Equal(t, "80", pods(), "four pods are enough")
	assert.Equal(t, "40", pods("--min", "2"))
	assert.Equal(t, "140", pods("--max", "7", "--threshold", "0.05"))
	assert.Equal(t, "20", pods("--min", "1", "--max", "1"))
	assert.Equal(t, "91", pods("--max", "7", "--threshold", "0.2"))
	slow := clitest.File(t, "spec.yaml", "threshold: 700m\nmaxReplicas: 9\nholt: {levelUp: 10m, trendUp: 10m}\n")
	assert.Equal(t, "80", pods("--max", "7", "--threshold", "0.2", "--filename", slow),
		"the level of Holt hardly rises")
}

func TestSimulateReportsWhatWasFinishedWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	code := cli.Execute(ctx, newRoot(time.Now), []string{"simulate", "--seeds", "1"}, strings.NewReader(""), &out,
		&errs)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, errs.String(),
		"foresail simulate: interrupted after 0 of 6 runs, before every scaler had finished a seed")
	assert.Empty(t, out.String())
}

func TestSimulateRejectsUnusableArguments(t *testing.T) {
	trace := clitest.File(t, "shop.csv", shortTrace)
	var long strings.Builder
	long.WriteString("unix_seconds,requests_per_second\n")
	for _, at := range []string{"0", "7200", "14400", "21601"} {
		long.WriteString(at + ",1\n")
	}
	for args, want := range map[string]string{
		"ramp":                 `unexpected argument "ramp": foresail simulate takes flags only`,
		"--profile rampp":      `--profile: "rampp": must be one or more of ramp, spike, sine, sawtooth, noise, bursts, drift, falling, or file, which is that of --trace`,
		"--profile ramp,ramp":  `--profile: "ramp" twice: must be different names`,
		"--profile file":       "--trace: missing: must be given with --profile file",
		"--trace /nonexistent": "--trace: open /nonexistent: no such file or directory: must be a file: CSV with the header",
		"--trace " + clitest.File(t, "bad.csv",
			"unix_seconds,value\n1,2\n2,-2\n"): `line 3: value: "-2": must be a number, 0 or more`,
		"--trace " + clitest.File(t, "long.csv",
			long.String()): "long.csv is 6h0m1s long: must be at most 6h0m0s long: every request is simulated",
		"--trace " + trace + " --scale 0": "--scale: 0: must be above 0 and at most 1e+09",
		"--scalers kedda":                 `--scalers: "kedda": must be one or more of hpa-cpu, keda, paper, foresail-total, foresail-load,`,
		"--scalers keda/last-week":        `--scalers: "keda/last-week": must be one or more of hpa-cpu, keda, paper, foresail-total, foresail-load,`,
		"--scalers keda,keda":             `--scalers: "keda" twice: must be different names`,
		"--seeds 0":                       "--seeds: 0: must be from 1 to 1000",
		"--seeds many":                    `--seeds: "many": must be a whole number`,
		"--threshold 1":                   "--threshold: 1: must be above 0 and below 1",
		"--threshold NaN":                 "--threshold: NaN: must be above 0 and below 1",
		"--min 0":                         "--min: 0: must be from 1 to 1000",
		"--min 8 --max 7":                 "--max: 7: must be from --min (8) to 1000",
		"--startup 0s":                    "--startup: 0s: must be from 1s to 1h0m0s",
		"--filename /nonexistent":         "--filename: open /nonexistent",
		"--filename " + clitest.File(t, "spec.yaml",
			"threshold: 700m\nmaxReplicas: 9\nsaturation: 710m") + " --threshold 0.8": "saturation: 0.71: must be finite and above the threshold (0.8)",
		"--all --scalers keda":    "--all: true: must be left out where --scalers is given",
		"--out " + notWritable(t): "must be a directory that can be written to",
		"--out " + filepath.Join(trace,
			"below"): "--out: mkdir " + trace + ": not a directory: must be a directory that can be written to",
	} {
		code, out, stderr := foresail(t, "", append([]string{"simulate"}, strings.Fields(args)...)...)
		assert.Equal(t, cli.ExitUsage, code, args)
		assert.Contains(t, stderr, want, args)
		assert.Empty(t, out, args)
	}
}
