package lab

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/docpages"
)

// slower is how long users of a pod with one worker wait at a load.
func slower(load float64, r *rand.Rand) float64 {
	return 0.02 / max(0.001, 1-load) * (0.8 + 0.4*r.Float64())
}

// loadTest is a file of one that raises the load of a pod slowly, twice.
func loadTest(most float64) string {
	r := rand.New(rand.NewPCG(16, 0))
	var b strings.Builder
	b.WriteString("unix_seconds,load,latency_seconds\n")
	for i := range 800 {
		load := most * float64(i%400) / 400
		fmt.Fprintf(&b, "%d,%.4f,%.4f\n", 1_700_000_000+15*i, load, slower(load, r))
	}
	return b.String()
}

// TestThresholdIsGenerated compares an answer in the page with that of a fixture, or writes it (`make docs`).
func TestThresholdIsGenerated(t *testing.T) {
	code, stdout, stderr := foresail(t, loadTest(0.95), "threshold", "--input", "-", "--objective", "100ms")
	require.Equal(t, cli.ExitDone, code, stderr)
	docpages.Verify(t, "../../../docs/metric.md", "threshold", "```\n"+strings.TrimRight(stdout, "\n")+"\n```")
}

// measured answers range queries as a Prometheus that has the load of two pods, a minute of which
// is not known, and their latency.
func measured(t *testing.T) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/query_range", func(w http.ResponseWriter, r *http.Request) {
		number := func(name string) int64 {
			v, err := strconv.ParseFloat(r.FormValue(name), 64)
			assert.NoError(t, err)
			return int64(v)
		}
		r2 := rand.New(rand.NewPCG(16, 1))
		series := map[string][][2]any{}
		for at := number("start"); at <= number("end"); at += number("step") {
			load := 0.475 * (1 - math.Cos(float64(at)/3600*math.Pi))
			add := func(name string, v float64) {
				series[name] = append(series[name], [2]any{at, strconv.FormatFloat(v, 'g', -1, 64)})
			}
			switch r.FormValue("query") {
			case "load":
				if at%3600 != 0 {
					add("a", 0.9*load)
					add("b", 1.1*load)
				}
			case "latency":
				if load < 0.001 {
					add("", math.NaN()) // nobody asked
				} else {
					add("", slower(load, r2))
				}
			case "two latencies":
				add("a", 1)
				add("b", 1)
			}
		}
		result := []any{}
		for _, pod := range []string{"", "a", "b"} {
			if values := series[pod]; values != nil {
				result = append(result, map[string]any{"metric": map[string]string{"pod": pod}, "values": values})
			}
		}
		assert.NoError(t, json.NewEncoder(w).Encode(map[string]any{"status": "success",
			"data": map[string]any{"resultType": "matrix", "result": result}}))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestThresholdFromPrometheus(t *testing.T) {
	url := measured(t)
	at := func() time.Time { return time.Unix(1_700_000_030, 0) }
	ask := func(load, latency string, more ...string) (int, string, string) {
		return foresailAt(t, at, "",
			append([]string{"threshold", "--prometheus", url, "--load", load, "--latency", latency, "--objective",
				"100ms", "-o", "json"}, more...)...)
	}
	code, stdout, stderr := ask("load", "latency")
	require.Equal(t, cli.ExitDone, code, stderr)
	var answer struct {
		Outcome, Threshold, Verdict string
		MostLoad, Low, High         float64
		Measurements                int
		ByLoad                      []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &answer))
	assert.Equal(t, "Found", answer.Outcome)
	assert.InDelta(t, 1-0.02*1.18/0.1, answer.MostLoad, 0.03, "the mean of the pods")
	assert.Equal(t, "770m", answer.Threshold)
	assert.Less(t, answer.Measurements, 7*24*60, "times without a load or a latency are left out")
	assert.Greater(t, answer.Measurements, 6*24*60)
	assert.Contains(t, answer.Verdict, "threshold: 770m")
	assert.Len(t, answer.ByLoad, 8)

	for _, c := range []struct{ load, latency, want string }{
		{"none", "latency", `--load: query "none" returns nothing in the 1w before 2023-11-14T22:13:00Z`},
		{"load", "none", `--latency: query "none" returns nothing`},
		{"load", "two latencies", "returns several series: it must return one"},
	} {
		code, _, stderr := ask(c.load, c.latency)
		assert.Equal(t, cli.ExitFailed, code)
		assert.Contains(t, stderr, c.want)
	}
	code, _, stderr = ask("load", "latency", "--since", "10m")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, "measurements that have both a load and a latency: at least 30 are needed")
}

func TestThresholdSaysWhyThereIsNone(t *testing.T) {
	for want, args := range map[string][]string{
		"0.569 is safe as a threshold, and a higher one may be": {loadTest(0.57),
			"100ms"},
		"The latency is above 10ms in more than 5% of the measurements at every load from 0 on": {loadTest(0.95),
			"10ms"},
	} {
		code, stdout, stderr := foresail(t, args[0], "threshold", "--input", "-", "--objective", args[1])
		require.Equal(t, cli.ExitDone, code, stderr)
		assert.Contains(t, stdout, want)
		assert.NotContains(t, stdout, "threshold: ")
	}
}

func TestThresholdRejects(t *testing.T) {
	for _, c := range []struct {
		stdin string
		args  []string
		want  []string
	}{
		{"", nil, []string{"--objective: 0s: must be above 0s, such as 250ms",
			"--prometheus: missing: must be the URL of a Prometheus server, or --input must be given"}},
		{"", []string{"--objective", "1s", "--prometheus", "http://localhost:9090"},
			[]string{"--load: missing", "--latency: missing"}},
		{"", []string{"--objective", "1s", "--input", "-", "--load", "up", "--share", "0.6"},
			[]string{`--load: "up": must be left out where --input is given`, "--share: 0.6: must be from 0 to 0.5"}},
		{"", []string{"--objective", "1s", "--input", "nowhere.csv"}, []string{"--input: open nowhere.csv"}},
		{"", []string{"--objective", "1s", "--input", "-"},
			[]string{"must be the header unix_seconds,load,latency_seconds"}},
		{"unix_seconds,load,latency_seconds\n1,2,fast\n", []string{"--objective", "1s", "--input", "-"},
			[]string{`--input: -: line 2: latency_seconds: "fast": must be a number, finite, 0 or more`}},
		{"unix_seconds,load,latency_seconds\n1,2\n", []string{"--objective", "1s", "--input", "-"},
			[]string{"record on line 2: wrong number of fields"}},
		{"", []string{"--objective", "1s", "--prometheus", "nowhere", "--load", "up", "--latency", "up"},
			[]string{`--prometheus: "nowhere"`}},
		{"", []string{"--objective", "1s", "--prometheus", "http://localhost:9", "--load", "up", "--latency", "up",
			"--step", "8d"}, []string{`--step: 8d: must be such that there are`}},
	} {
		code, _, stderr := foresail(t, c.stdin, append([]string{"threshold"}, c.args...)...)
		assert.Equal(t, cli.ExitUsage, code, "%v", c.args)
		for _, want := range c.want {
			assert.Contains(t, stderr, want)
		}
	}
}
