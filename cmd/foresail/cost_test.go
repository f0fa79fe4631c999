package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/cost"
)

// past is what a Prometheus server knows of the pool workers at any time: labels and values by metric.
var past = map[string]map[string]int{
	"workers":             {`{"state":"ready"}`: 4, `{"state":"joining"}`: 0, `{"state":"unready"}`: 0, `{"state":"terminating"}`: 1, `{"state":"failed"}`: 0},
	"instances":           {`{"market":"Spot","instance_type":"t3.small","zone":"a"}`: 2, `{"market":"Spot","instance_type":"t3.small","zone":"b"}`: 1, `{"market":"OnDemand","instance_type":"t3.small","zone":"a"}`: 1},
	"recommended_workers": {`{}`: 3},
	"limit_workers":       {`{"limit":"min"}`: 1, `{"limit":"max"}`: 10},
	"pending_pods":        {`{}`: 0},
}

var rangeMetric = regexp.MustCompile(`\(foresail_nodepool_(\w+)\{pool="workers"\}`)

// newPrometheus answers what is asked of the pool workers, with as many samples as a server would give.
func newPrometheus(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/query_range", func(w http.ResponseWriter, r *http.Request) {
		start, end, step := number(t, r.FormValue("start")), number(t, r.FormValue("end")), number(t, r.FormValue("step"))
		assert.Equal(t, 300.0, step)
		assert.LessOrEqual(t, (end-start)/step+1, 11_000.0, "a server refuses more")
		var series []string
		if match := rangeMetric.FindStringSubmatch(r.FormValue("query")); match != nil {
			for labels, value := range past[match[1]] {
				var samples []string
				for at := start; at <= end; at += step {
					samples = append(samples, fmt.Sprintf(`[%.3f,"%d"]`, at, value))
				}
				series = append(series, fmt.Sprintf(`{"metric":%s,"values":[%s]}`, labels, strings.Join(samples, ",")))
			}
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, strings.Join(series, ","))
	})
	mux.HandleFunc("/api/v1/query", func(w http.ResponseWriter, r *http.Request) {
		assert.Regexp(t, `^sum by \(reason\) \(increase\(foresail_nodepool_(decisions|events)_total\{pool="\w+"\}\[\d+ms\]\)\)$`, r.FormValue("query"))
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"reason":"NotIdle"},"value":[0,"90"]}]}}`)
	})
	mux.HandleFunc("/api/v1/label/pool/values", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":["builders","workers"]}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	assert.NoError(t, err)
	return v
}

func TestCostTellsWhatAServerKnows(t *testing.T) {
	server := newPrometheus(t)
	prices := file(t, "prices.yaml", "t3.small: {onDemand: 1, spot: 0.25}\n")
	code, out, stderr := foresail(t, "", "cost", "workerpool", "workers", "--prometheus", server.URL+"/", "--prices", prices)
	require.Equal(t, exitDone, code, stderr)
	assert.Contains(t, out, "known         168.0 h of 168.0 h\n")
	assert.Contains(t, out, "worker hours  672.0; 504.0 desired")
	assert.Contains(t, out, "It cost 294.00 USD, and would have cost 220.50 USD at the desired count; 73.50 USD were for idle workers. On-Demand alone would have been 672.00 USD.")

	code, out, stderr = foresail(t, "", "cost", "wp", "workers", "--prometheus", server.URL, "--weeks", "12", "-o", "json")
	require.Equal(t, exitDone, code, stderr)
	var r cost.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	assert.Equal(t, 12*7*24.0, r.KnownHours)
	assert.Equal(t, 0.75, *r.SpotShare)
	assert.Nil(t, r.Cost)
	assert.Equal(t, []string{"t3.small OnDemand", "t3.small Spot"}, r.MissingPrices)
	assert.Contains(t, out, `"costUSD": null`)

	code, _, stderr = foresail(t, "", "cost", "workerpool", "wrokers", "--prometheus", server.URL)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, server.URL+`: it has nothing of the pool "wrokers" between `)
	assert.Contains(t, stderr, ", but others: builders, workers")
	server.Close()
	code, _, stderr = foresail(t, "", "cost", "workerpool", "workers", "--prometheus", server.URL)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "connection refused")
}

func TestCostRefusesUnusableArguments(t *testing.T) {
	dear := file(t, "prices.yaml", "t3.small: {spot: -1}")
	none := file(t, "servers.yaml", "servers: []")
	const ask = "cost workerpool workers --prometheus http://localhost:9090 "
	for args, want := range map[string]string{
		"cost workerpol x":                          `unknown command "workerpol": must be one of workerpool`,
		"cost workerpool":                           "the name of a WorkerPool is missing: foresail cost workerpool NAME",
		"cost workerpool workers":                   "--prometheus: missing: must be an http or https URL",
		"cost workerpool workers --prometheus x:90": `--prometheus: "x:90": must be an http or https URL`,
		ask + "--weeks 0":                           "--weeks: 0: must be from 1 to 12",
		ask + "--weeks 13":                          "--weeks: 13: must be from 1 to 12",
		ask + "--weeks many":                        `--weeks: "many": must be a whole number`,
		ask + "-o yaml":                             `--output: "yaml": must be table or json`,
		ask + "--prices /nowhere":                   "--prices: open /nowhere: no such file or directory: must be a YAML file of US dollars an hour",
		ask + "--prices " + dear:                    "--prices " + dear + ": t3.small.spot: -1: must be a number of US dollars, 0 or more",
		ask + "--prometheus-config-file /nowhere":   "--prometheus-config-file: read the file of Prometheus servers",
		ask + "--prometheus-config-file " + none:    `--prometheus: address: "http://localhost:9090": the operator lists no servers`,
		"run --nodepool-cost-report weekly":         `--nodepool-cost-report: "weekly": must be a duration`,
		"run --nodepool-cost-report 168h":           "--nodepool-cost-report: 168h0m0s: must be left out unless --enable has nodepool",
		"run --enable nodepool --nodepool-cost-report 168h": "--nodepool-cost-report: 168h0m0s: must be left out unless --notify-webhook-url-file is given, which says where reports go\n" +
			"--nodepool-cost-report: 168h0m0s: must be left out unless --prometheus-url is given",
		"run --enable nodepool --nodepool-cost-report 10m":                  "--nodepool-cost-report: 10m0s: must be 0, or a duration of at least 1h",
		"run --enable nodepool --nodepool-cost-prices " + dear:              "--nodepool-cost-prices " + dear + ": t3.small.spot: -1",
		"run --nodepool-cost-prices " + dear:                                "must be left out unless --enable has nodepool",
		"run --nodepool-cost-report 168h --nodepool-cost-prices " + dear:    "--nodepool-cost-prices " + dear + ": t3.small.spot: -1",
		"cost workerpool workers --prometheus http://user:secret@localhost": "…@localhost",
	} {
		code, out, stderr := foresail(t, "", strings.Fields(args)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Contains(t, stderr, want, args)
		assert.NotContains(t, stderr, "secret", args)
		assert.Empty(t, out, args)
	}
}

func TestCostReportsAreMadeOfWhatAServerKnows(t *testing.T) {
	server := newPrometheus(t)
	sources := &prometheusOptions{url: server.URL}
	sources.limits.MaxSeries, sources.limits.MaxBytes = 100, 1<<20
	o := costReportOptions{every: 48 * time.Hour}
	reports, err := o.build(sources.url, sources.clients())
	require.NoError(t, err)
	assert.Equal(t, o.every, reports.Every)
	text, err := reports.Make(t.Context(), "workers", time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	assert.Contains(t, text, "Worker pool workers, 2026-05-04 to 2026-05-06: 48.0 h of 48.0 h known. 192.0 worker hours, 144.0 desired, 48.0 idle.")
	_, err = reports.Make(t.Context(), "builders", time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC))
	require.ErrorIs(t, err, cost.ErrNoPool)

	none, err := (&costReportOptions{}).build("", nil)
	require.NoError(t, err)
	assert.Nil(t, none)
}
