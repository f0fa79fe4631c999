package evaluationtest

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/play/evaluation"
	"github.com/foresail/foresail/internal/promapi"
)

var selector = regexp.MustCompile(`^\{__name__=~"(foresail_\(.*\))",namespace="([^"]*)",predictedmetric="([^"]*)"\}\n\[(\d+)s\]$`)

// Serve answers as a Prometheus server that has some series. It answers only the requests that
// package evaluation makes.
func Serve(t testing.TB, series []Series) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/query", func(w http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.ParseFloat(r.FormValue("time"), 64)
		assert.NoError(t, err)
		end := time.UnixMilli(int64(seconds * 1000))
		kind, result := "vector", others(series)
		if match := selector.FindStringSubmatch(r.FormValue("query")); match != nil {
			span, err := strconv.Atoi(match[4])
			assert.NoError(t, err)
			kind, result = "matrix", selected(series, match, end.Add(-time.Duration(span)*time.Second), end)
		}
		answer := map[string]any{"status": "success", "data": map[string]any{"resultType": kind, "result": result}}
		assert.NoError(t, json.NewEncoder(w).Encode(answer))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// Source returns a server as reports read it.
func Source(t testing.TB, address string) evaluation.Source {
	t.Helper()
	servers := &promapi.Servers{}
	servers.List(address)
	api, err := promapi.NewClients(promapi.Options{Servers: servers, MaxSeries: 1000, MaxBytes: 64 << 20,
		MaxMemory: math.MaxInt64}).API(address)
	require.NoError(t, err)
	return evaluation.Source{API: api, Address: address}
}

// selected are the samples of a range, both of whose ends belong to it, as with Prometheus 2.
func selected(series []Series, match []string, from, to time.Time) []any {
	name := regexp.MustCompile("^" + match[1] + "$")
	out := []any{}
	for _, s := range series {
		if !name.MatchString(s.Labels["__name__"]) || s.Labels["namespace"] != match[2] ||
			s.Labels["predictedmetric"] != match[3] {
			continue
		}
		var values [][2]any
		for _, v := range s.Samples {
			if !v.At.Before(from) && !v.At.After(to) {
				values = append(values, [2]any{float64(v.At.UnixMilli()) / 1000, fmt.Sprint(v.Value)})
			}
		}
		if len(values) > 0 {
			out = append(out, map[string]any{"metric": s.Labels, "values": values})
		}
	}
	return out
}

// others are the PredictedMetrics that there are metrics of.
func others(series []Series) []any {
	out := []any{}
	for _, s := range series {
		labels := map[string]string{}
		for _, of := range []string{"namespace", "exported_namespace", "predictedmetric"} {
			if v := s.Labels[of]; v != "" {
				labels[of] = v
			}
		}
		out = append(out, map[string]any{"metric": labels, "value": [2]any{0, "1"}})
	}
	return out
}
