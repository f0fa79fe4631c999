// Package costtest plays a Prometheus server that has scraped the metrics of worker pools.
package costtest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// past holds the metrics of the pool workers on a Prometheus server, at any time: values by labels, by metric.
var past = map[string]map[string]int{
	"workers": {`{"state":"ready"}`: 4, `{"state":"joining"}`: 0, `{"state":"unready"}`: 0,
		`{"state":"terminating"}`: 1, `{"state":"failed"}`: 0},
	"instances": {`{"market":"Spot","instance_type":"t3.small","zone":"a"}`: 2,
		`{"market":"Spot","instance_type":"t3.small","zone":"b"}`:     1,
		`{"market":"OnDemand","instance_type":"t3.small","zone":"a"}`: 1},
	"recommended_workers": {`{}`: 3},
	"limit_workers":       {`{"limit":"min"}`: 1, `{"limit":"max"}`: 10},
	"pending_pods":        {`{}`: 0},
}

var rangeMetric = regexp.MustCompile(`\(foresail_nodepool_(\w+)\{pool="workers"[^}]*\}`)

// Serve answers what is asked of the pool workers, with as many samples as a server would give.
func Serve(t *testing.T) *httptest.Server {
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
		assert.Regexp(
			t, `^sum by \(reason\) \(increase\(foresail_nodepool_(decisions|events)_total\{pool="\w+"\}\[\d+ms\]\)\)$`,
			r.FormValue("query"))
		fmt.Fprint(
			w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"reason":"NotIdle"},"value":[0,"90"]}]}}`)
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
