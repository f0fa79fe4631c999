package lab

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
)

// traffic returns a file with waves of 100 to 700 requests/s, a line a minute.
func traffic(t *testing.T, minutes int) string {
	var b strings.Builder
	b.WriteString("unix_seconds,requests_per_second\n")
	for m := range minutes + 1 {
		fmt.Fprintf(&b, "%d,%.2f\n", 1_700_000_000+60*m, 400-300*math.Cos(2*math.Pi*float64(m)/30))
	}
	return clitest.File(t, "traffic.csv", b.String())
}

func TestBacktestWritesTablesAndAReport(t *testing.T) {
	trace, out := traffic(t, 20), filepath.Join(t.TempDir(), "report")
	code, stdout, stderr := foresail(t, "", "backtest", "--trace", trace, "--capacity", "100", "--seeds", "1",
		"--pod-price", "0.04", "--minute-price", "2", "--out", out)
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, stdout,
		"traffic: 20m from 2023-11-14 22:13:20 UTC, one value every 1m, at most 700 requests/s.\nA pod handles 100 requests/s and takes 19s to start.")
	assert.Regexp(t, `(?m)^ +Foresail \(foresail-total\) +\d`, stdout)
	assert.Contains(t, stdout, "\nAdvice\n")
	assert.Regexp(t, `In money, Foresail costs \d+\.\d\d USD, .* an HPA, which costs \d+\.\d\d USD\.`, stdout)
	assert.Contains(t, stdout, "A pod costs 0.04 USD an hour, and a minute above the threshold 2.00 USD.")
	assert.Contains(t, stdout, "The report is in "+filepath.Join(out, "report.html"))
	for _, name := range []string{"summary.csv", "frontier.csv", "forecast.csv", "frontier.svg", "frontier.png",
		"timeline.svg", "timeline.png", "report.html"} {
		assert.FileExists(t, filepath.Join(out, name))
	}
	summary, err := os.ReadFile(filepath.Join(out, "summary.csv"))
	require.NoError(t, err)
	assert.Regexp(t, `^trace,scaler,above_threshold_minutes,saturated_minutes,pod_hours,under_s,over_s,actions,reversals,mase,momentary_minutes,sudden_minutes\ntraffic,keda,`, string(summary))
}

func TestBacktestWithoutAFrontier(t *testing.T) {
	out := t.TempDir()
	code, _, stderr := foresail(t, "", "backtest", "--trace", traffic(t, 20), "--seeds", "1", "--scalers",
		"keda,foresail-total", "--advise=false", "--frontier=false", "--out", out)
	require.Equal(t, cli.ExitDone, code, stderr)
	entries, err := os.ReadDir(out)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	assert.Equal(t, []string{"forecast.csv", "report.html", "summary.csv"}, names)
}

func TestHelpExplainsTimeAboveTheThreshold(t *testing.T) {
	for command, want := range map[string]string{
		"backtest": "Time above the threshold counts the seconds in which ready pods had more\nload than --threshold, divided by 60",
		"simulate": "Time above the threshold counts the\nseconds in which ready pods had more load than the threshold, divided by 60",
	} {
		code, stdout, stderr := foresail(t, "", command, "--help")
		require.Equal(t, cli.ExitDone, code, stderr)
		assert.Contains(t, stdout, want)
	}
}

func TestBacktestPlaysScalersThatKnowEarlierDays(t *testing.T) {
	code, stdout, stderr := foresail(t, "", "backtest", "--trace", traffic(t, 20), "--scalers",
		"keda,keda/yesterday,keda/last-week", "--seeds", "1", "--advise=false")
	require.Equal(t, cli.ExitDone, code, stderr)
	rows := regexp.MustCompile(`(?m)^.*\(keda\S*\) +(.*)$`).FindAllStringSubmatch(stdout, -1)
	require.Len(t, rows, 3)
	assert.Equal(t, rows[0][1], rows[1][1], "there is no yesterday")
	assert.Equal(t, rows[0][1], rows[2][1])
	_, stdout, _ = foresail(t, "", "backtest", "--help")
	assert.Contains(t, stdout, "max_over_time(load[30m] offset 6d23h30m)")
}

func TestBacktestPlaysFewerSeedsOfLongTraces(t *testing.T) {
	o := backtestOptions{playOptions: playOptions{seeds: defaultSeeds}}
	assert.Equal(t, 20, o.seedsFor(58*time.Minute))
	assert.Equal(t, 3, o.seedsFor(7*time.Hour))
	assert.Equal(t, 1, o.seedsFor(27*24*time.Hour))
	o.seedsGiven = true
	assert.Equal(t, 20, o.seedsFor(27*24*time.Hour))
}

func TestBacktestDerivesACapacity(t *testing.T) {
	code, stdout, stderr := foresail(t, "", "backtest", "--trace", traffic(t, 60), "--scale", "0.5", "--scalers",
		"keda,instant", "--seeds", "1", "--advise=false")
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, stdout, "at most 350 requests/s.\nA pod handles 50 requests/s (derived, ",
		"350 requests/s take half of 20 pods at 0.7")
	assert.NotContains(t, stdout, "Advice")
	assert.NotContains(t, stdout, "foresail")
}

func TestBacktestTakesASpec(t *testing.T) {
	spec := clitest.File(t, "spec.yaml", "threshold: 60\nminReplicas: 3\nmaxReplicas: 12\n")
	code, stdout, stderr := foresail(t, "", "backtest", "--trace", traffic(t, 20), "--capacity", "100", "--filename",
		spec, "--max", "15", "--scalers", "foresail-total", "--seeds", "1", "--advise=false")
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, stdout, "3 to 15 pods; threshold 0.6.")
}

func TestBacktestTakesLimitsThatCanBePlayed(t *testing.T) {
	for _, test := range []struct{ spec, flags, want string }{
		{"threshold: 500m", "", "1 to 20 pods;"},
		{"threshold: 500m", "--capacity 10", "1 to 280 pods;"}, // 140 of them have 700 requests/s
		{"threshold: 500m", "--capacity 0.1", "1 to 1000 pods;"},
		{"threshold: 500m", "--max 7", "1 to 7 pods;"},
		{"threshold: 500m, minReplicas: 30", "", "30 to 60 pods;"},
		{"threshold: 500m, minReplicas: 2, maxReplicas: 9", "", "2 to 9 pods;"},
		{"threshold: 500m, maxReplicas: 100", "--min 30", "30 to 100 pods;"},
		{"threshold: 500m, maxReplicas: 25", "--min 30",
			"--min: 30: must be at most 25, the maximum of --filename, or --max must be given"},
		{"threshold: 500m, minReplicas: 0, maxReplicas: 9, source: {prometheus: {address: 'http://p', query: x, scope: Target}}", "", "1 to 9 pods;"},
		{"threshold: 500m, maxReplicas: 5000", "",
			"--filename: maxReplicas 5000: must be one of at most 1000, or --max must be given"},
		{"threshold: 500m, minReplicas: 1001", "",
			"--filename: minReplicas 1001: must be one of at most 1000, or --min must be given"},
		{"threshold: 500m, minReplicas: 9", "--max 7",
			"--filename: minReplicas 9: must be one of at most 7, or --min must be given"},
	} {
		arguments := []string{"backtest", "--trace", traffic(t, 20), "--filename",
			clitest.File(t, "spec.yaml", "{"+test.spec+"}"), "--scalers", "keda", "--seeds", "1", "--advise=false"}
		code, stdout, stderr := foresail(t, "", append(arguments, strings.Fields(test.flags)...)...)
		assert.Contains(t, stdout+stderr, test.want, "%s %s: exit code %d", test.spec, test.flags, code)
	}
}

func TestBacktestReadsPrometheus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "me" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		assert.Equal(t, "rate(x[1m])", r.FormValue("query"))
		var samples []string
		for at := secondsIn(t, r, "start"); at <= secondsIn(t, r, "end"); at += secondsIn(t, r, "step") {
			samples = append(samples, fmt.Sprintf(`[%.3f,"70"]`, at))
		}
		series := fmt.Sprintf(`{"metric":{"pod":"%%d"},"values":[%s]}`, strings.Join(samples, ","))
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s,%s]}}`, fmt.Sprintf(series, 1),
			fmt.Sprintf(series, 2))
	}))
	defer server.Close()
	ask := []string{"backtest", "--prometheus", server.URL, "--query", "rate(x[1m])", "--since", "1h", "--step", "30s",
		"--scalers", "keda", "--seeds", "1", "--advise=false"}
	code, _, stderr := foresail(t, "", ask...)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, "HTTP status 401 Unauthorized")

	servers := clitest.File(t, "servers.yaml",
		fmt.Sprintf("servers: [{address: %q, httpClientConfig: {basic_auth: {username: me, password: secret}}}]",
			server.URL))
	code, stdout, stderr := foresail(t, "", append(ask, "--prometheus-config-file", servers)...)
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Regexp(t, `^prometheus: 1h from .*, one value every 30s, at most 140 requests/s\.`, stdout)
}

func secondsIn(t *testing.T, r *http.Request, name string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(r.FormValue(name), 64)
	assert.NoError(t, err)
	return v
}

func TestBacktestRejectsUnusableArguments(t *testing.T) {
	trace := traffic(t, 20)
	empty := clitest.File(t, "empty.csv", "")
	level := clitest.File(t, "zero.csv", "unix_seconds,requests_per_second\n0,0\n600,0\n1200,0\n")
	spec := clitest.File(t, "spec.yaml", "threshold: 60\nmaxReplicas: 12\n")
	only := "backtest --trace " + trace + " "
	ask := "backtest --prometheus http://localhost:9090 --query x "
	for args, want := range map[string]string{
		"backtest":                                    "--trace: missing: must be a file with the traffic, or --prometheus and --query must be given",
		"backtest --trace /nowhere":                   "--trace: open /nowhere: no such file or directory: must be a file: CSV",
		"backtest --trace " + empty:                   "it is empty: must be CSV",
		"backtest --trace " + level:                   "--capacity: missing: must be given: the trace is zero nearly everywhere",
		"backtest --capacity 1 --trace " + level:      "the trace is zero everywhere",
		"backtest --trace " + traffic(t, 5):           "the trace is 5m0s long: must be at least 10m0s",
		only + "--prometheus http://u:p@localhost":    `--prometheus: "…@localhost": must be left out where --trace is given`,
		only + "--query x":                            `--query: "x": must be left out unless --prometheus is given`,
		only + "--capacity -1":                        "--capacity: -1: must be finite and above 0, or 0 to derive it",
		only + "--capacity NaN":                       "--capacity: NaN: must be",
		only + "--scale 0":                            "--scale: 0: must be above 0 and at most 1e+09",
		only + "--threshold 1":                        "--threshold: 1: must be above 0 and below 1",
		only + "--startup 0s":                         "--startup: 0s: must be from 1s to 1h0m0s",
		only + "--min 0":                              "--min: 0: must be from 1 to 1000",
		only + "--min 9 --max 8":                      "--max: 8: must be from --min (9) to 1000",
		only + "--seeds 0":                            "--seeds: 0: must be from 1 to 1000",
		only + "--minute-price 2USD":                  "--pod-price: missing: must be an amount of 0 or more and its currency, such as 0.04USD, as the other price is given",
		only + "--pod-price 1 --minute-price -1":      `--minute-price: "-1": must be an amount of 0 or more and its currency`,
		only + "--pod-price 1EUR --minute-price 2USD": `--minute-price: "2USD": must be in the currency of --pod-price (EUR)`,
		only + "--pod-price 0 --minute-price 0":       `--pod-price: "0": must be above 0, or --minute-price must be`,
		only + "--scalers keda,x":                     `--scalers: "x": must be one or more of hpa-cpu, keda`,
		only + "--scalers keda,keda":                  `--scalers: "keda" twice: must be different names`,
		only + "--filename /nowhere":                  "--filename: open /nowhere",
		only + "--filename " + spec:                   "--capacity: missing: must be given where --filename has a threshold of requests (60)",
		only + "--capacity 50 --filename " + spec:     "--filename: threshold 60: must be one with a threshold below --capacity (50)",
		only + "x": `unexpected argument "x": foresail backtest takes flags only`,
		only + "--out " + filepath.Join(trace,
			"below"): "--out: mkdir " + trace + ": not a directory: must be a directory that can be written to",
		"backtest --prometheus http://localhost:9090": "--query: missing: must be PromQL that returns requests per second",
		"backtest --prometheus x:90 --query x":        `--prometheus: "x:90": must be an http or https URL`,
		ask + "--since soon":                          `--since: "soon": must be a span of time, such as 30s, 12h or 7d`,
		ask + "--step 100ms":                          `--step: "100ms": must be a span of time, such as 30s, 12h or 7d, at least 1s`,
		ask + "--since 1m --step 1m":                  "--step: 1m: must be such that there are 2 to 1000000 in --since (1m)",
		ask + "--prometheus-config-file /nowhere":     "--prometheus-config-file: read the file of Prometheus servers",
	} {
		code, stdout, stderr := foresail(t, "", strings.Fields(args)...)
		assert.Equal(t, cli.ExitUsage, code, args)
		assert.Contains(t, stderr, want, args)
		assert.Empty(t, stdout, args)
	}
}
